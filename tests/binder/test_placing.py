"""Whose turn it is, what is booked for it, and what comes back to where it runs (R9, R19, R23, R26, R27)."""

from __future__ import annotations

from typing import Any

import pytest

from model.claims import GPUClaim, GPUClass
from model.decisions import BindClaim, Keep, LoseClaim, WarnVmi
from model.meta import Lean
from model.reasons import Reason
from tests.binder.deciding import bound_to, decide, kinds_of, placed_on, reason_of
from tests.binder.test_volumes import claim as disk
from tests.binder.test_volumes import volume
from tests.builders import (
    AT,
    T4,
    budget,
    gpu_class,
    launcher,
    namespace,
    node,
    order,
    pinned_launcher,
    raw_pod,
    running_vm,
    started_vm,
    state,
    vm,
    vmi,
)

TWO_CLASSES = (gpu_class(), gpu_class("t4", T4))


def lost(name: str, units: int = 1, **more: Any) -> GPUClaim:
    return order(name, units, phase="Lost", lostFrom="x", **{"lostAt": "2026-12-01T05:00:00Z"} | more)


def test_orders_of_one_vm_wait_since_the_first_of_them() -> None:
    """R23: oldest first, and a set is as old as its oldest claim."""
    there = state(node(units=2), gpu_class(), vm(claims="o1,o2"))
    of_vm = [order("o1", created="2026-01-01T00:00:00Z"), order("o2", created="2026-12-31T00:00:00Z")]
    alone = order("alone", 2, created="2026-06-01T00:00:00Z")
    assert set(bound_to(decide(there, *of_vm, alone))) == {"o1", "o2"}


def test_set_is_lost_since_its_first_claim_was() -> None:
    """R23: oldest loss first; one that does not say when is the oldest."""
    there = state(node(units=2), gpu_class(), vm(claims="o1,o2"))
    of_vm = [lost("o1", lostAt="2026-01-01T00:00:00Z"), lost("o2", lostAt="2026-12-31T00:00:00Z")]
    alone = lost("alone", 2, lostAt="2026-06-01T00:00:00Z")
    assert set(bound_to(decide(there, *of_vm, alone))) == {"o1", "o2"}
    unsaid = lost("unsaid", 2, lostAt=None)
    assert set(bound_to(decide(there, *of_vm, unsaid))) == {"unsaid"}


def test_memory_of_a_launcher_is_booked_with_its_units() -> None:
    """R8e: what one set of the pass takes, the next one does not see."""
    big = {"requests": {"memory": "300Gi"}}
    there = state(node(units=4), gpu_class(), *started_vm("a", **big), *started_vm("b", **big))
    result = decide(there)
    assert placed_on(result) == {"default/a": "gpu-1"}
    assert reason_of(result) is Reason.OTHER_RESOURCES


@pytest.mark.parametrize(
    ("held", "chosen"),
    [
        ({"a": [1], "b": [2]}, "b"),
        ({"a": [2], "b": [1]}, "a"),
        ({"a": [1], "b": [1]}, "b"),
        ({"b": [1], "c": [1]}, "b"),
    ],
    ids=["most on b", "most on a", "as much on both: the fuller", "as full: the name"],
)
def test_set_on_two_nodes_goes_to_the_one_that_holds_most_of_it(
    held: dict[str, list[int]], chosen: str
) -> None:
    """R9: then the fuller one, then the name."""
    claims = [order(f"{name}{n}", n, node=name, vm_uid="vm-vm1") for name, each in held.items() for n in each]
    names = ",".join(one.metadata.name for one in claims)
    units = sum(one.spec.units for one in claims)
    sizes = {"a": 9, "b": 7, "c": 7}
    nodes = [node(name, sizes[name]) for name in "cba"]
    objects = (vm(claims=names), vmi(claims=names), launcher(units=units))
    assert placed_on(decide(state(*nodes, gpu_class(), *objects), *claims)) == {"default/vm1": chosen}


def test_lost_claims_of_a_run_that_ends_stay_lost_until_it_has_ended() -> None:
    """R22, R23: what follows is seen then."""
    lost = order("o", phase="Lost", lostFrom="a", lostAt=AT, vm_uid="vm-vm1")
    ending = (vm(claims="o"), vmi(phase="Running", node="gpu-1", claims="o", deleting=True))
    there = state(node(), gpu_class(), *ending, pinned_launcher(node="gpu-1", phase="Running"))
    assert bound_to(decide(there, lost)) == {}


@pytest.mark.parametrize(("pods", "want"), [(3, {"default/vm1": "gpu-1"}), (2, {})])
def test_every_pod_on_a_node_takes_one_of_its_pods(pods: int, want: dict[str, str]) -> None:
    """R8e, R26: whatever it asks for."""
    there = [raw_pod(name, "gpu-1", resource="cpu") for name in ("p", "q")]
    result = decide(state(node(more={"pods": str(pods)}), gpu_class(), *there, *started_vm("vm1")))
    assert placed_on(result) == want


@pytest.mark.parametrize("refusing", ["h100", "t4"])
def test_set_of_two_classes_goes_where_both_accept_the_node(refusing: str) -> None:
    """R8a: every class of the set."""
    selects = {"nodeSelector": {"pool": "gpu"}}
    classes = (
        gpu_class(**(selects if refusing == "h100" else {})),
        gpu_class("t4", T4, **(selects if refusing == "t4" else {})),
    )
    nodes = (node("a", 1, more={T4: "1"}), node("b", 2, more={T4: "2"}, labels={"pool": "gpu"}))
    there = (vm(), vmi(), launcher(requests={T4: "1"}))
    assert placed_on(decide(state(*nodes, *classes, *there))) == {"default/vm1": "b"}
    assert reason_of(decide(state(nodes[0], *classes, *there))) is Reason.CLASS_CONSTRAINTS


def test_volume_out_of_reach_takes_a_set_off_the_node_that_holds_it() -> None:
    """R8c, R9: the node that holds most of it goes first, and has to be one that its launcher can run on."""
    mounted = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "disk"}}]}
    objects = (vm(claims="o"), vmi(claims="o"), launcher(**mounted))
    disks = (disk(volumeName="pv"), volume("pv", "b"))
    nodes = [node(name, labels={"host": name}) for name in "ab"]
    result = decide(state(*nodes, gpu_class(), *objects, *disks), order("o", node="a", vm_uid="vm-vm1"))
    assert placed_on(result) == {"default/vm1": "b"}


def test_what_claims_leave_is_free_once_they_have_left_but_for_what_the_launcher_there_asks_for() -> None:
    """R3, R26: a write of the set that leaves may fail while another set's succeeds."""
    migration = {"kubevirt.io/migrationJobUID": "mig-1"}
    source = pinned_launcher(pin="a", node="a", phase="Running")
    target = pinned_launcher(pin="b", node="b", phase="Running", uid="pod-2", pod="target", labels=migration)
    run = vmi(phase="Running", node="b", claims="o,t", pods=["pod-vm1", "pod-2"])
    there = state(
        *(node(name, 3, more={T4: "1"}) for name in "ab"), *TWO_CLASSES, vm(claims="o,t"), run, source, target
    )
    leaving = (
        order("o", 3, node="a", vm_uid="vm-vm1"),
        order("t", class_name="t4", node="a", vm_uid="vm-vm1"),
    )
    t1 = order("t1", class_name="t4")
    assert bound_to(decide(there, *leaving, order("two", 2), t1)) == {"o": "b", "t": "b"}
    left = (order("o", 3, node="b", vm_uid="vm-vm1"), order("t", class_name="t4", node="b", vm_uid="vm-vm1"))
    assert bound_to(decide(there, *left, order("two", 2))) == {"two": "a"}
    assert bound_to(decide(there, *left, order("three", 3))) == {}
    assert bound_to(decide(there, *left, t1)) == {"t1": "a"}, "no launcher asks for it"


def runs_on(*nodes: Lean, claims: str = "o", units: int = 1) -> tuple[Lean, ...]:
    return (*nodes, *TWO_CLASSES, *running_vm(units=units, claims=claims))


@pytest.mark.parametrize(
    ("nodes", "asked", "live", "back"),
    [
        ([node(units=2)], 2, [lost("o", 2)], {"o"}),
        ([node(units=4)], 1, [lost("o", 2)], {"o"}),
        ([node(units=1)], 1, [lost("o", 2)], set()),
        ([node(units=1)], 1, [lost("o"), lost("p", class_name="t4")], set()),
        ([node(units=1, more={T4: "1"})], 1, [lost("o"), lost("p", class_name="t4")], {"o", "p"}),
        ([node(units=2)], 2, [order("o", node="gpu-1", vm_uid="vm-vm1"), order("p")], {"p"}),
        ([node(units=1)], 1, [order("o", node="gpu-1", vm_uid="vm-vm1"), order("p")], set()),
        ([node("other", 9)], 1, [lost("o")], set()),
        ([node(units=2, unschedulable=True)], 1, [lost("o")], {"o"}),
        ([node(units=2, taints=[{"key": "x", "effect": "NoSchedule"}])], 1, [lost("o")], {"o"}),
        ([node(units=2, taints=[{"key": "x", "effect": "NoExecute"}])], 1, [lost("o")], set()),
    ],
    ids=[
        "its own units are enough", "with free ones", "one is missing", "none of the other resource",
        "both resources", "beside what is held", "nothing free beside what is held", "node gone",
        "node cordoned", "node closed", "node drained",
    ],
)  # fmt: skip
def test_claims_come_back_to_their_launcher_where_the_units_are(
    nodes: list[Lean], asked: int, live: list[GPUClaim], back: set[str]
) -> None:
    """R19, R22, R23: what the launcher takes as a raw pod and what its set holds there are its own."""
    names = ",".join(one.metadata.name for one in live)
    result = decide(state(*runs_on(*nodes, claims=names, units=asked)), *live)
    assert set(bound_to(result)) == back
    is_lost = any(one.status.phase == "Lost" for one in live)
    why = [] if back else [Reason.NODE_LOST if is_lost else Reason.NO_ROOM]
    assert [one.reason for one in result.waiting] == why


def test_claim_that_comes_back_covers_no_more_than_itself() -> None:
    """R26: of a launcher's three units an order of one covers one; two stay raw, and one of four is free."""
    there = state(*runs_on(node(units=4), units=3))
    assert set(bound_to(decide(there, lost("o"), order("one")))) == {"o", "one"}
    assert set(bound_to(decide(there, lost("o"), order("two", 2)))) == {"o"}


def test_claim_that_its_launcher_asks_nothing_for_takes_its_units() -> None:
    """R26: nothing of it was counted before."""
    there = state(*runs_on(node(units=1, more={T4: "1"}), claims="t"))
    live = [lost("t", class_name="t4"), order("other", class_name="t4")]
    assert bound_to(decide(there, *live)) == {"t": "gpu-1"}


def test_partly_lost_set_is_whole_again_where_its_launcher_runs() -> None:
    """R17, R19."""
    held = order("o", node="gpu-1", vm_uid="vm-vm1")
    there = state(*runs_on(node(units=2), claims="o,p", units=2))
    assert kinds_of(decide(there, held, lost("p"))) == [BindClaim]


def test_partly_lost_set_that_a_budget_stops_is_lost_whole() -> None:
    """R17, R27: what is new in it may not be placed, and it is placed whole or not at all."""
    held = order("o", node="gpu-1", vm_uid="vm-vm1")
    limits = (namespace(), budget(h100=2))
    there = state(*runs_on(node(units=3), claims="o,p,q", units=3), *limits)
    result = decide(there, held, lost("p", vm_uid="vm-vm1"), order("q"))
    assert [one.claim.name for one in result.decisions if isinstance(one, LoseClaim)] == ["o"]
    assert bound_to(result) == {}


def test_set_with_nothing_new_starts_under_a_budget_that_allows_nothing() -> None:
    """R27: a budget takes nothing away."""
    objects = (vm(claims="o"), vmi(claims="o"), launcher())
    there = state(node(), gpu_class(), namespace(), budget("a", parent="a", h100=1), *objects)
    held = order("o", node="gpu-1", vm_uid="vm-vm1")
    assert placed_on(decide(there, held)) == {"default/vm1": "gpu-1"}


def test_missing_order_is_the_reason_also_where_a_budget_would_refuse_the_rest() -> None:
    """R12: one reason; what the tenant can mend first."""
    objects = (vm(claims="o,gone"), vmi(claims="o,gone"), launcher())
    there = state(node(), gpu_class(), namespace(), budget(h100=0), *objects)
    assert {one.reason for one in decide(there, order("o")).waiting} == {Reason.CLAIM_NOT_FOUND}


def unkept_class() -> GPUClass:
    """One that the pass decides over before any set."""
    fresh = gpu_class("t4", T4)
    return fresh.model_copy(update={"metadata": fresh.metadata.model_copy(update={"finalizers": ()})})


def test_loss_of_the_rest_says_so_and_is_one_decision_of_several() -> None:
    """R17: of a gated set that no node takes whole."""
    objects = (vm(claims="o,p"), vmi(claims="o,p"), launcher(units=3))
    live = (order("o", node="gpu-1", vm_uid="vm-vm1"), lost("p", 2, vm_uid="vm-vm1"))
    keep, lose, *_ = decide(state(node(units=2), gpu_class(), unkept_class(), *objects), *live).decisions
    assert isinstance(keep, Keep)
    assert isinstance(lose, LoseClaim)
    assert lose.message == "the rest of its set is Lost"


def test_loss_of_what_is_held_beside_a_lost_claim_says_so_and_is_one_decision_of_several() -> None:
    """R17: the class that is new in the same pass is kept all the same."""
    live = (order("o", node="gpu-1", vm_uid="vm-vm1"), lost("p", 2, vm_uid="vm-vm1"))
    keep, lose = decide(state(node(units=2), gpu_class(), unkept_class(), vm(claims="o,p")), *live).decisions
    assert isinstance(keep, Keep)
    assert isinstance(lose, LoseClaim)
    assert lose.message == "another claim of its set is Lost, and no node takes them all"


def running_on_b(*nodes: Lean, claims: str) -> tuple[Lean, ...]:
    """A VM that has gone from a to b, where its launcher asks for one H100."""
    return (*nodes, *TWO_CLASSES, *running_vm(node="b", claims=claims))


def test_claims_follow_and_what_was_never_held_waits_for_its_turn() -> None:
    """R19: what is new needs room; what was held is there already."""
    live = (order("o", node="a", vm_uid="vm-vm1"), order("new", vm_uid="vm-vm1"))
    result = decide(state(*running_on_b(node("a"), node("b", 1), claims="o,new")), *live)
    assert bound_to(result) == {"o": "b"}


def test_claims_follow_to_a_node_that_the_log_does_not_know_yet() -> None:
    """R19: reality wins."""
    held = order("o", node="a", vm_uid="vm-vm1")
    assert bound_to(decide(state(*running_on_b(node("a"), claims="o")), held)) == {"o": "b"}


@pytest.mark.parametrize("units_on_b", [0, 1])
def test_order_that_the_launcher_asks_nothing_for_follows_only_where_there_is_room(units_on_b: int) -> None:
    """R19: no unit of it is taken there yet; the tenant is told."""
    live = (order("o", node="a", vm_uid="vm-vm1"), order("t", class_name="t4", node="a", vm_uid="vm-vm1"))
    there = (node("a", more={T4: "1"}), node("b", more={T4: str(units_on_b)}))
    result = decide(state(*running_on_b(*there, claims="o,t")), *live)
    if units_on_b:
        assert bound_to(result) == {"o": "b", "t": "b"}
        return
    assert kinds_of(result) == [LoseClaim, LoseClaim, WarnVmi]
    warn = result.decisions[-1]
    assert isinstance(warn, WarnVmi)
    text = "its VM is on b, which has not the units for all of its claims"
    assert (warn.reason, warn.message) == (Reason.NODE_LOST, text)


def test_lost_rest_of_a_set_beside_its_running_launcher_says_so() -> None:
    """R17."""
    live = (order("o", node="b", vm_uid="vm-vm1"), lost("p", 2, vm_uid="vm-vm1"))
    lose = decide(state(*running_on_b(node("b", 1), claims="o,p")), *live).decisions[0]
    assert isinstance(lose, LoseClaim)
    assert lose.message == "another claim of its set is Lost, and no node takes them all"


def test_budget_counts_what_the_pass_has_placed_beside_what_is_held() -> None:
    """R27: two are allowed, one is held, so one of three gets one; a set asks for all it wants at once."""
    there = (node(units=9), gpu_class(), namespace(), budget(h100=2))
    held = order("held", node="gpu-1")
    assert set(bound_to(decide(state(*there), held, order("a"), order("b"), order("c")))) == {"a"}
    pair = [order("a"), order("b")]
    assert bound_to(decide(state(*there, vm(claims="a,b")), held, *pair)) == {}
    assert set(bound_to(decide(state(*there, vm(claims="a,b")), *pair))) == {"a", "b"}


def test_two_raw_pods_on_one_node_take_what_both_ask_for() -> None:
    """R26."""
    pods = (raw_pod("r", "gpu-1"), raw_pod("s", "gpu-1"))
    there = state(node(units=3), gpu_class(), *pods)
    assert bound_to(decide(there, order("two", 2))) == {}
    assert bound_to(decide(there, order("one"))) == {"one": "gpu-1"}
