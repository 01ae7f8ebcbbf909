"""A clock that was ahead: remembered moments that are still to come are taken as now."""

from __future__ import annotations

from binder.core.refusals import look_of
from model.decisions import DeleteVmi
from projections.folds import deletions, rejections
from projections.folds.memory import Lesson, Memory, as_fields
from projections.folds.rejections import Rejection
from tests.binder.deciding import Binder, bound_to, decide, kinds_of, placed_on
from tests.binder.failing import GRACE_S, HELD, cluster
from tests.builders import (
    NOW_MS,
    gpu_class,
    node,
    pinned_launcher,
    running_vm,
    started_vm,
    state,
    template_claim,
    vm,
    vmi,
)

DAY_S = 24 * 60 * 60


def test_a_grace_that_begins_tomorrow_begins_now() -> None:
    """R20: for longer than keep_grace, not for a day."""
    binder = Binder()
    binder.passes(cluster(units=0), HELD)
    back = binder.passes(cluster(units=0), HELD, after_s=-DAY_S)
    assert back.wake_at_ms == binder.now_ms + GRACE_S * 1000
    assert bound_to(binder.passes(cluster(units=0), HELD, after_s=GRACE_S)) == {"o": "gpu-2"}


def test_a_run_that_ends_tomorrow_holds_its_units_for_five_minutes() -> None:
    """R39."""
    binder, there = Binder(), (node(units=1), gpu_class(), vm())
    run = (vmi(phase="Running", node="gpu-1"), pinned_launcher(node="gpu-1", phase="Running"))
    binder.passes(state(*there, *run), template_claim(node="gpu-1"))
    other = state(*there, *started_vm("vm2"))
    assert placed_on(binder.passes(other)) == {}
    binder.passes(other, after_s=-DAY_S)
    assert placed_on(binder.passes(other, after_s=299)) == {}
    assert placed_on(binder.passes(other, after_s=1)) == {"default/vm2": "gpu-1"}


def test_deletions_of_tomorrow_count_for_one_minute() -> None:
    """R24: at most five a minute, not none for a day."""
    memory = Memory()
    memory.learn([Lesson(deletions.NAME, f"vmi-{n}", NOW_MS + 1000 * DAY_S) for n in range(5)])
    failing = cluster(*running_vm("vm1", "gpu-1"), gone=True)
    result = decide(failing, template_claim(node="gpu-1"), memory=memory)
    assert (kinds_of(result), result.wake_at_ms) == ([], NOW_MS + 60_000)
    memory.learn(result.lessons)
    binder = Binder(as_fields_of(memory), NOW_MS)
    later = binder.passes(failing, template_claim(node="gpu-1"), after_s=60)
    assert kinds_of(later) == [DeleteVmi]


def as_fields_of(memory: Memory) -> dict[str, dict[str, bytes]]:
    """What would be stored of the deletions that it knows."""
    return as_fields(Lesson(deletions.NAME, uid, at) for uid, at in memory.deletions.items())


def test_a_rejection_lasts_ten_minutes_at_most() -> None:
    """R13."""
    there = node("gpu-1")
    told = Rejection(there.metadata.uid, look_of(there), NOW_MS + 1000 * DAY_S, "why")
    memory = Memory()
    memory.learn([Lesson(rejections.NAME, "default/vm-vm1", {"gpu-1": told})])
    result = decide(state(there, gpu_class(), *started_vm("vm1")), memory=memory)
    assert (placed_on(result), result.wake_at_ms) == ({}, NOW_MS + 600_000)
    memory.learn(result.lessons)
    assert memory.rejections["default/vm-vm1"]["gpu-1"].until_ms == NOW_MS + 600_000
