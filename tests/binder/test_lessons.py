"""What a pass learns is in one order, and only what is new (R4, R14)."""

from __future__ import annotations

from model.decisions import Keep
from projections.folds import deletions, troubles, vm_history
from projections.folds.memory import Lesson, Memory
from tests.binder.deciding import Binder, decide
from tests.builders import (
    NOW_MS,
    gpu_class,
    node,
    order,
    pinned_launcher,
    started_vm,
    state,
    template_claim,
    vm,
    vmi,
)


def test_runs_are_learned_by_uid() -> None:
    """R4: equal states give equal bytes."""
    runs = (("a", "uid-2"), ("b", "uid-1"))
    there = [
        one
        for name, uid in runs
        for one in (vm(name), vmi(name, uid=uid), pinned_launcher(name, vmi_uid=uid))
    ]
    live = [template_claim(name, node="gpu-1", vmi_uid=uid) for name, uid in runs]
    lessons = decide(state(node(), gpu_class(), *there), *live).lessons
    assert [one.field for one in lessons if one.projection == vm_history.NAME] == ["uid-1", "uid-2"]


def test_troubles_are_learned_when_they_begin_and_when_they_end_by_name() -> None:
    """R4, R20: and not again while they last, so that the log does not grow by what stands still."""
    binder, names = Binder(), ("gpu-3", "gpu-2", "gpu-1")
    held = [order(name, node=name) for name in names]
    bad = state(gpu_class(), *(node(name, ready="False", unschedulable=True) for name in names))
    good = state(gpu_class(), *(node(name) for name in names))
    learned = []
    for there in (bad, bad, good):
        lessons = binder.passes(there, *held, after_s=1).lessons
        learned.append([(one.field, one.value) for one in lessons if one.projection == troubles.NAME])
    fields = [f"node {name} {kind}" for name in sorted(names) for kind in ("cordoned", "not_ready")]
    since_ms = binder.now_ms - 2000
    assert learned == [[(name, since_ms) for name in fields], [], [(name, None) for name in fields]]


def test_who_no_longer_waits_has_been_told_nothing() -> None:
    """R12: so that the same reason is news when it waits again."""
    binder = Binder()
    binder.passes(state(node(units=0), gpu_class(), *started_vm("vm1")))
    assert binder.memory.told == {"vmi-vm1"}
    binder.passes(state(node(), gpu_class(), *started_vm("vm1")))
    assert (binder.memory.told, binder.memory.runs["vmi-vm1"].told) == (set(), "")


def test_claims_and_classes_get_their_finalizers_by_name() -> None:
    """R4, R30."""
    names = [f"o{number}" for number in range(9)]
    meta = {name: order(name).metadata.model_copy(update={"finalizers": ()}) for name in names}
    live = [order(name).model_copy(update={"metadata": meta[name]}) for name in reversed(names)]
    assert [one.ref.name for one in decide(state(), *live).decisions if isinstance(one, Keep)] == names
    bare = []
    for name in ("b", "a"):
        changes = {"metadata": gpu_class(name).metadata.model_copy(update={"finalizers": ()})}
        bare.append(gpu_class(name, f"nvidia.com/{name}").model_copy(update=changes))
    kept = [one.ref.name for one in decide(state(*bare)).decisions if isinstance(one, Keep)]
    assert kept == ["a", "b"]


def test_deletion_that_a_clock_ahead_remembered_is_of_now() -> None:
    """R24: it counts for a minute from now on, not for ever, and is not forgotten."""
    memory = Memory()
    memory.learn([Lesson(deletions.NAME, "vmi-x", NOW_MS + 5000)])
    lessons = decide(state(), memory=memory).lessons
    assert [(one.field, one.value) for one in lessons if one.projection == deletions.NAME] == [
        ("vmi-x", NOW_MS)
    ]
