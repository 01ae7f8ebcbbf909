"""What is wrong with a node, under which name it is remembered, and what is left there (R9, R20, R25)."""

from __future__ import annotations

from typing import Any

import pytest

from binder.core.keeping import Kind, Trouble, counts_from_ms, troubles_of
from binder.core.policy import Policy
from binder.core.room import NodeRoom, Room, Sites
from model.reasons import Reason
from model.taints import Taint
from tests.binder.deciding import bound_to, decide
from tests.binder.failing import NO_EXECUTE
from tests.builders import H100, NOW, NOW_MS, T4, gpu_class, node, order, state, vm

EXISTS = {"key": "broken", "operator": "Exists"}
TIMED = EXISTS | {"effect": "NoExecute"}
ROOM = NodeRoom({H100: 2})


@pytest.mark.parametrize(
    ("trouble", "name"),
    [
        (Trouble(Kind.NOT_READY), "node n not_ready"),
        (Trouble(Kind.SHORT, H100), f"node n short {H100}"),
        (Trouble(Kind.NO_EXECUTE, "h100", "a=b 30"), "node n no_execute h100 a=b 30"),
    ],
)
def test_name_stays_what_it_was_in_older_memories(trouble: Trouble, name: str) -> None:
    """R20: a grace that runs goes on after an update of the binder."""
    assert trouble.name("n") == name


def effect(of: str, **more: str) -> Taint:
    return Taint.model_validate({"key": "broken", "value": "yes", "effect": of} | more)


@pytest.mark.parametrize(
    ("taint", "tolerations", "found"),
    [
        (effect("NoSchedule"), [], [Trouble(Kind.NO_SCHEDULE, "h100", "broken=yes")]),
        (effect("NoSchedule"), [EXISTS], []),
        (effect("NoExecute"), [], [Trouble(Kind.NO_EXECUTE, "h100", "broken=yes", is_immediate=True)]),
        (effect("NoExecute"), [EXISTS], []),
        (
            effect("NoExecute"),
            [TIMED | {"tolerationSeconds": s} for s in (90, 30)],
            [Trouble(Kind.NO_EXECUTE, "h100", "broken=yes 30")],
        ),
        (
            effect("NoExecute", timeAdded=NOW),
            [TIMED | {"tolerationSeconds": s} for s in (90, 30)],
            [Trouble(Kind.NO_EXECUTE, "h100", "broken=yes 30", NOW_MS + 30_000)],
        ),
        (effect("PreferNoSchedule"), [], []),
    ],
)
def test_taint_is_a_trouble_of_the_class_that_does_not_tolerate_it(
    taint: Taint, tolerations: list[Any], found: list[Trouble]
) -> None:
    """R20, R25: with key and value; the shortest toleration counts."""
    one = node(taints=[taint.model_dump(by_alias=True)])
    assert troubles_of(one, [gpu_class(tolerations=tolerations)], ROOM, {}) == tuple(found)


def test_labels_are_a_trouble_of_a_class_and_units_of_a_resource() -> None:
    """R20: as many units as are held are enough."""
    picky = gpu_class("picky", nodeSelector={"pool": "gpu"})
    assert troubles_of(node(), [gpu_class(), picky], ROOM, {H100: 2}) == (Trouble(Kind.SELECTOR, "picky"),)
    short = (Trouble(Kind.SHORT, H100), Trouble(Kind.SHORT, T4))
    assert troubles_of(node(), [], ROOM, {H100: 3, T4: 1}) == short


@pytest.mark.parametrize(("seconds", "at_s"), [(-5, 0), (0, 0), (1, 1), (60, 60)])
def test_seconds_of_a_toleration_are_waited_for_and_negative_ones_are_none(seconds: int, at_s: int) -> None:
    """R20."""
    trouble = Trouble(Kind.NO_EXECUTE, "h100", f"a=b {seconds}")
    assert counts_from_ms(trouble, NOW_MS, Policy()) == NOW_MS + 1000 * at_s


def test_set_of_two_classes_leaves_for_the_trouble_of_one() -> None:
    """R16, R20: a NoExecute taint is not tolerated by *a* class of the set."""
    both = {"more": {T4: "1"}}
    tolerant = gpu_class("t4", T4, tolerations=[EXISTS])
    there = (node("gpu-1", taints=[NO_EXECUTE], **both), node("gpu-2", **both), gpu_class(), tolerant)  # type: ignore[arg-type]
    live = (order("h", node="gpu-1"), order("t", class_name="t4", node="gpu-1"))
    assert bound_to(decide(state(*there, vm(claims="h,t")), *live)) == {"h": "gpu-2", "t": "gpu-2"}


@pytest.mark.parametrize(
    ("wanted", "missed"),
    [
        ({"cpu": 4}, ""),
        ({"cpu": 5}, "cpu"),
        ({"disk": 1}, "disk"),
        ({"pods": 3}, ""),
        ({"pods": 4}, "pods"),
        ({}, ""),
    ],
)
def test_first_resource_that_is_short_is_missed(wanted: dict[str, int], missed: str) -> None:
    """R8e: what is left is enough; what a node does not offer it has none of."""
    assert NodeRoom({"cpu": 6, "pods": 3}, {"cpu": 2}).misses(wanted) == missed


def test_room_that_is_given_back_is_told_apart_each_time() -> None:
    """R11: what did not fit before it is tried again, and only then."""
    room, seen = Room({"a": NodeRoom({H100: 4})}), []
    for amount in (3, -1, 1, -1, 0, -1):
        room.take("a", H100, amount)
        seen.append(room.given_back)
    assert seen == [0, 1, 1, 2, 2, 3]


def test_nodes_are_kept_by_name_among_equals_however_they_are_named() -> None:
    """R9: a name may begin with a digit, a hyphen sorts before it."""
    sites = Sites((H100,), lambda _: None)
    for name in ("a", "9", "0-a"):
        sites.put(name, node(name), NodeRoom({H100: 2}))
    assert list(sites.with_at_least(2)) == ["0-a", "9", "a"]
    assert (sites.count_with_less(2), sites.emptiest_with_less(3)) == (0, "0-a")


def test_nodes_are_kept_from_full_to_empty() -> None:
    """R9: least free first, then the name; whatever comes, changes and goes."""
    stopped: set[str] = set()
    sites = Sites((H100,), lambda one: Reason.CLASS_CONSTRAINTS if one.metadata.name in stopped else None)
    for name, units in (("c", 4), ("b", 2), ("a", 2), ("d", 7)):
        sites.put(name, node(name), NodeRoom({H100: units}))
    assert list(sites.with_at_least(2)) == ["a", "b", "c", "d"]
    assert list(sites.with_at_least(3)) == ["c", "d"]
    assert (sites.count_with_less(2), sites.count_with_less(3), sites.count_with_less(4)) == (0, 2, 2)
    assert (sites.emptiest_with_less(2), sites.emptiest_with_less(3), sites.emptiest_with_less(5)) == (
        "",
        "a",
        "c",
    )
    sites.shift("c", -3)
    sites.put("d", node("d"), NodeRoom({H100: 2}, {H100: 2}))
    sites.put("a", node("a"), NodeRoom({T4: 2}))
    assert list(sites.with_at_least(0)) == ["d", "c", "b"]
    stopped.add("b")
    sites.put("b", node("b"), NodeRoom({H100: 2}))
    assert (sites.stops, list(sites.with_at_least(0))) == ({"b": Reason.CLASS_CONSTRAINTS}, ["d", "c"])
    stopped.clear()
    sites.put("b", node("b"), NodeRoom({H100: 2}))
    sites.drop("d")
    assert (sites.stops, list(sites.with_at_least(0)), sites.free) == ({}, ["c", "b"], {"c": 1, "b": 2})
