"""What a node cannot keep moves or is lost, within bounds (R21-R25)."""

from __future__ import annotations

from typing import Any

import pytest

from binder.core.state import ClusterState
from model.claims import GPUClaim
from model.decisions import BindClaim, DeletePod, DeleteVmi, LoseClaim, WarnVmi
from model.meta import Lean
from model.reasons import Reason
from tests.binder.deciding import Binder, bound_to, decide, kinds_of, placed_on, warnings
from tests.binder.failing import GRACE_S, HELD, NO_EXECUTE, cluster
from tests.builders import (
    gpu_class,
    launcher,
    node,
    order,
    pinned_launcher,
    raw_pod,
    running_vm,
    starting_vm,
    state,
    template_claim,
    vm,
    vmi,
)

MOVES: list[tuple[str, Any, type]] = [
    ("Always", starting_vm, DeletePod),
    ("RerunOnFailure", starting_vm, DeletePod),
    ("Manual", starting_vm, WarnVmi),
    ("Once", starting_vm, WarnVmi),
    ("", starting_vm, WarnVmi),
    ("Always", running_vm, DeleteVmi),
    ("RerunOnFailure", running_vm, WarnVmi),
    ("Manual", running_vm, WarnVmi),
    ("Halted", running_vm, WarnVmi),
]


@pytest.mark.parametrize(("strategy", "build", "decision"), MOVES)
def test_launcher_or_vmi_is_deleted_only_where_the_vm_comes_back(
    strategy: str, build: object, decision: type
) -> None:
    """R21: the pod of one that never ran, the VMI of one that runs; the claims follow when it is gone."""
    objects = build("vm1", "gpu-1", strategy=strategy)  # type: ignore[operator]
    binder, live = Binder(), template_claim("vm1", node="gpu-1")
    result = binder.passes(cluster(*objects, gone=True), live)
    assert kinds_of(result) == [decision]
    if decision is WarnVmi:
        assert warnings(result) == [Reason.NODE_LOST]
        assert warnings(binder.passes(cluster(*objects, gone=True), live)) == []


def test_deletions_carry_what_must_still_be_so() -> None:
    """R21: uid, and where it was seen."""
    (deletion,) = decide(cluster(*running_vm(), gone=True), template_claim("vm1", node="gpu-1")).decisions
    assert isinstance(deletion, DeleteVmi)
    assert (deletion.vmi.uid, deletion.seen) == ("vmi-vm1", "Running on gpu-1")
    assert deletion.why == "node gpu-1 is gone"


def test_vmi_that_says_it_ran_is_deleted_as_a_vmi_also_before_it_was_seen_running() -> None:
    """R21: what ran comes back at once, so its VMI is deleted."""
    objects = (vm(), vmi(phase="Scheduled", seen=["Running"]), pinned_launcher(node="gpu-1"))
    assert kinds_of(decide(cluster(*objects, gone=True), template_claim(node="gpu-1"))) == [DeleteVmi]


@pytest.mark.parametrize(
    "objects",
    [
        (vm(claims="o"), vmi(phase="Running", claims="o", deleting=True), pinned_launcher(node="gpu-1")),
        (vm(claims="o"), vmi(claims="o"), pinned_launcher(node="gpu-1", deleting=True)),
        (vm(claims="o"), vmi(claims="o", phase="Failed"), pinned_launcher(node="gpu-1", phase="Running")),
    ],
    ids=["VMI is being deleted", "pod is being deleted", "VMI has failed"],
)
def test_what_ends_anyway_is_not_deleted_again_and_keeps_its_next_place(objects: tuple[Lean, ...]) -> None:
    """R21: the claims follow when it is gone; until then nobody gets the room."""
    held = order("o", node="gpu-1", vm_uid="vm-vm1")
    assert decide(cluster(*objects, gone=True, spare=0), held).decisions == ()
    result = decide(cluster(*objects, gone=True, spare=1), held, order("later"))
    assert bound_to(result) == {}
    assert not {DeletePod, DeleteVmi, LoseClaim} & set(kinds_of(result))


@pytest.mark.parametrize("objects", [(), (vm(claims="o"),), (vm(claims="o"), vmi(claims="o", pods=[]))])
def test_claims_without_a_launcher_are_rewritten(objects: tuple[Lean, ...]) -> None:
    """R21: no VMI, or one without a launcher yet."""
    (bind,) = decide(cluster(*objects, gone=True), order("o", node="gpu-1")).decisions
    assert isinstance(bind, BindClaim)
    assert bind.node == "gpu-2"


def test_gated_launcher_gathers_its_set_and_nothing_is_deleted() -> None:
    """R21."""
    objects = (vm(claims="o"), vmi(claims="o"), launcher())
    result = decide(cluster(*objects, gone=True), order("o", node="gpu-1", vm_uid="vm-vm1"))
    assert (bound_to(result), placed_on(result)) == ({"o": "gpu-2"}, {"default/vm1": "gpu-2"})
    assert {DeletePod, DeleteVmi}.isdisjoint(kinds_of(result))


def test_set_moves_whole_or_not_at_all() -> None:
    """R16, R21: two orders and a running VM; a node with room for one is no place."""
    live = [order(f"o{n}", 1, node="gpu-1", vm_uid="vm-vm1") for n in (1, 2)]
    assert bound_to(decide(cluster(vm(claims="o1,o2"), gone=True), *live)) == {"o1": "gpu-2", "o2": "gpu-2"}
    result = decide(cluster(vm(claims="o1,o2"), gone=True, spare=1), *live)
    assert kinds_of(result) == [LoseClaim, LoseClaim]


def test_nothing_is_deleted_without_a_node_with_room_and_the_claims_are_lost() -> None:
    """R21, R22: a VMI that still runs is left alone; what it lost is recorded."""
    binder = Binder()
    objects = running_vm()
    result = binder.passes(cluster(*objects, gone=True, spare=0), template_claim(node="gpu-1"))
    lose, warn = result.decisions
    assert isinstance(lose, LoseClaim)
    assert (lose.lost_from, lose.lost_at) == ("gpu-1", "2027-01-15T08:00:00Z")
    assert lose.message.startswith("node gpu-1 is gone; no node offers 1 of")
    assert isinstance(warn, WarnVmi)
    assert warn.reason is Reason.NODE_LOST


def test_set_that_was_partly_lost_before_is_lost_once() -> None:
    """R17, R22: step 2 has lost the rest of it already."""
    lost = order("p", 9, vm_uid="vm-vm1", phase="Lost", lostFrom="x")
    held = order("o", node="gpu-1", vm_uid="vm-vm1")
    assert kinds_of(decide(cluster(vm(claims="o,p"), gone=True), held, lost)) == [LoseClaim]


def test_room_for_the_launchers_memory_counts_too() -> None:
    """R21: a node with room is one with room for everything."""
    pod = pinned_launcher(node="gpu-1", phase="Running", requests={"memory": "600Gi"})
    objects = (vm(), vmi(phase="Running", node="gpu-1"), pod)
    assert LoseClaim in kinds_of(decide(cluster(*objects, gone=True), template_claim(node="gpu-1")))


def test_room_goes_to_one_leaving_set_and_the_other_is_lost() -> None:
    """R21: a node with room exists *at that moment*: what one takes, the next one does not see."""
    objects = (*running_vm("vm1"), *running_vm("vm2"))
    live = [template_claim(name, node="gpu-1") for name in ("vm1", "vm2")]
    result = decide(cluster(*objects, gone=True, spare=1), *live)
    assert [type(one) for one in result.decisions if one.set == "default/vm1"] == [DeleteVmi]
    assert LoseClaim in {type(one) for one in result.decisions if one.set == "default/vm2"}


def test_between_equal_choices_the_one_that_ran_is_moved() -> None:
    """R21: it restarts without a back-off."""
    objects = (*starting_vm("a"), *running_vm("b"))
    live = [template_claim(name, node="gpu-1") for name in ("a", "b")]
    result = decide(cluster(*objects, gone=True, spare=1), *live)
    assert [type(one) for one in result.decisions if one.set == "default/b"] == [DeleteVmi]


def test_lost_claim_of_a_running_vmi_comes_back_to_where_it_runs() -> None:
    """R19, R22: the node has returned."""
    lost = order("o", vm_uid="vm-vm1", phase="Lost", lostFrom="gpu-1", lostAt="2026-12-01T05:00:00Z")
    objects = running_vm(claims="o")
    assert decide(cluster(*objects, ready="False"), lost).decisions[:-1] == ()
    assert bound_to(decide(cluster(*objects), lost)) == {"o": "gpu-1"}


def test_lost_claim_holds_nothing_and_the_running_pod_counts_in_full() -> None:
    """R22, R26."""
    lost = order("o", vm_uid="vm-vm1", phase="Lost", lostFrom="gpu-1", lostAt="2026-12-01T05:00:00Z")
    full = state(node("gpu-1", 2), gpu_class(), *running_vm(units=2), raw_pod("r", "gpu-1", 0))
    assert bound_to(decide(full, lost, order("new"))) == {}


def lost_at(name: str, minute: int, units: int = 1) -> GPUClaim:
    return order(name, units, phase="Lost", lostFrom="x", lostAt=f"2026-12-01T05:{minute:02d}:00Z")


def test_lost_sets_are_rebound_before_new_orders_oldest_loss_first() -> None:
    """R23."""
    live = [lost_at("b", 1), lost_at("a", 2), order("new", created="2026-01-01T00:00:00Z")]
    assert list(bound_to(decide(state(node(units=1), gpu_class()), *live))) == ["b"]
    assert list(bound_to(decide(state(node(units=2), gpu_class()), *live))) == ["b", "a"]
    assert list(bound_to(decide(state(node(units=3), gpu_class()), *live))) == ["b", "a", "new"]


def test_lost_set_that_does_not_fit_stops_nobody_behind_it() -> None:
    """R11, R23."""
    live = [lost_at("huge", 1, 4), lost_at("small", 2)]
    assert bound_to(decide(state(node(units=2), gpu_class()), *live)) == {"small": "gpu-1"}


def many(count: int) -> tuple[list[Lean], list[GPUClaim]]:
    """So many running VMs on gpu-1."""
    names = [f"vm{n}" for n in range(count)]
    return [o for n in names for o in running_vm(n)], [template_claim(n, node="gpu-1") for n in names]


def test_no_more_vmis_are_deleted_in_a_minute_than_allowed_also_after_a_crash() -> None:
    """R24: the memory of them is durable, and the pass says why it waits and when it goes on."""
    objects, live = many(7)
    failing = cluster(*objects, gone=True, spare=8)
    binder = Binder()
    first = binder.passes(failing, *live)
    assert kinds_of(first).count(DeleteVmi) == 5
    assert first.notices == ("no more than 5 VMIs are deleted a minute",)
    gone = {one.set for one in first.decisions}
    left = [o for o in objects if f"default/{o.metadata.name}" not in gone]  # type: ignore[attr-defined]
    rest = cluster(*left, gone=True, spare=8)
    assert DeleteVmi not in kinds_of(binder.passes(rest, *live[5:], after_s=10))
    second = binder.passes(rest, *live[5:], after_s=49.999)
    assert DeleteVmi not in kinds_of(second)
    assert second.wake_at_ms == binder.now_ms + 1
    assert kinds_of(binder.passes(rest, *live[5:], after_s=0.001)).count(DeleteVmi) == 2
    assert len(binder.memory.deletions) == 2
    binder.passes(cluster(), after_s=60)
    assert binder.memory.deletions == {}


def test_limit_on_deletions_stops_neither_idle_sets_nor_launchers_that_never_ran() -> None:
    """R24: at most so many *VMIs*."""
    objects, live = many(1)
    starting = [o for n in ("s1", "s2") for o in starting_vm(n)]
    live += [template_claim("s1", node="gpu-1"), template_claim("s2", node="gpu-1"), HELD]
    result = decide(cluster(*objects, *starting, gone=True, spare=9), *live, max_vmi_deletions=0)
    assert sorted(one.__name__ for one in kinds_of(result)) == ["BindClaim", "DeletePod", "DeletePod"]


@pytest.mark.parametrize(
    ("failing", "nodes_in_all", "is_outage"),
    [(1, 1, False), (1, 2, False), (1, 3, False), (2, 6, False), (2, 5, True), (2, 4, True), (2, 2, True)],
)
def test_more_than_a_third_of_the_nodes_at_once_is_an_outage(
    failing: int, nodes_in_all: int, is_outage: bool
) -> None:
    """R24: nothing is moved, deleted or lost, and the pass says so; one node alone is no outage."""
    names = [f"n{i}" for i in range(nodes_in_all)]
    there = [node(name, 8) for name in names[failing:]]
    live = [order(f"o{name}", node=name) for name in names]
    result = decide(state(*there, gpu_class()), *live)
    assert (result.decisions == ()) is is_outage
    assert any(Reason.MASS_OUTAGE in one for one in result.notices) is is_outage


def test_outage_counts_nodes_from_the_moment_they_fail() -> None:
    """R24: else the first whose grace runs out would move alone, while the others are already down."""
    live = [order(f"o{i}", node=f"n{i}") for i in range(1, 5)]

    def there(*down: str) -> ClusterState:
        ready = {name: "False" if name in down else "True" for name in ("n1", "n2", "n3", "n4")}
        return state(*(node(name, ready=status) for name, status in ready.items()), gpu_class())

    binder = Binder()
    binder.passes(there("n1"), *live)
    assert binder.passes(there("n1", "n2"), *live, after_s=GRACE_S).decisions == ()
    assert bound_to(binder.passes(there("n1"), *live, after_s=1)) == {"o1": "n2"}


def test_cordoned_nodes_and_nodes_that_hold_nothing_are_no_outage() -> None:
    """R24, R25: an operator who drains half of the cluster is no outage."""
    cordoned = [node(f"n{i}", unschedulable=True) for i in (1, 2)]
    empty = [node(f"e{i}", ready="False") for i in (1, 2)]
    live = [order("o1", node="n1"), order("o2", node="n2"), order("o3", node="gone")]
    result = decide(state(*cordoned, *empty, node("free"), gpu_class()), *live)
    assert (bound_to(result), result.notices) == ({"o3": "free"}, ())


def test_outage_stops_no_new_vm() -> None:
    """R24 bounds disruption, not placement."""
    gated = (vm("g"), vmi("g"), launcher("g"))
    live = [order("o1", node="n1"), order("o2", node="n2")]
    assert placed_on(decide(state(node("free"), gpu_class(), *gated), *live)) == {"default/g": "free"}


CLOSED: dict[str, dict[str, Any]] = {
    "cordoned": {"unschedulable": True},
    "NoSchedule": {"taints": [{"key": "x", "effect": "NoSchedule"}]},
}


@pytest.mark.parametrize("wrong", CLOSED.values(), ids=CLOSED.keys())
def test_idle_set_on_a_closed_node_moves_after_the_grace_if_there_is_room(wrong: dict[str, Any]) -> None:
    """R25."""
    binder = Binder()
    assert binder.passes(cluster(**wrong), HELD).wake_at_ms == binder.now_ms + GRACE_S * 1000
    assert binder.passes(cluster(**wrong), HELD, after_s=GRACE_S - 0.001).decisions == ()
    assert bound_to(binder.passes(cluster(**wrong), HELD, after_s=0.001)) == {"o": "gpu-2"}


@pytest.mark.parametrize("wrong", CLOSED.values(), ids=CLOSED.keys())
@pytest.mark.parametrize(
    "objects",
    [running_vm(claims="o"), starting_vm(), (vm(claims="o"), vmi(claims="o", pods=[]))],
    ids=["running", "starting", "coming"],
)
def test_set_that_is_not_idle_stays_on_a_closed_node(
    objects: tuple[Lean, ...], wrong: dict[str, Any]
) -> None:
    """R21, R25: VMIs are deleted for no other reason."""
    is_named = objects[0].spec.template.metadata.annotations  # type: ignore[attr-defined]
    held = order("o", node="gpu-1", vm_uid="vm-vm1") if is_named else template_claim(node="gpu-1")
    binder = Binder()
    for after_s in (0, GRACE_S, GRACE_S):
        result = binder.passes(cluster(*objects, units=4, **wrong), held, after_s=after_s)
        assert result.decisions == ()


@pytest.mark.parametrize("wrong", CLOSED.values(), ids=CLOSED.keys())
def test_idle_set_on_a_closed_node_stays_where_there_is_no_room(wrong: dict[str, Any]) -> None:
    """R25: and otherwise stays; it is not lost."""
    binder = Binder()
    for after_s in (0, GRACE_S, GRACE_S):
        assert binder.passes(cluster(spare=0, **wrong), HELD, after_s=after_s).decisions == ()


def test_node_that_fails_and_is_closed_loses_what_it_cannot_keep() -> None:
    """R20, R25: of two troubles the serious one decides."""
    failing = cluster(unschedulable=True, ready="False", spare=0)
    binder = Binder()
    binder.passes(failing, HELD)
    assert kinds_of(binder.passes(failing, HELD, after_s=GRACE_S)) == [LoseClaim]


def test_nothing_is_moved_on_old_news() -> None:
    """R24, R33."""
    stale = cluster(gone=True)
    stale.heard_ms -= 61_000
    assert decide(stale, HELD).decisions == ()


def test_vmi_with_two_troubles_is_deleted_once() -> None:
    """R21, R24: it counts once."""
    binder, wrong = Binder(), dict[str, Any](ready="False", taints=[NO_EXECUTE])
    live = template_claim(node="gpu-1")
    away = cluster(*running_vm(), ready="False")
    binder.passes(away, live)
    result = binder.passes(cluster(*running_vm(), **wrong), live, after_s=GRACE_S)
    assert kinds_of(result) == [DeleteVmi]


def test_launcher_that_is_stuck_on_a_failing_node_is_deleted_once() -> None:
    """R13 (ii), R21: two reasons in one pass are one deletion."""
    unschedulable = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
    binder = Binder()
    there = cluster(*starting_vm(status=unschedulable), ready="False")
    binder.passes(there, template_claim(node="gpu-1"))
    result = binder.passes(there, template_claim(node="gpu-1"), after_s=GRACE_S)
    assert kinds_of(result) == [DeletePod]
