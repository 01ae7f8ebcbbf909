"""A restart does not lose the GPU, and a stop gives it back (R14, R39)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from model.claims import GPUClaim
from model.meta import Lean
from model.reasons import Reason
from projections.folds.vm_history import Run
from tests.binder.deciding import Binder, bound_to, placed_on, reason_of, warnings
from tests.binder.restarting import HELD, HOLD_S, ONE, RIVAL, next_run, ran
from tests.builders import (
    gpu_class,
    launcher,
    node,
    order,
    pinned_launcher,
    running_vm,
    started_vm,
    state,
    template_claim,
    vm,
    vmi,
)


def test_unit_of_a_vm_that_restarts_waits_for_it() -> None:
    """R39: held against every later set, also one that is older and more important."""
    binder = Binder()
    ran(binder)
    between = binder.passes(state(ONE, gpu_class(), vm(), *RIVAL))
    assert placed_on(between) == {}
    assert reason_of(between) is Reason.NO_ROOM
    assert between.wake_at_ms == binder.now_ms + HOLD_S * 1000
    back = binder.passes(state(ONE, gpu_class(), vm(), *RIVAL, *next_run()), after_s=60)
    assert placed_on(back) == {"default/vm1": "gpu-1"}


def test_hold_runs_out_after_five_minutes() -> None:
    """R39: `restart_hold`."""
    binder = Binder()
    ran(binder)
    assert placed_on(binder.passes(state(ONE, gpu_class(), vm(), *RIVAL))) == {}
    waiting = state(ONE, gpu_class(), vm(), *RIVAL)
    assert placed_on(binder.passes(waiting, after_s=HOLD_S - 0.001)) == {}
    assert placed_on(binder.passes(waiting, after_s=0.001)) == {"default/rival": "gpu-1"}


def test_hold_of_zero_is_switched_off() -> None:
    """R39."""
    binder = Binder()
    ran(binder, restart_hold_s=0)
    there = state(ONE, gpu_class(), vm(), *RIVAL)
    assert placed_on(binder.passes(there, restart_hold_s=0)) == {"default/rival": "gpu-1"}


def test_hold_is_against_orders_and_lost_sets_too() -> None:
    """R39: against every later set."""
    binder = Binder()
    ran(binder)
    lost = order("lost", phase="Lost", lostFrom="x", lostAt="2020-01-01T00:00:00Z")
    assert bound_to(binder.passes(state(ONE, gpu_class(), vm()), lost, order("new"))) == {}


GONE: tuple[Lean, ...] = ()
FAILED = (vmi(phase="Failed", seen=["Running"], pods=[]),)
SUCCEEDED = (vmi(phase="Succeeded", seen=["Running"], pods=[]),)


@pytest.mark.parametrize(
    ("strategy", "end", "is_held"),
    [
        ("Always", GONE, True),
        ("Always", SUCCEEDED, True),
        ("Always", FAILED, True),
        ("RerunOnFailure", FAILED, True),
        ("RerunOnFailure", SUCCEEDED, False),
        ("RerunOnFailure", GONE, False),
        ("Halted", GONE, False),
        ("Halted", FAILED, False),
        ("Manual", SUCCEEDED, False),
        ("Manual", GONE, False),
        ("Once", SUCCEEDED, False),
    ],
)
def test_unit_waits_only_for_a_vm_that_restarts(strategy: str, end: tuple[Lean, ...], is_held: bool) -> None:
    """R39: a VM that is stopped on purpose gives its units back at once."""
    binder = Binder()
    ran(binder, *running_vm(strategy=strategy))
    result = binder.passes(state(ONE, gpu_class(), vm(strategy=strategy), *end, *RIVAL))
    assert (placed_on(result) == {}) is is_held


@pytest.mark.parametrize("end", [GONE, FAILED])
@pytest.mark.parametrize("running", [True, False])
def test_vm_with_the_deprecated_field_restarts_if_it_is_to_run(running: bool, end: tuple[Lean, ...]) -> None:
    """R39: `running` instead of `runStrategy`."""
    old = vm(strategy="")
    machine = old.model_copy(update={"spec": old.spec.model_copy(update={"running": running})})
    binder = Binder()
    ran(binder, machine, *running_vm()[1:])
    assert (placed_on(binder.passes(state(ONE, gpu_class(), machine, *end, *RIVAL))) == {}) is running


def test_vm_that_is_switched_to_halted_gives_its_unit_back() -> None:
    """R39: `virtctl stop` changes the strategy."""
    binder = Binder()
    ran(binder)
    binder.passes(state(ONE, gpu_class(), vm(), *RIVAL))
    assert placed_on(binder.passes(state(ONE, gpu_class(), vm(strategy="Halted"), *RIVAL))) == {
        "default/rival": "gpu-1"
    }


@pytest.mark.parametrize("strategy", ["Halted", ""])
@pytest.mark.parametrize("stop", ["before it ended", "with its end", "after its end"])
def test_vm_that_was_stopped_and_started_again_has_no_hold(stop: str, strategy: str) -> None:
    """R39: it gave its unit back at once, and for good; what starts then is a start as any other."""
    binder, halted = Binder(), vm(strategy=strategy)
    ran(binder)
    if stop == "before it ended":
        binder.passes(state(ONE, gpu_class(), halted, *running_vm()[1:]), HELD)
    if stop == "after its end":
        binder.passes(state(ONE, gpu_class(), vm()))
    binder.passes(state(ONE, gpu_class(), halted))
    assert [run.held for run in binder.memory.ended.values()] == [{}]
    again = state(ONE, gpu_class(), vm(), *next_run(), *RIVAL)
    assert placed_on(binder.passes(again)) == {"default/rival": "gpu-1"}


def test_of_two_runs_that_had_the_unit_one_after_the_other_the_later_one_has_it_back() -> None:
    """R39: two holds of one unit would keep it from everybody until they run out."""
    binder, first, second = Binder(), vm(strategy="Manual"), vm("vm2", strategy="Manual")
    ran(binder, *running_vm(strategy="Manual"), second)
    binder.passes(state(ONE, gpu_class(), first, second), after_s=1)
    claim = template_claim("vm2", node="gpu-1")
    binder.passes(state(ONE, gpu_class(), first, *running_vm("vm2", strategy="Manual")), claim, after_s=1)
    binder.passes(state(ONE, gpu_class(), first, second), after_s=1)
    both = (first, *next_run(), second, vmi("vm2", uid="again", pods=["pod-again"]))
    there = state(ONE, gpu_class(), *both, launcher("vm2", vmi_uid="again", uid="pod-again"), *RIVAL)
    assert placed_on(binder.passes(there)) == {"default/vm2": "gpu-1"}


@pytest.mark.parametrize(
    "vms",
    [
        (),
        (vm(uid="vm-other"),),
        (vm().model_copy(update={"metadata": vm().metadata.model_copy(update={"deletion_timestamp": "x"})}),),
    ],
    ids=["deleted", "another of that name", "being deleted"],
)
def test_vm_that_is_gone_or_going_holds_nothing(vms: tuple[Lean, ...]) -> None:
    """R39: for *that* VM, and if it restarts."""
    binder = Binder()
    ran(binder)
    assert placed_on(binder.passes(state(ONE, gpu_class(), *vms, *RIVAL))) == {"default/rival": "gpu-1"}


def test_vmi_without_a_vm_is_never_restarted() -> None:
    """R39."""
    binder = Binder()
    ran(binder, vmi(phase="Running", vm_uid=""), pinned_launcher(node="gpu-1", phase="Running"))
    assert placed_on(binder.passes(state(ONE, gpu_class(), *RIVAL))) == {"default/rival": "gpu-1"}


def test_manual_vm_that_was_started_again_finds_its_unit() -> None:
    """R39: once its next VMI is there, it does restart."""
    binder = Binder()
    ran(binder, *running_vm(strategy="Manual"))
    there = (ONE, gpu_class(), vm(strategy="Manual"), *next_run(), *RIVAL)
    assert placed_on(binder.passes(state(*there))) == {"default/vm1": "gpu-1"}


def test_hold_ends_where_the_node_refused_the_vm() -> None:
    """R13, R39."""
    binder = Binder()
    starting = (vm(), vmi(), pinned_launcher(node="gpu-1"))
    ran(binder, *starting)
    refused = pinned_launcher(node="gpu-1", status={"phase": "Failed", "reason": "OutOfcpu"})
    binder.passes(state(ONE, gpu_class(), vm(), vmi(phase="Failed"), refused), HELD)
    assert placed_on(binder.passes(state(ONE, gpu_class(), vm(), *RIVAL))) == {"default/rival": "gpu-1"}


def test_hold_ends_where_the_node_cannot_keep_it_after_the_grace() -> None:
    """R20, R39: the class may no longer be on that node; another class of the resource may."""
    classes = (gpu_class(nodeSelector={"pool": "gpu"}), gpu_class("other", default=True))
    held = node("gpu-1", 1, labels={"pool": "gpu"})
    run, pod = running_vm()[1:]
    binder = Binder()
    binder.passes(state(held, *classes, vm(), run, pod), HELD, keep_grace_s=60)
    rival = state(node("gpu-1", 1), *classes, vm(), *RIVAL)
    assert placed_on(binder.passes(rival, keep_grace_s=60)) == {}
    assert placed_on(binder.passes(rival, after_s=59.999, keep_grace_s=60)) == {}
    assert placed_on(binder.passes(rival, after_s=0.001, keep_grace_s=60)) == {"default/rival": "gpu-1"}


def test_hold_is_not_ended_by_the_troubles_of_other_classes() -> None:
    """R20, R39: what cannot be kept is another class's."""
    classes = (gpu_class(default=True), gpu_class("other", nodeSelector={"pool": "none"}))
    two, elsewhere = node("gpu-1", 2), order("x", class_name="other", node="gpu-1")
    binder = Binder()
    binder.passes(state(two, *classes, *running_vm()), HELD, elsewhere)
    for after_s in (1, 120):
        result = binder.passes(
            state(two, *classes, vm(), *RIVAL), elsewhere, after_s=after_s, keep_grace_s=60
        )
        assert placed_on(result) == {}


def test_hold_on_a_node_that_is_gone_is_none() -> None:
    """R39: nothing is kept nowhere, and it is no error."""
    binder = Binder()
    ran(binder)
    there = (node("gpu-2", 1), gpu_class(), vm(), *RIVAL)
    assert placed_on(binder.passes(state(*there))) == {"default/rival": "gpu-2"}


def test_vm_goes_elsewhere_when_its_node_cannot_take_it_back_and_frees_what_was_held() -> None:
    """R39: a hold is a right, no duty."""
    closed = node("gpu-1", 1, unschedulable=True)
    binder = Binder()
    ran(binder)
    there = (closed, node("gpu-2", 1), gpu_class(), vm(), *next_run())
    assert placed_on(binder.passes(state(*there))) == {"default/vm1": "gpu-2"}
    placed = pinned_launcher("vm1", "gpu-2", vmi_uid="run-2", uid="pod-run-2")
    moved = template_claim("vm1", node="gpu-2", vmi_uid="run-2")
    there = (ONE, node("gpu-2", 1), gpu_class(), vm(), next_run()[0], placed, *RIVAL)
    assert placed_on(binder.passes(state(*there), moved)) == {"default/rival": "gpu-1"}


def test_what_was_held_is_free_in_the_pass_in_which_its_vm_goes_elsewhere() -> None:
    """R39: for those behind it."""
    binder = Binder()
    ran(binder)
    there = (ONE, node("gpu-2", 1, labels={"z": "1"}), gpu_class(), vm(), *next_run(node_selector={"z": "1"}))
    later = started_vm("later", created="2030-01-01T00:00:00Z")
    assert placed_on(binder.passes(state(*there, *later))) == {
        "default/vm1": "gpu-2",
        "default/later": "gpu-1",
    }


def test_two_restarts_within_the_hold_are_one_hold() -> None:
    """R39: a VM holds what it last held, once."""
    two = node("gpu-1", 2)
    binder = Binder()
    ran(binder)
    binder.passes(state(two, gpu_class(), vm()), after_s=1)
    second = (next_run()[0], pinned_launcher(vmi_uid="run-2", uid="pod-run-2", node="gpu-1"))
    claim = template_claim("vm1", node="gpu-1", vmi_uid="run-2")
    binder.passes(state(two, gpu_class(), vm(), *second), claim, after_s=1)
    result = binder.passes(state(two, gpu_class(), vm(), *RIVAL), after_s=1)
    assert placed_on(result) == {"default/rival": "gpu-1"}
    both = binder.passes(state(ONE, gpu_class(), vm(), *RIVAL), after_s=1)
    assert placed_on(both) == {}


def test_run_that_never_had_a_place_does_not_end_the_hold_of_the_one_before() -> None:
    """R39: a launcher that was deleted while it was gated held nothing."""
    binder = Binder()
    ran(binder)
    waiting = template_claim("vm1", vmi_uid="run-2")
    closed = node("gpu-1", 1, unschedulable=True)
    binder.passes(state(closed, gpu_class(), vm(), *next_run()), waiting, after_s=1)
    assert binder.memory.runs["run-2"].held == {}
    assert placed_on(binder.passes(state(ONE, gpu_class(), vm(), *RIVAL), after_s=1)) == {}


def test_next_launcher_waits_a_moment_for_the_claims_of_the_last_run_to_go() -> None:
    """R39: KubeVirt's own virt-controller has the next launcher there before the old claims have gone."""
    binder, large = Binder(), node("gpu-2", 4)
    ran(binder, large, *running_vm())
    next_there = state(ONE, large, gpu_class(), vm(), *next_run())
    at_first = binder.passes(next_there, HELD)
    assert at_first.decisions == ()
    assert at_first.waiting == ()
    assert at_first.wake_at_ms == binder.now_ms + 10_000
    assert placed_on(binder.passes(next_there, after_s=0.5)) == {"default/vm1": "gpu-1"}


def test_claims_that_do_not_go_keep_nobody_waiting() -> None:
    """R39, R12: nobody collects them; after ten seconds another node will do."""
    binder, large = Binder(), node("gpu-2", 4)
    ran(binder, large, *running_vm())
    next_there = state(ONE, large, gpu_class(), vm(), *next_run())
    assert binder.passes(next_there, HELD).decisions == ()
    assert placed_on(binder.passes(next_there, HELD, after_s=9.999)) == {}
    later = binder.passes(next_there, HELD, after_s=0.001)
    assert placed_on(later) == {"default/vm1": "gpu-2"}
    assert later.wake_at_ms == binder.now_ms + 50_000, "R30: the claims, a minute after their VMI; no hold"


def test_node_that_cannot_take_the_vm_back_is_not_waited_for() -> None:
    """R20, R39: the claims of the last run are on a node that has gone."""
    binder, large = Binder(), node("gpu-2", 4)
    ran(binder, large, *running_vm())
    without = state(large, gpu_class(), vm(), *next_run())
    assert placed_on(binder.passes(without, HELD)) == {"default/vm1": "gpu-2"}


def test_order_keeps_its_unit_and_is_not_held_besides() -> None:
    """R39: who wants to keep them orders a claim; one that a tool owns is an order all the same."""
    owned = order("o", node="gpu-1", vm_uid="vm-vm1").model_dump(by_alias=True)
    owned["metadata"]["ownerReferences"] = [
        {"kind": "HelmRelease", "name": "x", "uid": "u", "controller": True}
    ]
    held = GPUClaim.model_validate(owned)
    two = node("gpu-1", 2)
    binder = Binder()
    binder.passes(state(two, gpu_class(), *running_vm(claims="o")), held)
    there = state(two, gpu_class(), vm(claims="o"), *RIVAL)
    assert placed_on(binder.passes(there, held)) == {"default/rival": "gpu-1"}


def test_history_remembers_the_run_and_forgets_it_after_an_hour() -> None:
    """R14: which VM each VMI was a run of, whether it ran, what it held, when it ended."""
    binder = Binder()
    ran(binder)
    assert binder.memory.runs == {
        "vmi-vm1": Run(
            "default", "vm1", "vm-vm1", has_run=True, node="gpu-1", held={"h100": 1}, launcher="pod-vm1"
        )
    }
    gone = state(ONE, gpu_class(), vm())
    binder.passes(gone)
    assert binder.memory.runs["vmi-vm1"].ended_ms == binder.now_ms
    binder.passes(gone, after_s=3600)
    assert set(binder.memory.runs) == {"vmi-vm1"}
    binder.passes(gone, after_s=0.001)
    assert binder.memory.runs == {}


def test_run_that_failed_is_remembered_as_such_while_its_vmi_is_still_there() -> None:
    """R14, R39: RerunOnFailure restarts it."""
    binder = Binder()
    ran(binder)
    binder.passes(state(ONE, gpu_class(), vm(), *FAILED), HELD)
    binder.passes(state(ONE, gpu_class(), vm(), *FAILED), HELD, after_s=1)
    ended = Run(
        "default",
        "vm1",
        "vm-vm1",
        has_run=True,
        node="gpu-1",
        held={"h100": 1},
        launcher="pod-vm1",
        has_failed=True,
    )
    assert binder.memory.runs == {"vmi-vm1": replace(ended, ended_ms=binder.now_ms - 1000)}


def test_what_ends_keeps_what_it_held_in_memory_while_it_ends() -> None:
    """R39: the claims may be rewritten or gone before the VMI is."""
    binder = Binder()
    ran(binder)
    ending = (vm(), vmi(phase="Running", deleting=True), pinned_launcher(node="gpu-1", deleting=True))
    binder.passes(state(ONE, gpu_class(), *ending))
    assert placed_on(binder.passes(state(ONE, gpu_class(), vm(), *RIVAL))) == {}


def test_a_run_that_is_there_again_has_not_ended() -> None:
    """R12, R14: a watcher that missed it for a moment makes nobody forget what its tenant was told."""
    binder = Binder()
    there = (node(units=0), gpu_class(), *started_vm("vm1"))
    assert len(warnings(binder.passes(state(*there)))) == 1
    binder.passes(state(*there[:2], vm()), after_s=1)
    binder.passes(state(*there), after_s=1)
    assert binder.memory.ended == {}
    later = binder.passes(state(*there), after_s=4000)
    assert (warnings(later), list(binder.memory.runs)) == ([], ["vmi-vm1"])
