"""Budgets: a tree of limits that stops what is new and takes nothing away (R1, R27)."""

from __future__ import annotations

from typing import Any

import pytest

from binder.core.budgets import plant, refusal, selects
from binder.core.state import ClusterState
from model.claims import GPUClaim, LabelSelector
from model.decisions import CreateClaim
from model.meta import Lean
from model.reasons import Reason
from tests.binder.deciding import Binder, bound_to, decide, kinds_of, placed_on, reason_of, warnings
from tests.builders import (
    T4,
    budget,
    gpu_class,
    launcher,
    namespace,
    node,
    order,
    raw_pod,
    running_vm,
    started_vm,
    state,
    template_claim,
    vm,
    vmi,
)

TEAM = {"team": "red"}


def cluster(*objects: Lean, units: int = 16) -> ClusterState:
    """One large node, one class, the namespaces a and b of one team and c of none, and `default`."""
    names = (namespace("default"), namespace("a", team="red"), namespace("b", team="red"), namespace("c"))
    return state(node("n", units), gpu_class(), *names, *objects)


@pytest.mark.parametrize(
    ("selector", "is_selected"),
    [
        ({}, True),
        ({"matchLabels": {"team": "red"}}, True),
        ({"matchLabels": {"team": "blue"}}, False),
        ({"matchLabels": {"team": "red", "x": "y"}}, False),
        ({"matchExpressions": [{"key": "team", "operator": "In", "values": ["blue", "red"]}]}, True),
        ({"matchExpressions": [{"key": "team", "operator": "In", "values": ["blue"]}]}, False),
        ({"matchExpressions": [{"key": "none", "operator": "In", "values": ["blue"]}]}, False),
        ({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["red"]}]}, False),
        ({"matchExpressions": [{"key": "none", "operator": "NotIn", "values": ["red"]}]}, True),
        ({"matchExpressions": [{"key": "team", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "none", "operator": "Exists"}]}, False),
        ({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}, False),
        ({"matchExpressions": [{"key": "none", "operator": "DoesNotExist"}]}, True),
        ({"matchExpressions": [{"key": "team", "operator": "Gt", "values": ["1"]}]}, False),
        (
            {
                "matchLabels": {"team": "red"},
                "matchExpressions": [{"key": "team", "operator": "DoesNotExist"}],
            },
            False,
        ),
    ],
)
def test_selector_means_what_it_means_in_kubernetes(selector: dict[str, Any], is_selected: bool) -> None:
    """meta/v1 LabelSelector: all must hold; an unknown operator selects nothing."""
    assert selects(LabelSelector.model_validate(selector), namespace("a", team="red")) is is_selected


def test_claim_must_fit_every_budget_up_to_the_root() -> None:
    """R27: also a root that does not select the namespace itself."""
    budgets = (
        budget("team", parent="company", labels=TEAM, h100=8),
        budget("company", labels={"is": "nobody"}, h100=4),
    )
    tree = plant(budgets, [namespace("a", team="red"), namespace("b", team="red")])
    assert refusal(tree, "a", {"h100": 4}, {}) == ""
    held = {"b": {"h100": 3}}
    assert refusal(tree, "a", {"h100": 1}, held) == ""
    assert refusal(tree, "a", {"h100": 2}, held) == (
        "GPUBudget company allows 4 of class h100: 3 held, 2 more wanted"
    )


def test_namespaces_of_sibling_budgets_add_up_in_their_parent_only() -> None:
    """R27: a tree."""
    budgets = (
        budget("root", labels={"is": "nobody"}, h100=5),
        budget("left", parent="root", labels={"team": "red"}, h100=3),
        budget("right", parent="root", labels={"team": "blue"}, h100=3),
    )
    tree = plant(budgets, [namespace("a", team="red"), namespace("b", team="blue")])
    assert refusal(tree, "b", {"h100": 2}, {"a": {"h100": 3}}) == ""
    assert "root" in refusal(tree, "b", {"h100": 3}, {"a": {"h100": 3}})
    assert "right" in refusal(tree, "b", {"h100": 4}, {})


def test_namespace_under_two_budgets_must_fit_both_and_counts_once_in_a_common_root() -> None:
    """R27."""
    budgets = (
        budget("one", parent="root", labels=TEAM, h100=9),
        budget("two", parent="root", labels=TEAM, h100=9),
        budget("root", labels=TEAM, h100=3),
    )
    tree = plant(budgets, [namespace("a", team="red")])
    assert refusal(tree, "a", {"h100": 1}, {"a": {"h100": 2}}) == ""
    assert refusal(tree, "a", {"h100": 2}, {"a": {"h100": 2}}) != ""


def test_without_budgets_nothing_is_limited() -> None:
    """R27: also in a namespace that the log has not told of."""
    assert refusal(plant([], []), "a", {"h100": 1024}, {}) == ""


def test_class_that_no_budget_names_is_not_limited_and_a_limit_of_zero_is_one() -> None:
    """R27, API: a class not named is not limited here."""
    tree = plant([budget(h100=0)], [namespace("a")])
    assert refusal(tree, "a", {"t4": 99}, {}) == ""
    assert refusal(tree, "a", {"h100": 1}, {}) != ""


@pytest.mark.parametrize(
    ("budgets", "fault"),
    [
        ([budget("x", parent="x")], "cycle through x"),
        ([budget("x", parent="y"), budget("y", parent="x")], "cycle through"),
        ([budget("x", parent="y"), budget("y", parent="z"), budget("z", parent="y")], "cycle through y"),
        ([budget("x", parent="nowhere")], "parent nowhere does not exist"),
    ],
)
def test_broken_budget_refuses_what_is_new_below_it(budgets: list[Any], fault: str) -> None:
    """API: a cycle makes both invalid, and refuses; so does a parent that does not exist."""
    text = refusal(plant(budgets, [namespace("a")]), "a", {"h100": 1}, {})
    assert fault in text
    assert text.endswith("it allows nothing new")


def test_broken_budget_of_others_refuses_nothing() -> None:
    """R27."""
    broken = budget("broken", parent="broken", labels=TEAM)
    tree = plant([broken, budget("fine", labels={"team": "blue"})], [namespace("b", team="blue")])
    assert refusal(tree, "b", {"h100": 1}, {}) == ""


def test_budget_is_checked_at_the_moment_of_placing_so_a_race_is_no_booking() -> None:
    """R1, R27, case 038: both were admitted; one is placed, and both know why or where."""
    first, second = order("one", 2, namespace="a"), order("two", 2, namespace="b")
    result = decide(cluster(budget(labels=TEAM, h100=3)), first, second)
    assert bound_to(result) == {"one": "n"}
    assert reason_of(result) is Reason.BUDGET_EXCEEDED
    assert result.waiting[0].message == "GPUBudget budget allows 3 of class h100: 2 held, 2 more wanted"


def test_claim_that_does_not_fit_blocks_neither_smaller_ones_nor_other_tenants() -> None:
    """R11, case 039: vm2 waiting must not block vm3, nor the other way round."""
    live = (
        order("huge", 4, namespace="a"),
        order("small", 1, namespace="a"),
        order("other", 4, namespace="c"),
    )
    assert bound_to(decide(cluster(budget(labels=TEAM, h100=3)), *live)) == {"small": "n", "other": "n"}


def test_units_count_from_the_moment_they_are_placed_and_also_while_lost() -> None:
    """R27: Bound and Lost; a Pending claim counts when its turn comes, else two would block each other."""
    limit = budget(labels=TEAM, h100=3)
    bound = order("bound", 2, namespace="a", node="n")
    lost = order("lost", 2, namespace="a", phase="Lost", lostFrom="x", lostAt="2026-12-01T00:00:00Z")
    pending = [order("new", 2, namespace="b")]
    assert bound_to(decide(cluster(limit), bound, *pending)) == {}
    assert bound_to(decide(cluster(limit, units=0), lost, *pending)) == {}
    assert bound_to(decide(cluster(limit), *pending, order("huge", 8, namespace="a"))) == {"new": "n"}


def test_lost_claim_comes_back_without_asking_the_budget_again() -> None:
    """R27: it never left the budget; a lowered budget evicts nothing."""
    lost = order("lost", 2, namespace="a", phase="Lost", lostFrom="x", lostAt="2026-12-01T00:00:00Z")
    assert bound_to(decide(cluster(budget(labels=TEAM, h100=1)), lost)) == {"lost": "n"}


def test_lowered_budget_stops_only_what_is_new() -> None:
    """Case 040: nothing is stopped, moved or lost; the restart of a VM is new."""
    low = budget(h100=1)
    objects = [o for n in ("vm1", "vm2", "vm3") for o in running_vm(n, "n")]
    live = [template_claim(n, node="n") for n in ("vm1", "vm2", "vm3")]
    assert decide(cluster(low, *objects), *live).decisions == ()
    restart = (*objects[3:], vm("vm1"), vmi("vm1", uid="vmi-2"), launcher("vm1", vmi_uid="vmi-2"))
    result = decide(cluster(low, *restart), *live[1:])
    assert reason_of(result) is Reason.BUDGET_EXCEEDED
    assert "allows 1 of class h100: 2 held, 1 more wanted" in result.waiting[0].message
    assert placed_on(decide(cluster(low, *restart[6:]))) == {"default/vm1": "n"}


def test_node_that_fails_moves_claims_whatever_their_budget_says() -> None:
    """R27: nothing that is held is taken away by a budget."""
    held = order("o", 2, namespace="a", node="gone")
    assert bound_to(decide(cluster(budget(labels=TEAM, h100=1)), held)) == {"o": "n"}


def test_template_claim_that_a_budget_refuses_is_not_created_and_its_tenant_is_told_once() -> None:
    """R12, R27: it would count for others, and there is nothing to mark."""
    binder = Binder()
    full = cluster(budget(h100=1), *started_vm("vm1", 2))
    first = binder.passes(full)
    assert warnings(first) == [Reason.BUDGET_EXCEEDED]
    assert len(first.decisions) == 1
    assert binder.passes(full).decisions == ()
    assert kinds_of(binder.passes(cluster(budget(h100=2), *started_vm("vm1", 2))))[0] is CreateClaim


def test_set_of_order_and_template_claim_asks_for_what_is_new_of_it() -> None:
    """R27: the order is in the budget already, the rest is not."""
    objects = (vm(), vmi(claims="o"), launcher(units=3))
    held = order("o", 2, node="n", vm_uid="vm-vm1")
    assert placed_on(decide(cluster(budget(h100=3), *objects), held)) == {"default/vm1": "n"}
    assert reason_of(decide(cluster(budget(h100=2), *objects), held)) is Reason.BUDGET_EXCEEDED


def test_each_class_of_a_set_must_fit() -> None:
    """R27: units are counted by class, not by resource."""
    both = (node("m", 4, more={T4: "4"}), gpu_class("t4", T4), *started_vm("vm1", 1, requests={T4: "2"}))
    assert reason_of(decide(cluster(budget(h100=1, t4=1), *both, units=0))) is Reason.BUDGET_EXCEEDED
    assert placed_on(decide(cluster(budget(h100=1, t4=2), *both, units=0))) == {"default/vm1": "m"}


def test_raw_pods_do_not_use_up_a_class() -> None:
    """R27: budgets limit raw pods by resource, at admission; claims by class."""
    assert bound_to(decide(cluster(budget(h100=2), raw_pod("r", "n", 4)), order("o", 2))) == {"o": "n"}


def test_running_vm_whose_order_a_budget_refuses_goes_on_and_its_order_waits() -> None:
    """R19, R27."""
    result = decide(cluster(budget(h100=0), *running_vm(node="n", claims="o")), order("o"))
    assert bound_to(result) == {}
    assert reason_of(result) is Reason.BUDGET_EXCEEDED


def test_namespace_that_the_log_has_not_told_of_waits_while_there_are_budgets() -> None:
    """R1: which budgets are over it is not known yet; a new namespace is no way round them."""
    fresh: GPUClaim = order("o", namespace="fresh")
    assert bound_to(decide(cluster(), fresh)) == {"o": "n"}
    result = decide(cluster(budget(labels=TEAM, h100=1)), fresh)
    assert reason_of(result) is Reason.BUDGET_EXCEEDED
    assert "namespace fresh is not known yet" in result.waiting[0].message
    assert bound_to(decide(cluster(budget(labels=TEAM, h100=1), namespace("fresh")), fresh)) == {"o": "n"}


def test_chain_of_a_thousand_budgets_is_walked_once_for_each() -> None:
    """And its end counts what its beginning covers."""
    chain = [budget("b0")] + [budget(f"b{n}", parent=f"b{n - 1}") for n in range(1, 1000)]
    tree = plant(chain, [namespace()])
    assert len(tree.over["default"]) == 1000
    assert tree.covers["b0"] == ["default"]
    assert not tree.faults


def test_class_without_a_limit_hides_none_and_the_first_by_name_is_told() -> None:
    """R12, R27: equal states give equal text."""
    tree = plant([budget("b", y=1, x=1)], [namespace("a")])
    refused = refusal(tree, "a", {"z": 9, "y": 2, "x": 2, "a": 9}, {})
    assert refused == "GPUBudget b allows 1 of class x: 0 held, 2 more wanted"
