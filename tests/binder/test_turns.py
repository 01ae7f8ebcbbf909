"""What an earlier step has decided over holds up nobody behind it (R5, R11, R16, R23, R24)."""

from __future__ import annotations

import pytest

from model.claims import GPUClaim
from model.decisions import DeleteClaim, LoseClaim
from model.reasons import Reason
from tests.binder.deciding import Binder, bound_to, decide, kinds_of
from tests.binder.failing import cluster
from tests.builders import gpu_class, node, order, pinned_launcher, state, template_claim, vm, vmi

OLD = "2026-01-01T00:00:00Z"


def lost(name: str, **more: object) -> GPUClaim:
    return order(name, phase="Lost", lostFrom="x", **{"lostAt": "2026-12-01T05:00:00Z"} | more)


def test_oldest_order_is_placed_first_whatever_its_name() -> None:
    """R23."""
    live = (order("a", created="2026-06-01T00:00:00Z"), order("b", created=OLD))
    assert bound_to(decide(state(node(units=1), gpu_class()), *live)) == {"b": "gpu-1"}


def test_set_that_has_moved_holds_up_no_younger_order() -> None:
    """R5: step 4 has placed its new order with it."""
    live = (
        order("o", node="gpu-1", vm_uid="vm-vm1"),
        order("p", created=OLD, vm_uid="vm-vm1"),
        order("young"),
    )
    result = decide(cluster(vm(claims="o,p"), gone=True, spare=3), *live)
    assert bound_to(result) == {"o": "gpu-2", "p": "gpu-2", "young": "gpu-2"}


def test_set_that_is_gathered_holds_up_no_later_loss() -> None:
    """R5, R17: step 2 has placed it."""
    live = (order("o", node="gpu-1", vm_uid="vm-vm1"), lost("p", lostAt=OLD, vm_uid="vm-vm1"), lost("later"))
    result = decide(state(node(units=3), gpu_class(), vm(claims="o,p")), *live)
    assert bound_to(result) == {"p": "gpu-1", "later": "gpu-1"}


def test_set_whose_claims_go_holds_up_no_other_that_is_to_be_gathered() -> None:
    """R5, R17, R30: step 0 gives the claims of a back; b is gathered all the same."""
    ended = (vm("a", claims="o"), vmi("a", phase="Failed", claims="o", pods=[]))
    live = (order("o", node="n1", vm_uid="vm-a"), template_claim("a", node="n2"))
    split = (order("p", node="n1", vm_uid="vm-b"), order("q", node="n2", vm_uid="vm-b"))
    there = state(node("n1", 9), node("n2", 9), gpu_class(), *ended, vm("b", claims="p,q"))
    result = decide(there, *live, *split)
    assert kinds_of(result)[0] is DeleteClaim
    assert len(bound_to(result)) == 1


@pytest.mark.parametrize(
    "launcher", [{"node": "n1", "deleting": True}, {"terms": []}], ids=["ending", "no pin"]
)
def test_partly_lost_set_that_no_node_is_right_for_is_told_why(launcher: dict[str, object]) -> None:
    """R17."""
    objects = (vm(claims="o,p"), vmi(claims="o,p"), pinned_launcher(**launcher))  # type: ignore[arg-type]
    live = (order("o", node="n1", vm_uid="vm-vm1"), lost("p", vm_uid="vm-vm1"))
    lose = decide(state(node("n1", 9), gpu_class(), *objects), *live).decisions[0]
    assert isinstance(lose, LoseClaim)
    assert lose.message == "another claim of its set is Lost, and no node takes them all"


def test_outage_counts_in_words_and_a_node_that_is_also_closed_fails_all_the_same() -> None:
    """R24: two of four, one of them cordoned besides."""
    down = [node("n1", ready="False", unschedulable=True), node("n2", ready="False")]
    live = [order(f"o{n}", node=f"n{n}") for n in (1, 2)]
    result = Binder().passes(state(*down, node("n3"), node("n4"), gpu_class()), *live)
    count = "2 of 4 GPU nodes cannot keep their sets"
    assert result.notices == (f"{Reason.MASS_OUTAGE}: {count}: nothing is moved or lost until some return",)
