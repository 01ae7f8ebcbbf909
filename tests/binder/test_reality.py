"""Claims follow a running launcher, but make no units where there are none (R19, R22, R26, R27)."""

from __future__ import annotations

from model.decisions import BindClaim, LoseClaim, MarkWaiting
from model.meta import Lean
from model.reasons import Reason
from tests.binder.deciding import Binder, bound_to, decide, kinds_of
from tests.builders import (
    budget,
    gpu_class,
    namespace,
    node,
    order,
    running_vm,
    state,
    template_claim,
)


def beside(units: int, *objects: Lean) -> tuple[Lean, ...]:
    """vm1 runs on `here` with one unit of so many, and has come to name `o`, which is on `there`."""
    return (
        node("here", units),
        node("there", 1),
        gpu_class(),
        *running_vm("vm1", "here", claims="o"),
        *objects,
    )


def test_an_order_that_is_named_while_the_vm_runs_follows_it_where_there_is_room() -> None:
    """R16, R19."""
    live = (template_claim(node="here"), order("o", node="there"))
    assert bound_to(decide(state(*beside(2)), *live)) == {"o": "here"}


def test_such_an_order_overbooks_no_node() -> None:
    """Law 1: else a tenant makes nodes short, and three of them a mass outage (R24). The VM runs on (R22)."""
    live = (template_claim(node="here"), order("o", node="there"))
    result = decide(state(*beside(1)), *live)
    lost = {one.claim.name: one.message for one in result.decisions if isinstance(one, LoseClaim)}
    assert lost.keys() == {"o", "vm1-h100-vmi-vm1"}
    assert set(lost.values()) == {"its VM is on here, which has not the units for all of its claims"}
    assert BindClaim not in kinds_of(result)


def test_an_order_of_more_units_than_its_vm_asks_for_needs_room_where_the_vm_migrates_to() -> None:
    """R19: the one unit that the launcher takes is reality, the other two are not."""
    held = order("o", 3, node="there", vm_uid="vm-vm1")
    assert bound_to(decide(state(*beside(3)), held)) == {"o": "here"}
    assert LoseClaim in kinds_of(decide(state(*beside(2)), held))


def test_what_the_launcher_asks_for_follows_whatever_the_room() -> None:
    """R19: two orders of two units for a launcher of two, on a node that has lost its devices since."""
    held = [order(f"o{n}", node="there", vm_uid="vm-vm1") for n in (1, 2)]
    vm_there = running_vm("vm1", "here", 2, claims="o1,o2")
    assert bound_to(decide(state(node("here", 0), node("there"), gpu_class(), *vm_there), *held)) == {
        "o1": "here",
        "o2": "here",
    }


def test_what_was_never_held_does_not_follow_past_its_budget() -> None:
    """R27: its turn comes in step 6, and the budget refuses it there."""
    vm_there = running_vm("vm1", "here", 1, claims="o,new")
    cluster = state(node("here", 4), node("there", 1), gpu_class(), namespace(), budget(h100=2), *vm_there)
    held = (template_claim(node="here"), order("o", node="there", vm_uid="vm-vm1"))
    assert bound_to(decide(cluster, *held, order("new"))) == {"o": "here"}
    after = (template_claim(node="here"), order("o", node="here", vm_uid="vm-vm1"), order("new"))
    (mark,) = (one for one in decide(cluster, *after).decisions if isinstance(one, MarkWaiting))
    assert (mark.claim.name, mark.reason) == ("new", Reason.BUDGET_EXCEEDED)


def test_an_order_that_has_no_room_where_its_vm_runs_waits_for_room() -> None:
    """R12: it was never held, so no node lost it."""
    result = Binder().passes(state(*beside(1)), template_claim(node="here"), order("o"))
    assert [one.reason for one in result.waiting] == [Reason.NO_ROOM]
