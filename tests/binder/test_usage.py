"""How much of a class is held, and what a budget's namespaces use: R26, R27."""

from __future__ import annotations

from binder.core.books import ClassUse, Use
from binder.core.usage import budget_use, class_uses, drift_units
from binder.core.world import World, look_at
from model.claims import GPUClaim, Phase
from model.meta import Lean
from tests.builders import (
    H100,
    T4,
    budget,
    claims,
    gpu_class,
    namespace,
    node,
    order,
    raw_pod,
    running_vm,
    started_vm,
    state,
    template_claim,
)


def world(*objects: Lean, live: tuple[GPUClaim, ...] = ()) -> World:
    return look_at(state(*objects), claims(*live))


def lost(name: str, units: int = 1) -> GPUClaim:
    claim = order(name, units)
    return claim.model_copy(update={"status": claim.status.model_copy(update={"phase": Phase.LOST})})


def test_units_of_a_class_are_counted_by_who_has_them() -> None:
    """R26; a node that the class does not accept offers it nothing."""
    objects = (
        node("a", 4),
        node("b", 4),
        node("c", 8, unschedulable=True),
        gpu_class(),
        raw_pod("r", "b", 2),
    )
    held = (order("o", 1, node="a"), order("p", 5), lost("l", 3))
    found = class_uses(world(*objects, *running_vm("vm1", node="a"), live=held))["h100"]
    assert found == ClassUse(nodes=2, allocatable=8, bound=1, raw=3, lost=3, pending=5, free=4)


def test_claim_that_says_bound_and_names_no_node_is_pending() -> None:
    odd = order("o")
    odd = odd.model_copy(update={"status": odd.status.model_copy(update={"phase": Phase.BOUND})})
    assert class_uses(world(node(), gpu_class(), live=(odd,)))["h100"].pending == 1


def test_classes_of_one_resource_share_what_is_free_and_raw() -> None:
    objects = (node("a", 4), gpu_class("one"), gpu_class("two"), raw_pod("r", "a"))
    there = world(*objects, live=(order("o", 2, class_name="one", node="a"),))
    one, two = (class_uses(there)[name] for name in ("one", "two"))
    assert (one.bound, one.raw, one.free) == (2, 1, 1)
    assert (two.bound, two.raw, two.free) == (0, 1, 1)


def test_overbooked_node_has_nothing_free_and_takes_nothing_from_others() -> None:
    """Case 006: allocatable goes to zero while units are held."""
    found = class_uses(world(node("a", 0), node("b", 2), gpu_class(), live=(order("o", 3, node="a"),)))[
        "h100"
    ]
    assert (found.bound, found.free) == (3, 2)


def test_budget_counts_claims_in_every_phase_and_of_pods_what_they_do_not_cover() -> None:
    """R27: the pod of a Lost claim's VMI is not counted again; ended pods are not counted."""
    covered, uncovered = running_vm("vm1", node="a"), started_vm("vm2", 2)
    claim = template_claim("vm1")
    claim = claim.model_copy(update={"status": claim.status.model_copy(update={"phase": Phase.LOST})})
    there = world(
        node("a", 8),
        gpu_class(),
        namespace("default"),
        budget("root"),
        budget("team", parent="root"),
        *covered,
        *uncovered,
        raw_pod("r", "a", 3),
        raw_pod("done", "a", 4, phase="Succeeded"),
        live=(claim, order("o", 2)),
    )
    assert budget_use(there) == {name: Use({"h100": 3}, {H100: 5}) for name in ("root", "team")}


def test_budget_over_no_namespace_uses_nothing() -> None:
    there = world(gpu_class(), namespace("other"), budget("b", labels={"team": "x"}), live=(order("o"),))
    assert budget_use(there) == {"b": Use()}


def test_books_that_are_wrong_show_as_drift() -> None:
    """A fault of the books must be seen: by as many units as they are off."""
    there = world(
        node("a", 4), gpu_class(), namespace("default"), budget("b"), live=(order("o", 2, node="a"),)
    )
    assert drift_units(there) == 0
    there.books.take_claim(order("p", 3), 1)
    assert drift_units(there) == 3 + 3, "the class's Pending units, and the budget's"
    use = there.books.uses["b"]
    use.classes["h100"] -= 4
    assert drift_units(there) == 3 + 1, "too few are as wrong as too many"
    use.classes = {"other": 5}
    assert drift_units(there) == 3 + 2 + 5, "what is not there, and what should not be"
    use.resources = {H100: 7}
    assert drift_units(there) == 3 + 2 + 5 + 7
    there.books.take_claim(order("q", 1, class_name="other"), 1)
    assert drift_units(there) == 3 + 2 + 6 + 7


def test_drift_of_two_classes_is_their_sum() -> None:
    there = world(gpu_class(), gpu_class("t4", T4))
    there.books.take_claim(order("p", 3), 1)
    there.books.take_claim(order("q", 4, class_name="t4"), 1)
    assert drift_units(there) == 7


def test_claim_of_a_class_that_is_gone_hides_no_other_and_two_on_one_node_are_two() -> None:
    """R26: what is raw there is what pods hold besides both."""
    live = (order("a", class_name="gone"), order("b", 1, node="a"), order("c", 2, node="a"))
    found = class_uses(world(node("a", 4), gpu_class(), live=live))["h100"]
    assert (found.bound, found.raw) == (3, 0)
