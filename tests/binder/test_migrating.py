"""The target of a live migration: R19, R26, R28, case 050."""

from __future__ import annotations

from binder.core.refusals import look_of
from binder.core.state import ClusterState
from model.decisions import BindClaim, PinLauncher
from model.kubevirt import VirtualMachineInstance
from model.meta import Lean
from model.names import LABEL_MIGRATION_JOB
from model.pods import Pod
from model.reasons import Reason
from projections.folds import rejections, targets
from projections.folds.memory import Lesson, Memory
from projections.folds.rejections import Rejection
from tests.binder.deciding import Binder, decide, placed_on, reason_of
from tests.binder.test_volumes import claim as disk
from tests.binder.test_volumes import volume
from tests.builders import (
    NOW_MS,
    T4,
    gpu_class,
    launcher,
    node,
    pinned_to,
    raw_pod,
    started_vm,
    state,
    template_claim,
    vm,
    vmi,
)


def migrating(on: str = "gpu-a", pods: tuple[str, ...] = ("pod-vm1", "pod-target")) -> VirtualMachineInstance:
    """A VMI that runs on a node and lists source and target."""
    running = vmi("vm1", phase="Running")
    status = running.status.model_copy(update={"node_name": on, "active_pods": dict.fromkeys(pods, "")})
    return running.model_copy(update={"status": status})


def target(uid: str = "pod-target", **changes: object) -> Pod:
    """The pod that virt-controller makes for the migration."""
    pod = launcher("vm1", 1, **changes)  # type: ignore[arg-type]
    labels = pod.metadata.labels | {LABEL_MIGRATION_JOB: "job"}
    meta = pod.metadata.model_copy(update={"uid": uid, "name": "virt-launcher-t", "labels": labels})
    return pod.model_copy(update={"metadata": meta})


def source(phase: str = "Running") -> Pod:
    return launcher("vm1", 1, gates=[], node="gpu-a", phase=phase)


def stand(*more: Lean, units: int = 1, on: str = "gpu-a") -> ClusterState:
    """Two nodes and the VM on its way between them."""
    return state(node("gpu-a", units), node("gpu-b", 1), gpu_class(), vm(), migrating(on), *more)


def test_gated_target_is_pinned_to_another_node_and_no_claim_is_written() -> None:
    """Not to the source's node, though there is a free unit: the VMI is to leave it."""
    (found,) = decide(stand(source(), target(), units=2), template_claim("vm1", node="gpu-a")).decisions
    assert isinstance(found, PinLauncher)
    assert (found.pod.uid, found.node) == ("pod-target", "gpu-b")


def test_target_takes_its_unit_beside_the_claim_of_the_source_from_its_pin_on() -> None:
    """R26: one on each node while both run; a VM that waits gets neither."""
    pinned = target(gates=[], terms=pinned_to("gpu-b"))
    for on_its_way in (pinned, target(gates=[], node="gpu-b", phase="Running")):
        cluster = stand(source(), on_its_way, *started_vm("vm2"))
        result = decide(cluster, template_claim("vm1", node="gpu-a"))
        assert placed_on(result) == {}
        assert reason_of(result) is Reason.NO_ROOM


def test_claims_follow_the_vmi_when_it_has_arrived() -> None:
    """R19; the source has ended and holds nothing."""
    there = target(gates=[], node="gpu-b", phase="Running")
    (bind,) = decide(
        stand(source("Succeeded"), there, on="gpu-b"), template_claim("vm1", node="gpu-a")
    ).decisions
    assert isinstance(bind, BindClaim)
    assert bind.node == "gpu-b"
    after = stand(source("Succeeded"), there, *started_vm("vm2"), on="gpu-b")
    assert placed_on(decide(after, template_claim("vm1", node="gpu-b"))) == {"default/vm2": "gpu-a"}


def test_target_that_ends_releases_nothing() -> None:
    """The migration has failed: the claim stays where the VMI runs, the target's node is free."""
    failed = target(gates=[], node="gpu-b", phase="Failed")
    assert decide(stand(source(), failed), template_claim("vm1", node="gpu-a")).decisions == ()
    other = decide(stand(source(), failed, *started_vm("vm2")), template_claim("vm1", node="gpu-a"))
    assert placed_on(other) == {"default/vm2": "gpu-b"}


def test_target_without_room_waits_and_its_vmi_is_told() -> None:
    """The only other node is full."""
    blocked = stand(source(), target(), raw_pod("r", "gpu-b"), units=2)
    result = decide(blocked, template_claim("vm1", node="gpu-a"))
    assert placed_on(result) == {}
    assert reason_of(result) is Reason.NO_ROOM
    (waiting,) = result.waiting
    assert "on 1 nodes: 1 without enough free units" in waiting.message  # its own is not among them


def test_target_whose_disk_cannot_say_where_it_is_waits_for_it() -> None:
    """R8c, R12."""
    mounted = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "disk"}}]}
    result = decide(stand(source(), target(**mounted)), template_claim("vm1", node="gpu-a"))
    (waiting,) = result.waiting
    assert (waiting.reason, waiting.vmi_uid) == (Reason.VOLUME_PENDING, "vmi-vm1")
    assert waiting.message == "PersistentVolumeClaim default/disk does not exist"


def test_target_goes_where_its_disk_is() -> None:
    """R8c: gpu-b comes first, and does not reach it."""
    mounted = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "disk"}}]}
    there = stand(source(), target(**mounted), node("gpu-c", 1, labels={"host": "c"}))
    local = state(
        *(one for shelf in there.shelves.values() for one in shelf.models.values()),
        disk(volumeName="pv"),
        volume("pv", "c"),
    )
    assert placed_on(decide(local, template_claim("vm1", node="gpu-a"))) == {"default/vm1": "gpu-c"}


def test_target_fits_with_its_memory_and_selector_or_waits() -> None:
    """R8b, R8e: it asks for what every launcher asks for."""
    held = template_claim("vm1", node="gpu-a")
    assert (
        reason_of(decide(stand(source(), target(requests={"memory": "600Gi"})), held))
        is Reason.OTHER_RESOURCES
    )
    assert (
        reason_of(decide(stand(source(), target(node_selector={"x": "y"})), held)) is Reason.POD_CONSTRAINTS
    )


def test_what_a_target_was_given_is_taken_from_the_next() -> None:
    """R26: two migrations in one pass, one node between them: the older goes first."""
    second = launcher(
        "vm2", uid="to-2", pod="a-target", labels={LABEL_MIGRATION_JOB: "job"}, created="2026-01-01T00:00:00Z"
    )
    other = (
        vm("vm2"),
        vmi("vm2", phase="Running", node="gpu-a", pods=["pod-vm2", "to-2"]),
        launcher("vm2", gates=[], node="gpu-a", phase="Running"),
    )
    live = (template_claim("vm1", node="gpu-a"), template_claim("vm2", node="gpu-a"))
    result = decide(stand(source(), target(), *other, second, units=2), *live)
    assert placed_on(result) == {"default/vm2": "gpu-b"}
    big = {"requests": {"memory": "300Gi"}}
    wide = stand(
        source(),
        target(**big),
        *other,
        second.model_copy(update={"spec": launcher("vm2", **big).spec}),
        node("gpu-b", 4),
        units=2,
    )
    assert placed_on(decide(wide, *live)) == {"default/vm2": "gpu-b"}


def test_target_that_must_leave_what_it_was_given_takes_the_other_and_gives_the_first_back() -> None:
    """R3: its node is cordoned before the log shows its pin."""
    binder = Binder()
    held = template_claim("vm1", node="gpu-a")
    assert placed_on(binder.passes(stand(source(), target()), held)) == {"default/vm1": "gpu-b"}
    cordoned = (node("gpu-a", 1), node("gpu-b", 1, unschedulable=True), node("gpu-c", 1), gpu_class())
    moved = state(*cordoned, vm(), migrating(), source(), target())
    assert placed_on(binder.passes(moved, held)) == {"default/vm1": "gpu-c"}
    assert binder.memory.targets == {"pod-target": "gpu-c"}


def test_class_of_the_vms_claims_says_where_its_target_may_go() -> None:
    """R8a: what its claims are of, not whatever sells the resource; without claims the first class does."""
    pools = [gpu_class(name, nodeSelector={"pool": name}) for name in ("h100", "other")]
    nodes = [
        node("gpu-a", 1),
        node("gpu-b", 1, labels={"pool": "other"}),
        node("gpu-c", 1, labels={"pool": "h100"}),
    ]
    there = state(*nodes, *pools, vm(), migrating(), source(), target())
    held = template_claim("vm1", class_name="other", node="gpu-a")
    assert placed_on(decide(there, held)) == {"default/vm1": "gpu-b"}
    assert placed_on(decide(there)) == {"default/vm1": "gpu-c"}


def test_refused_node_is_left_alone_for_the_target_too() -> None:
    """R13."""
    rejected = Rejection("node-gpu-b", look_of(node("gpu-b", 1)), NOW_MS + 1000, "it refused", "pod")
    memory = Memory()
    memory.learn([Lesson(rejections.NAME, "default/vm-vm1", {"gpu-b": rejected})])
    result = decide(stand(source(), target()), template_claim("vm1", node="gpu-a"), memory=memory)
    assert reason_of(result) is Reason.NODES_REFUSED


def test_target_that_is_pinned_again_takes_its_unit_once() -> None:
    """R3, R26: the log does not show its pin yet; the other unit there is for the next."""
    memory = Memory()
    memory.learn([Lesson(targets.NAME, "pod-target", "gpu-b")])
    run = vmi("vm2", phase="Running", node="gpu-a", pods=["pod-vm2", "to-2"])
    labels = {LABEL_MIGRATION_JOB: "job"}
    second = launcher("vm2", uid="to-2", pod="z-target", labels=labels)
    other = (vm("vm2"), run, launcher("vm2", gates=[], node="gpu-a", phase="Running"), second)
    live = (template_claim("vm1", node="gpu-a"), template_claim("vm2", node="gpu-a"))
    there = (node("gpu-a", 2), node("gpu-b", 2), gpu_class(), vm(), migrating(), source(), target())
    result = decide(state(*there, *other), *live, memory=memory)
    assert placed_on(result) == {"default/vm1": "gpu-b", "default/vm2": "gpu-b"}


def test_targets_with_other_wishes_go_other_ways() -> None:
    """R8b: each is a set of its own."""
    run = vmi("vm2", phase="Running", node="gpu-a", pods=["pod-vm2", "to-2"])
    labels = {LABEL_MIGRATION_JOB: "job"}
    second = launcher("vm2", uid="to-2", pod="t", labels=labels, node_selector={"z": "c"})
    other = (vm("vm2"), run, launcher("vm2", gates=[], node="gpu-a", phase="Running"), second)
    live = (template_claim("vm1", node="gpu-a"), template_claim("vm2", node="gpu-a"))
    there = stand(source(), target(), *other, node("gpu-c", 5, labels={"z": "c"}), node("gpu-d", 1), units=2)
    assert placed_on(decide(there, *live)) == {"default/vm1": "gpu-b", "default/vm2": "gpu-c"}


def test_target_asks_nothing_of_a_class_of_which_it_wants_none() -> None:
    """R8a: a request of 0 is no request."""
    none_of_it = target(requests={T4: "0"})
    there = stand(source(), none_of_it, gpu_class("t4", T4, nodeSelector={"no": "where"}))
    assert placed_on(decide(there, template_claim("vm1", node="gpu-a"))) == {"default/vm1": "gpu-b"}


def test_of_two_targets_of_one_vmi_the_first_by_uid_goes_first_and_tolerates_by_class() -> None:
    """R4, R11: equal states give equal bytes."""
    names = [f"c{number}" for number in range(6)]
    classes = [gpu_class(name, tolerations=[{"key": name, "operator": "Exists"}]) for name in names]
    pods = ("pod-vm1", "b-target", "a-target")
    there = state(
        node("gpu-a", 6), node("gpu-b", 1), *classes, vm(), migrating(pods=pods), source(),
        target("b-target"), renamed(target("a-target"), "z"),
    )  # fmt: skip
    live = [template_claim("vm1", class_name=name, node="gpu-a") for name in reversed(names)]
    (pin,) = (one for one in decide(there, *live).decisions if isinstance(one, PinLauncher))
    assert pin.pod.uid == "a-target"
    assert [one.key for one in pin.tolerations] == names


def renamed(pod: Pod, name: str) -> Pod:
    return pod.model_copy(update={"metadata": pod.metadata.model_copy(update={"name": name})})


def test_gone_target_hides_no_other_that_was_given_room() -> None:
    """R3: each is held for on its own."""
    memory = Memory()
    memory.learn([Lesson(targets.NAME, "a-gone", "gpu-b"), Lesson(targets.NAME, "pod-target", "gpu-b")])
    rival = started_vm("vm2", priority=9)
    result = decide(stand(source(), target(), *rival), template_claim("vm1", node="gpu-a"), memory=memory)
    assert placed_on(result) == {"default/vm1": "gpu-b"}
