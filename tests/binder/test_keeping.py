"""What a node cannot keep, from when on, and which of its sets leave it (R20)."""

from __future__ import annotations

from typing import Any

import pytest

from model.claims import GPUClaim
from model.decisions import BindClaim, DeletePod, DeleteVmi, LoseClaim
from model.reasons import Reason
from tests.binder.deciding import Binder, bound_to, decide, kinds_of, placed_on, reason_of
from tests.binder.failing import GRACE_S, HELD, NO_EXECUTE, cluster, nodes
from tests.builders import (
    T4,
    gpu_class,
    launcher,
    node,
    order,
    running_vm,
    starting_vm,
    state,
    template_claim,
    vm,
    vmi,
)

AFTER_GRACE: dict[str, dict[str, Any]] = {
    "not Ready": {"ready": "False"},
    "Unknown": {"ready": "Unknown"},
    "label gone": {"labels": {}},
    "label changed": {"labels": {"pool": "cpu"}},
    "short": {"units": 0},
    "resource gone": {"resource": T4},
    "not-ready taint": {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]},
    "unreachable taint": {"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]},
}
AT_ONCE: dict[str, dict[str, Any]] = {"gone": {"gone": True}, "NoExecute": {"taints": [NO_EXECUTE]}}
NEVER: dict[str, dict[str, Any]] = {
    "nothing": {},
    "PreferNoSchedule": {"taints": [{"key": "x", "effect": "PreferNoSchedule"}]},
    "fewer units than before, enough for what is booked": {"units": 1},
    "less memory": {"more": {"memory": "1Gi"}},
}


@pytest.mark.parametrize("wrong", AFTER_GRACE.values(), ids=AFTER_GRACE.keys())
def test_trouble_that_may_pass_moves_a_set_only_after_the_grace(wrong: dict[str, Any]) -> None:
    """R20: device plugins restart, labels flap."""
    binder = Binder()
    first = binder.passes(cluster(**wrong), HELD)
    assert (first.decisions, first.wake_at_ms) == ((), binder.now_ms + GRACE_S * 1000)
    assert binder.passes(cluster(**wrong), HELD, after_s=GRACE_S - 0.001).decisions == ()
    assert bound_to(binder.passes(cluster(**wrong), HELD, after_s=0.001)) == {"o": "gpu-2"}


@pytest.mark.parametrize("wrong", AFTER_GRACE.values(), ids=AFTER_GRACE.keys())
def test_trouble_that_passes_begins_its_grace_anew(wrong: dict[str, Any]) -> None:
    """R20: for longer than the grace without a break."""
    binder = Binder()
    binder.passes(cluster(**wrong), HELD)
    binder.passes(cluster(), HELD, after_s=200)
    assert binder.passes(cluster(**wrong), HELD, after_s=200).decisions == ()


@pytest.mark.parametrize("wrong", AT_ONCE.values(), ids=AT_ONCE.keys())
def test_trouble_that_does_not_pass_moves_a_set_at_once(wrong: dict[str, Any]) -> None:
    """R20."""
    assert bound_to(decide(cluster(**wrong), HELD)) == {"o": "gpu-2"}


def test_node_that_is_replaced_under_its_name_has_the_grace_to_offer_what_is_held() -> None:
    """R20: a claim names a node; the new machine's device plugin is still to come."""
    fresh = cluster(units=0)
    one = fresh.shelves["Node"].models["", "gpu-1"]
    meta = one.metadata.model_copy(update={"uid": "another"})
    fresh.shelves["Node"].models["", "gpu-1"] = one.model_copy(update={"metadata": meta})
    binder = Binder()
    binder.passes(cluster(), HELD)
    assert binder.passes(fresh, HELD, after_s=1).decisions == ()
    assert binder.passes(cluster(), HELD, after_s=60).decisions == ()
    binder.passes(fresh, HELD, after_s=1)
    assert bound_to(binder.passes(fresh, HELD, after_s=GRACE_S)) == {"o": "gpu-2"}


def test_node_that_is_being_deleted_is_left_at_once() -> None:
    """R8a, R20: it takes nothing new and will not keep what it has."""
    gpu_1, gpu_2 = nodes()
    meta = gpu_1.metadata.model_copy(update={"deletion_timestamp": "2026-12-01T00:00:00Z"})  # type: ignore[attr-defined]
    dying = gpu_1.model_copy(update={"metadata": meta})
    assert bound_to(decide(state(dying, gpu_2, gpu_class()), HELD)) == {"o": "gpu-2"}


@pytest.mark.parametrize("wrong", NEVER.values(), ids=NEVER.keys())
def test_what_keeps_nothing_away_moves_nothing(wrong: dict[str, Any]) -> None:
    """R20."""
    binder = Binder()
    for after_s in (0, 3600, 3600):
        assert binder.passes(cluster(**wrong), HELD, after_s=after_s).decisions == ()


def test_no_execute_taint_counts_for_the_classes_that_do_not_tolerate_it() -> None:
    """R20: by a class of the set; one that tolerates it without end keeps its sets there."""
    tolerant = gpu_class("t4", T4, tolerations=[{"key": "broken", "operator": "Exists"}])
    tainted = node("gpu-1", taints=[NO_EXECUTE], more={T4: "2"})
    both = state(tainted, node("gpu-2", more={T4: "2"}), gpu_class(), tolerant)
    live = (order("h", node="gpu-1"), order("t", class_name="t4", node="gpu-1"))
    assert bound_to(decide(both, *live)) == {"h": "gpu-2"}


def test_toleration_seconds_run_from_when_the_taint_was_added() -> None:
    """R20: tolerationSeconds honoured; the shortest of several counts, a negative one not at all."""
    taint = NO_EXECUTE | {"timeAdded": "2027-01-15T08:00:00Z"}  # NOW_MS
    matching = [{"key": "broken", "operator": "Exists", "effect": "NoExecute"}]
    short, long = ([matching[0] | {"tolerationSeconds": s}] for s in (30, 90))
    tolerant = gpu_class(tolerations=[*matching, *long, *short])
    binder, tainted = Binder(), (node("gpu-1", taints=[taint]), node("gpu-2"), tolerant)
    assert binder.passes(state(*tainted), HELD, after_s=29.999).decisions == ()
    assert bound_to(binder.passes(state(*tainted), HELD, after_s=0.001)) == {"o": "gpu-2"}
    negative = gpu_class(tolerations=[matching[0] | {"tolerationSeconds": -5}])
    assert bound_to(decide(state(*tainted[:2], negative), HELD)) == {"o": "gpu-2"}


def test_toleration_seconds_run_from_the_first_look_where_the_taint_does_not_say_when() -> None:
    """R20."""
    minute = {"key": "broken", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
    tolerant = gpu_class(tolerations=[minute])
    tainted = state(node("gpu-1", taints=[NO_EXECUTE]), node("gpu-2"), tolerant)
    binder = Binder()
    assert binder.passes(tainted, HELD).wake_at_ms == binder.now_ms + 60_000
    assert bound_to(binder.passes(tainted, HELD, after_s=60)) == {"o": "gpu-2"}


TIMED = {"key": "broken", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}


@pytest.mark.parametrize("added", [{}, {"timeAdded": "2027-01-15T08:00:00Z"}], ids=["no time", "timeAdded"])
def test_a_taint_that_is_tolerated_for_a_while_takes_nothing_new(added: dict[str, str]) -> None:
    """R8a, R20: what a node would have to give up in a minute it is not given; the scheduler would."""
    closing = node("gpu-1", taints=[NO_EXECUTE | added])
    for tolerations in ([TIMED], [TIMED | {"tolerationSeconds": None}, TIMED]):
        result = decide(state(closing, gpu_class(tolerations=tolerations)), order("o"))
        assert reason_of(result) is Reason.CLASS_CONSTRAINTS
    for_good = gpu_class(tolerations=[TIMED | {"tolerationSeconds": None}])
    assert bound_to(decide(state(closing, for_good), order("o"))) == {"o": "gpu-1"}


def test_what_a_timed_taint_has_driven_away_does_not_come_back_to_it() -> None:
    """R20, R22, R23: Lost once, not Lost and rebound in turn."""
    closing = state(node("gpu-1", taints=[NO_EXECUTE]), gpu_class(tolerations=[TIMED]))
    binder = Binder()
    assert binder.passes(closing, HELD).decisions == ()
    assert kinds_of(binder.passes(closing, HELD, after_s=60)) == [LoseClaim]
    lost = order("o", phase="Lost", lostFrom="gpu-1", lostAt="2027-01-15T08:01:00Z")
    assert binder.passes(closing, lost).decisions == ()


def test_a_node_whose_taint_is_still_tolerated_does_not_fail() -> None:
    """R24: two of three nodes are tainted, both keep their sets for now; gpu-9 is gone and loses its own."""
    tainted = [node(f"gpu-{n}", taints=[NO_EXECUTE]) for n in (1, 2)]
    cluster = state(*tainted, node("gpu-3"), gpu_class(tolerations=[TIMED]))
    live = [order(f"o{n}", node=f"gpu-{n}") for n in (1, 2)]
    binder = Binder()
    result = binder.passes(cluster, *live, order("o9", node="gpu-9"))
    assert (bound_to(result), result.notices) == ({"o9": "gpu-3"}, ())
    outage = binder.passes(cluster, *live, after_s=60)
    assert (outage.decisions, len(outage.notices)) == ((), 1)


def held_since(name: str, minute: int, units: int = 1) -> GPUClaim:
    return order(name, units, node="gpu-1", boundAt=f"2026-12-01T05:{minute:02d}:00Z")


@pytest.mark.parametrize(
    ("units_left", "live", "leaving"),
    [
        (3, [held_since("old", 1, 2), held_since("new", 2, 2)], {"new"}),
        (2, [held_since("old", 1, 2), held_since("new", 2, 2)], {"new"}),
        (1, [held_since("old", 1, 2), held_since("new", 2, 2)], {"new", "old"}),
        (3, [held_since("a", 1), held_since("b", 3), held_since("c", 2), held_since("d", 4)], {"d"}),
        (2, [held_since("large", 2, 4), held_since("late", 3, 1)], {"large"}),
        (1, [held_since("large", 2, 4), held_since("late", 3, 1)], {"large"}),
        (1, [held_since("large", 1, 4), held_since("b", 2), held_since("late", 3)], {"large", "late"}),
        (0, [held_since("a", 1), held_since("b", 2)], {"a", "b"}),
    ],
)
def test_of_a_short_node_only_as_many_leave_as_must_latest_bound_first(
    units_left: int, live: list[GPUClaim], leaving: set[str]
) -> None:
    """R20."""
    short = state(node("gpu-1", units_left), node("gpu-2", 8), gpu_class())
    binder = Binder()
    assert binder.passes(short, *live).decisions == ()
    assert set(bound_to(binder.passes(short, *live, after_s=GRACE_S))) == leaving


def test_set_that_holds_nothing_of_what_is_short_stays() -> None:
    """R20: whatever was bound last."""
    short = node("gpu-1", 1, more={T4: "2"})
    there = state(short, node("gpu-2", 8, more={T4: "8"}), gpu_class(), gpu_class("t4", T4))
    late = order("t", class_name="t4", node="gpu-1", boundAt="2026-12-01T05:59:00Z")
    live = [held_since("old", 1), held_since("new", 2), late]
    binder = Binder()
    binder.passes(there, *live)
    assert set(bound_to(binder.passes(there, *live, after_s=GRACE_S))) == {"new"}


def test_of_equally_old_sets_the_idle_go_first_and_those_that_never_ran_last() -> None:
    """R20, R21: a VMI that never ran costs its VM a start back-off."""
    objects = (*running_vm("ran"), *starting_vm("fresh"))
    live = [template_claim("ran", node="gpu-1"), template_claim("fresh", node="gpu-1"), HELD]

    def leaving(units: int) -> list[type]:
        short = state(node("gpu-1", units), node("gpu-2", 8), gpu_class(), *objects)
        binder = Binder()
        binder.passes(short, *live)
        return kinds_of(binder.passes(short, *live, after_s=GRACE_S))

    assert leaving(2) == [BindClaim]
    assert leaving(1) == [BindClaim, DeleteVmi]
    assert leaving(0) == [BindClaim, DeleteVmi, DeletePod]


def test_what_a_gated_launcher_took_away_need_not_leave_a_second_time() -> None:
    """R20: step 3 has moved a set off the short node; the others fit then."""
    gated = (vm("g"), vmi("g", claims="late"), launcher("g"))
    live = [
        order("late", 1, node="gpu-1", vm_uid="vm-g", boundAt="2026-12-01T05:00:00Z"),
        held_since("old", 9),
    ]
    short = state(node("gpu-1", 1), node("gpu-2", 8), gpu_class(), *gated)
    binder = Binder()
    binder.passes(short, *live, after_s=0)
    result = binder.passes(short, *live, after_s=GRACE_S)
    assert placed_on(result) == {"default/g": "gpu-2"}
    assert set(bound_to(result)) == {"late"}


def test_set_of_two_resources_is_counted_and_moved_in_both() -> None:
    """R20, R21: short of one of them is enough, and the target needs both."""
    both = (gpu_class(), gpu_class("t4", T4), vm(claims="h,t"))
    live = [order("h", node="gpu-1"), order("t", class_name="t4", node="gpu-1")]
    short = node("gpu-1", 2, more={T4: "0"})
    binder, there = Binder(), state(short, node("h-only", 8), node("gpu-2", 1, more={T4: "1"}), *both)
    binder.passes(there, *live)
    assert bound_to(binder.passes(there, *live, after_s=GRACE_S)) == {"h": "gpu-2", "t": "gpu-2"}
