"""Which of several runs is held for, and how much (R39); who refused whom, side by side (R13)."""

from __future__ import annotations

from binder.core.policy import Policy
from binder.core.refusals import look_of
from binder.core.scene import Scene
from binder.core.world import look_at
from model.decisions import DeletePod, WarnVmi
from model.reasons import Reason
from projections.folds import rejections, vm_history
from projections.folds.memory import Lesson, Memory
from projections.folds.rejections import Rejection
from projections.folds.vm_history import Run
from tests.binder.deciding import Binder, decide, placed_on, reason_of
from tests.binder.refusing import HELD, UNSCHEDULABLE, refused_vm, two_nodes
from tests.builders import (
    NOW_MS,
    T4,
    gpu_class,
    launcher,
    node,
    order,
    pinned_launcher,
    started_vm,
    state,
    template_claim,
    vm,
    vmi,
)

RIVAL = tuple(started_vm("rival", priority=9))


def ended(name: str, seconds_ago: int = 1, **held: int) -> Run:
    """A run of the VM of that name on gpu-1."""
    ended_ms = NOW_MS - 1000 * seconds_ago
    return Run("default", name, f"vm-{name}", has_run=True, node="gpu-1", held=held, ended_ms=ended_ms)


def remembers(**runs: Run) -> Memory:
    memory = Memory()
    memory.learn([Lesson(vm_history.NAME, uid, run) for uid, run in runs.items()])
    return memory


def test_run_of_a_vm_that_is_gone_hides_no_other() -> None:
    """R39."""
    memory = remembers(a=ended("gone", h100=1), b=ended("empty"), c=ended("vm1", h100=1))
    there = state(node(units=1), gpu_class(), vm("empty"), vm(), *RIVAL)
    assert reason_of(decide(there, memory=memory)) is Reason.NO_ROOM


def test_last_run_of_each_vm_counts_whatever_another_held_later() -> None:
    """R39: one unit for vm1, one for vm2."""
    memory = remembers(a=ended("vm1", 9, h100=2), b=ended("vm1", 5, h100=1), c=ended("vm2", 7, h100=1))
    there = (gpu_class(), vm(), vm("vm2"), *RIVAL)
    assert placed_on(decide(state(node(units=3), *there), memory=memory)) == {"default/rival": "gpu-1"}
    assert placed_on(decide(state(node(units=2), *there), memory=memory)) == {}


def test_hold_counts_what_claims_of_the_run_still_hold_in_each_class() -> None:
    """R26, R39: what is Bound is counted already; a class that is gone holds nothing."""
    memory = remembers(**{"vmi-vm1": ended("vm1", h100=3, t4=1, gone=4)})
    left = template_claim("vm1", 1, node="gpu-1")
    classes = (gpu_class(), gpu_class("t4", T4))
    there = state(node(units=4, more={T4: "1"}), *classes, vm())
    live = (left, order("one"), order("t", class_name="t4"))
    assert {one.set for one in decide(there, *live, memory=memory).waiting} == {"default/t (order)"}
    assert len(decide(there, *live, order("two"), memory=memory).waiting) == 2


def test_two_classes_of_one_resource_are_held_together() -> None:
    """R20, R39: the node has to offer the sum for it to be taken back at once."""
    memory = remembers(a=ended("vm1", cheap=1, dear=1))
    classes = (gpu_class("cheap"), gpu_class("dear"), gpu_class("h100"))
    rival = order("rival", class_name="h100")
    assert decide(state(node(units=2), *classes, vm()), rival, memory=memory).waiting
    assert not decide(state(node(units=3), *classes, vm()), rival, memory=memory).waiting


def test_next_run_with_a_launcher_that_has_its_place_is_held_for_no_longer() -> None:
    """R39: also beside a temporary one that still waits."""
    placed = pinned_launcher(pin="gpu-1", node="gpu-1", vmi_uid="vmi-2", uid="p1")
    waits = launcher(vmi_uid="vmi-2", uid="p2", pod="waits", gates=["other"])
    pods = (placed, waits)
    run = vmi(uid="vmi-2", pods=["p1", "p2"])
    memory = remembers(a=ended("vm1", h100=1))
    there = state(node(units=2), gpu_class(), vm(), run, *pods, *RIVAL)
    assert placed_on(decide(there, memory=memory)) == {"default/rival": "gpu-1"}


def test_hold_on_a_node_that_is_gone_is_none() -> None:
    """R20, R39."""
    memory = remembers(a=ended("vm1", h100=1))
    there = state(node("gpu-2", 1), gpu_class(), vm(), *RIVAL)
    assert placed_on(decide(there, memory=memory)) == {"default/rival": "gpu-2"}


def test_second_refusal_is_remembered_beside_the_first() -> None:
    """R13: both nodes are left alone from this very pass on, and the memory says whose pod it was."""
    one = Rejection("node-gpu-1", look_of(node("gpu-1", 2)), NOW_MS + 60_000, "before", "pod-1")
    old = Rejection("node-gone", "another look", NOW_MS + 60_000, "before", "pod-0")
    memory = Memory()
    memory.learn([Lesson(rejections.NAME, "default/vm-vm1", {"gpu-1": one, "gone": old})])
    result = decide(two_nodes(*refused_vm("gpu-2")), memory=memory)
    *_, lesson = (found for found in result.lessons if found.projection == rejections.NAME)
    assert isinstance(lesson.value, dict)
    assert list(lesson.value) == ["gpu-1", "gpu-2"]
    new = lesson.value["gpu-2"]
    assert (new.pod_uid, new.why) == ("pod-on-gpu-2", "gpu-2 refused the launcher: UnexpectedAdmissionError")


def test_refused_launcher_that_had_run_and_ended_is_not_unschedulable_either() -> None:
    """R13, R15: a VMI that ran has nothing to say of where it starts."""
    stuck = pinned_launcher(status=UNSCHEDULABLE)
    there = state(node(), gpu_class(), vm(), vmi(seen=["Running"]), stuck)
    binder = Binder()
    binder.passes(there, HELD)
    result = binder.passes(there, HELD, after_s=121)
    assert not [one for one in result.decisions if isinstance(one, DeletePod | WarnVmi)]


def test_stuck_launcher_without_any_claim_is_told_under_its_vms_name() -> None:
    """R13 (ii): of a VM that does not restart; its claims have gone already."""
    there = state(node(), gpu_class(), vm(strategy="Manual"), vmi(), pinned_launcher(status=UNSCHEDULABLE))
    binder = Binder()
    binder.passes(there)
    (warn,) = (one for one in binder.passes(there, after_s=121).decisions if isinstance(one, WarnVmi))
    assert (warn.set, warn.reason) == ("default/vm1", Reason.NODES_REFUSED)


def test_pass_wakes_at_the_first_moment_that_is_still_to_come() -> None:
    """R13, R20, R39: what is due now has been looked at."""
    scene = Scene(look_at(state(), {}), Memory(), Policy(), NOW_MS)
    scene.wake_by(NOW_MS)
    assert scene.wake_at_ms is None
    for later in (5, 3, 4):
        scene.wake_by(NOW_MS + later)
    assert scene.wake_at_ms == NOW_MS + 3
