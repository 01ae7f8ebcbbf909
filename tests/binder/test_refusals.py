"""Refused launchers: what is one, what is done about it, how long it is remembered (R13, R14, R15)."""

from __future__ import annotations

from typing import Any

import pytest

from binder.core.policy import Policy
from binder.core.run_pass import run_pass
from binder.core.state import ClusterState
from binder.core.world import look_at
from model.decisions import DeleteClaim, DeletePod
from model.pods import Pod
from model.reasons import Reason
from projections.folds import rejections
from projections.folds.memory import Memory
from tests.binder.deciding import Binder, bound_to, decide, kinds_of, placed_on, reason_of, warnings
from tests.binder.refusing import HELD, REFUSED, next_run, refused_vm, two_nodes
from tests.builders import (
    NOW_MS,
    claims,
    gpu_class,
    launcher,
    node,
    order,
    pinned_launcher,
    running_vm,
    started_vm,
    starting_vm,
    state,
    template_claim,
    vm,
    vmi,
)


def put_and_drop(cluster: ClusterState, pod: Pod) -> None:
    """The pod's last version, and that it has gone."""
    key = (pod.metadata.namespace, pod.metadata.name)
    cluster.shelves["Pod"].put(key, pod.metadata.uid, "9", pod.model_dump_json(by_alias=True).encode())
    cluster.shelves["Pod"].drop(key, pod.metadata.uid)


@pytest.mark.parametrize(
    "reason",
    [
        "OutOfcpu",
        "OutOfnvidia.com/GH100_H100_SXM5_80GB",
        "UnexpectedAdmissionError",
        "TopologyAffinityError",
        "NodeAffinity",
        "InvalidNodeInfo",
    ],
)
def test_pod_that_the_kubelet_rejected_is_deleted_and_its_node_remembered(reason: str) -> None:
    """R13 (i), R14: the memory is a lesson of the pass that decides the deletion, so stored before it."""
    result = decide(two_nodes(*refused_vm(reason=reason)), HELD)
    (deletion,) = result.decisions
    assert isinstance(deletion, DeletePod)
    assert (deletion.pod.uid, deletion.pod.resource_version) == ("pod-on-gpu-1", "5")
    assert deletion.seen == "Failed on gpu-1"
    assert reason in deletion.why
    (lesson,) = (one for one in result.lessons if one.projection == rejections.NAME)
    assert lesson.field == "default/vm-vm1"


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ({"phase": "Running"}, "not Failed"),
        ({"phase": "Succeeded"}, "not Failed"),
        ({"reason": ""}, "a Failed pod without a reason has run"),
        ({"reason": "DeadlineExceeded"}, "says nothing about the node"),
        ({"reason": "Terminated"}, "says nothing about the node"),
        (
            {"containerStatuses": [{"state": {"terminated": {"startedAt": "2026-12-01T05:00:00Z"}}}]},
            "a container had started",
        ),
        ({"initContainerStatuses": [{"state": {"running": {"startedAt": "2026-12-01T05:00:00Z"}}}]}, "too"),
    ],
)
def test_pod_that_began_or_ended_otherwise_is_not_refused(status: dict[str, Any], why: str) -> None:
    """R13 (i)."""
    assert decide(two_nodes(*refused_vm(**status)), HELD).decisions == (), why


def test_message_is_never_parsed() -> None:
    """R13: what a message says is not a reason."""
    lookalike = refused_vm(reason="", message="Pod was rejected: UnexpectedAdmissionError")
    assert decide(two_nodes(*lookalike), HELD).decisions == ()


def test_pod_without_a_pin_was_not_placed_by_us_and_is_left_alone() -> None:
    """R13: a *pinned* launcher is refused."""
    pod = launcher("vm1", gates=[], node="gpu-1", status=REFUSED)
    assert decide(two_nodes(vm(), vmi(), pod), HELD).decisions == ()


def test_pod_that_failed_elsewhere_than_on_its_pin_says_nothing_of_the_pin() -> None:
    """R13: somebody bound it by hand."""
    pod = pinned_launcher("vm1", "gpu-1", node="gpu-2", status=REFUSED)
    assert decide(two_nodes(vm(), vmi(), pod), HELD).decisions == ()


def test_refusal_that_came_and_went_within_one_batch_is_noticed() -> None:
    """R13: the launcher failed, and it and its VMI were gone before a pass could look."""
    cluster = two_nodes(*starting_vm())
    world, memory = look_at(cluster, claims(HELD)), Memory()
    memory.learn(run_pass(world, memory, Policy(), NOW_MS).lessons)
    put_and_drop(cluster, pinned_launcher("vm1", node="gpu-1", status=REFUSED))
    world.update(claims(HELD))
    result = run_pass(world, memory, Policy(), NOW_MS)
    assert DeletePod not in kinds_of(result)
    memory.learn(result.lessons)
    assert set(memory.rejections["default/vm-vm1"]) == {"gpu-1"}


def test_refusals_of_one_batch_are_learned_in_one_order_however_they_came() -> None:
    """R4, R13: two pods failed and went; equal states give equal bytes."""
    learned = []
    for names in (("vm1", "vm2"), ("vm2", "vm1")):
        cluster = two_nodes(*starting_vm("vm1"), *starting_vm("vm2"))
        live = claims(HELD, template_claim("vm2", node="gpu-1"))
        world, memory = look_at(cluster, live), Memory()
        memory.learn(run_pass(world, memory, Policy(), NOW_MS).lessons)
        world.learned_from()
        for name in names:
            put_and_drop(cluster, pinned_launcher(name, node="gpu-1", status=REFUSED))
        world.update(live)
        learned.append(run_pass(world, memory, Policy(), NOW_MS).lessons)
    assert [one.field for one in learned[0] if one.projection == rejections.NAME] == [
        "default/vm-vm1",
        "default/vm-vm2",
    ]
    assert learned[0] == learned[1]


def test_refusals_that_a_new_binder_finds_are_looked_at_in_one_order() -> None:
    """R4, R13."""
    refused = [pinned_launcher(name, node="gpu-1", status=REFUSED) for name in ("vm1", "vm2")]
    assert look_at(two_nodes(*reversed(refused)), {}).fallen == tuple(refused)


def test_only_refused_pods_are_kept_until_a_pass_can_learn_of_them() -> None:
    """R13, R33: while a log is stale for an hour, not every pod that changes or fails stays in memory."""
    cluster = two_nodes(*starting_vm())
    world = look_at(cluster, claims(HELD))
    refused = pinned_launcher("vm1", node="gpu-1", status=REFUSED)
    put_and_drop(
        cluster, pinned_launcher("vm2", node="gpu-1", status=REFUSED | {"reason": "DeadlineExceeded"})
    )
    put_and_drop(cluster, pinned_launcher("vm3", node="gpu-1", phase="Succeeded"))
    put_and_drop(cluster, refused)
    cluster.shelves["Pod"].put(
        ("default", "odd"), "pod-odd", "1", b'{"spec": 5, "status": {"phase": "Failed"}}'
    )
    cluster.shelves["Pod"].drop(("default", "odd"), "pod-odd")
    world.update(claims(HELD))
    world.update(claims(HELD))
    assert world.fallen == (refused,)


@pytest.mark.parametrize("end", ["has gone", "lists no pods"])
def test_refusal_is_noticed_also_when_the_end_of_its_vmi_was_known_before(end: str) -> None:
    """R13: pods and VMIs come in streams of their own, so a launcher's end can be told after its VMI's."""
    binder = Binder()
    binder.passes(two_nodes(*starting_vm()), HELD)
    run, refused = vmi(phase="Failed", pods=[]), pinned_launcher("vm1", node="gpu-1", status=REFUSED)
    left = () if end == "has gone" else (run,)
    pending = starting_vm()[2]
    binder.goes_on(two_nodes(vm(), *left, pending))
    assert binder.memory.rejections == {}
    binder.goes_on(two_nodes(vm(), *left, refused))
    assert set(binder.memory.rejections["default/vm-vm1"]) == {"gpu-1"}
    until_ms = binder.memory.rejections["default/vm-vm1"]["gpu-1"].until_ms
    binder.goes_on(two_nodes(vm(), *left), after_s=5)
    assert binder.memory.rejections["default/vm-vm1"]["gpu-1"].until_ms == until_ms
    assert placed_on(binder.goes_on(two_nodes(*next_run()))) == {"default/vm1": "gpu-2"}


def test_pod_that_was_never_listed_is_not_held_against_the_node_of_a_vmi_that_has_gone() -> None:
    """R13, R28: the reference to a VMI that was there proves nothing either."""
    binder = Binder()
    binder.passes(two_nodes(*starting_vm()), HELD)
    forged = pinned_launcher("vm1", node="gpu-1", status=REFUSED, uid="pod-forged")
    binder.goes_on(two_nodes(vm(), forged))
    assert binder.memory.rejections == {}


def test_two_refusals_of_one_vm_in_one_batch_are_both_remembered() -> None:
    """R13, R14: one lesson must not undo the other."""
    binder = Binder()
    binder.passes(two_nodes(*starting_vm()), HELD)
    second = (vm(), vmi(uid="vmi-2", pods=["pod-on-gpu-2"]))
    pinned = pinned_launcher("vm1", "gpu-2", vmi_uid="vmi-2", uid="pod-on-gpu-2", pod="next")
    claim = template_claim("vm1", node="gpu-2", vmi_uid="vmi-2")
    binder.goes_on(two_nodes(*second, pinned, starting_vm()[2]), claim)
    refused = pinned_launcher(
        "vm1", "gpu-2", vmi_uid="vmi-2", uid="pod-on-gpu-2", pod="next", node="gpu-2", status=REFUSED
    )
    binder.goes_on(two_nodes(vm(), refused, pinned_launcher("vm1", node="gpu-1", status=REFUSED)))
    assert set(binder.memory.rejections["default/vm-vm1"]) == {"gpu-1", "gpu-2"}


def test_forged_pod_is_neither_deleted_nor_held_against_the_node() -> None:
    """R13, R28: a pod that the VMI does not list proves nothing."""
    forged = pinned_launcher("vm1", node="gpu-1", status=REFUSED, uid="pod-forged")
    result = decide(two_nodes(vm(), vmi(), forged), HELD)
    assert not any(isinstance(one, DeletePod) for one in result.decisions)
    assert not any(one.projection == rejections.NAME for one in result.lessons)


def test_refused_pod_under_manual_is_deleted_too() -> None:
    """R13: only (ii) asks whether the VM comes back."""
    assert DeletePod in kinds_of(decide(two_nodes(*refused_vm(strategy="Manual")), HELD))


def test_refusal_is_noticed_also_when_its_claims_have_gone_before() -> None:
    """R13: garbage collection may be faster than we."""
    binder = Binder()
    assert kinds_of(binder.passes(two_nodes(*refused_vm()))) == [DeletePod]
    assert placed_on(binder.passes(two_nodes(*next_run()))) == {"default/vm1": "gpu-2"}


def test_next_launcher_goes_elsewhere_whatever_pod_vmi_and_binder_it_is() -> None:
    """R13, R14, case 001: keyed by the VM, it outlives pod, VMI, claims and the binder's process."""
    binder = Binder()
    ended = (vm("vm1"), vmi("vm1", phase="Failed", pods=["pod-on-gpu-1"]), refused_vm()[2])
    assert kinds_of(binder.passes(two_nodes(*ended), HELD)) == [DeleteClaim, DeletePod]
    assert placed_on(binder.passes(two_nodes(*next_run()), after_s=30)) == {"default/vm1": "gpu-2"}


def test_another_vm_and_a_new_vm_of_the_same_name_are_not_concerned() -> None:
    """R14: the memory is the VM's: namespace, name and uid."""
    binder = Binder()
    binder.passes(two_nodes(*refused_vm()), HELD)
    assert placed_on(binder.passes(two_nodes(*started_vm("vm2")))) == {"default/vm2": "gpu-1"}
    again = (
        vm("vm1", uid="vm-other"),
        vmi("vm1", uid="vmi-2", vm_uid="vm-other"),
        launcher("vm1", vmi_uid="vmi-2"),
    )
    assert placed_on(binder.passes(two_nodes(*again))) == {"default/vm1": "gpu-1"}


def test_refusal_of_a_vmi_without_a_vm_or_whose_vm_is_gone_is_remembered() -> None:
    """R14: a VMI without a VM stands for itself; an owner that is gone still is the owner."""
    alone = (vmi("vm1", vm_uid="", pods=["pod-on-gpu-1"]), refused_vm()[2])
    (lesson,) = (o for o in decide(two_nodes(*alone), HELD).lessons if o.projection == rejections.NAME)
    assert lesson.field == "default/vmi-vm1"
    orphan = refused_vm()[1:]
    (lesson,) = (o for o in decide(two_nodes(*orphan), HELD).lessons if o.projection == rejections.NAME)
    assert lesson.field == "default/vm-vm1"


def test_node_is_left_alone_for_ten_minutes_and_the_pass_says_when_to_wake() -> None:
    """R13."""
    binder = Binder()
    first = binder.passes(two_nodes(*refused_vm()), HELD)
    assert first.wake_at_ms == binder.now_ms + 600_000
    only = state(node("gpu-1"), gpu_class(), *next_run())
    assert reason_of(binder.passes(only, after_s=599.999)) is Reason.NODES_REFUSED
    result = binder.passes(only, after_s=0.001)
    assert placed_on(result) == {"default/vm1": "gpu-1"}
    assert binder.memory.rejections == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"units": 3},
        {"more": {"memory": "500Gi"}},
        {"taints": [{"key": "x", "effect": "PreferNoSchedule"}]},
        {"uid": "node-replaced"},
    ],
)
def test_change_of_the_node_ends_the_rejection(changes: dict[str, object]) -> None:
    """R13: allocatable, taints, readiness; another node of that name is another node."""
    binder = Binder()
    binder.passes(state(node("gpu-1"), gpu_class(), *refused_vm()), HELD)
    uid = changes.get("uid")
    changed = node("gpu-1", **changes)  # type: ignore[arg-type]
    if uid:
        changed = changed.model_copy(update={"metadata": changed.metadata.model_copy(update={"uid": uid})})
    result = binder.passes(state(changed, gpu_class(), *next_run()))
    assert placed_on(result) == {"default/vm1": "gpu-1"}


def test_change_of_readiness_ends_the_rejection_and_a_label_does_not() -> None:
    """R13."""
    binder = Binder()
    binder.passes(state(node("gpu-1"), gpu_class(), *refused_vm()), HELD)
    labelled = state(node("gpu-1", labels={"a": "b"}), gpu_class(), *next_run())
    assert reason_of(binder.passes(labelled)) is Reason.NODES_REFUSED
    binder.passes(state(node("gpu-1", ready="False"), gpu_class(), *next_run()))
    back = state(node("gpu-1"), gpu_class(), *next_run())
    assert placed_on(binder.passes(back)) == {"default/vm1": "gpu-1"}


def test_rejection_ends_with_its_node() -> None:
    """R13: a node that is gone, also for a while, is another one."""
    binder = Binder()
    binder.passes(two_nodes(*refused_vm()), HELD)
    binder.passes(state(node("gpu-2"), gpu_class()))
    assert binder.memory.rejections == {}


def test_pod_that_lingers_does_not_renew_what_has_run_out() -> None:
    """R13: ten minutes are ten minutes, also when a finalizer keeps the refused pod."""
    binder = Binder()
    run, pod = refused_vm()[1:]
    gone_soon = pinned_launcher("vm1", node="gpu-1", status=REFUSED, deleting=True, uid="pod-on-gpu-1")
    lingering = (vm("vm1"), run, gone_soon)
    assert pod.metadata.uid == gone_soon.metadata.uid  # type: ignore[attr-defined]
    binder.passes(two_nodes(*refused_vm()), HELD)
    for _ in range(3):
        assert binder.passes(two_nodes(*lingering), after_s=300).decisions == ()
    assert binder.memory.rejections == {}
    changed = two_nodes(*lingering, more={"memory": "500Gi"})
    assert binder.passes(changed).decisions == ()
    assert binder.memory.rejections == {}


def test_deletion_that_failed_is_decided_again() -> None:
    """R13: a conflict stops the set; the next pass begins from what is."""
    binder = Binder()
    for _ in range(2):
        assert kinds_of(binder.passes(two_nodes(*refused_vm()), HELD)) == [DeletePod]


def test_node_that_is_gone_needs_no_memory() -> None:
    """R13: the pod goes, nothing is remembered about nothing."""
    result = decide(state(node("gpu-2"), gpu_class(), *refused_vm()), HELD)
    assert DeletePod in kinds_of(result)
    assert not any(one.projection == rejections.NAME for one in result.lessons)


def test_every_node_refused_keeps_the_gate_and_says_so_once() -> None:
    """R12, R13, case 005."""
    binder = Binder()
    both = ("gpu-1", "gpu-2")
    for name in both:
        binder.passes(two_nodes(*refused_vm(name)), template_claim("vm1", node=name))
    waiting = binder.passes(two_nodes(*next_run(), *started_vm("vm2")))
    assert placed_on(waiting) == {"default/vm2": "gpu-1"}
    assert reason_of(waiting) is Reason.NODES_REFUSED
    assert "2 that have refused this VM" in waiting.waiting[0].message
    assert warnings(waiting) == [Reason.NODES_REFUSED]
    assert warnings(binder.passes(two_nodes(*next_run()))) == []


@pytest.mark.parametrize("seen", ["by the VMI itself", "by an earlier pass"])
def test_failed_launcher_of_a_vmi_that_ran_is_not_refused(seen: str) -> None:
    """R15: a node that reboots fails what ran there in the same words."""
    binder = Binder()
    history = []
    if seen == "by the VMI itself":
        history = ["Scheduled", "Running"]
    else:
        binder.passes(two_nodes(*running_vm()), HELD)
    failed = (vm(), vmi(phase="Failed", seen=history, pods=["pod-on-gpu-1"]), refused_vm()[2])
    result = binder.passes(two_nodes(*failed), HELD)
    assert DeletePod not in kinds_of(result)
    assert binder.memory.rejections == {}
    assert placed_on(binder.passes(two_nodes(*next_run()))) == {"default/vm1": "gpu-1"}


def test_held_order_follows_the_vm_to_another_node_after_a_refusal() -> None:
    """R8d, R10, R13: the refusing node is left by what the VM holds there, too."""
    held = order("o", node="gpu-1", vm_uid="vm-vm1")
    pod = pinned_launcher("vm1", node="gpu-1", status=REFUSED)
    binder = Binder()
    refused = binder.passes(two_nodes(vm(claims="o"), vmi(claims="o"), pod), held)
    assert kinds_of(refused) == [DeletePod]
    again = (vm(claims="o"), vmi(claims="o", uid="vmi-2", pods=["pod-2"]))
    gated = launcher("vm1", vmi_uid="vmi-2", uid="pod-2")
    assert bound_to(binder.passes(two_nodes(*again, gated), held)) == {"o": "gpu-2"}
