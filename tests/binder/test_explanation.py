"""Why a set waits, as data: R12."""

from __future__ import annotations

from binder.core.explanation import REMEDIES, stage_of_each_node
from binder.core.placement import Wish
from binder.core.relations import SetId
from binder.core.world import look_at
from model.nodes import Node
from model.reasons import Reason
from tests.binder.deciding import decide
from tests.builders import H100, gpu_class, node, raw_pod, started_vm, state

NODES = (
    node("a", 2, ready="False"),
    node("b", 2, labels={"zone": "1"}),
    node("c", 3),
    node("d", 2),
    node("e", 2),
    node("cpu-only", 0, resource="example.com/other"),
)


def cluster(units: int = 2, **changes: object) -> tuple[object, ...]:
    return (
        *NODES,
        gpu_class(),
        raw_pod("r", "c", 2),
        raw_pod("s", "d", 1),
        *started_vm("vm1", units, **changes),
    )


def test_counts_and_nearest_node_come_as_data_beside_the_text() -> None:
    """The nearest is the one with most free units, then the first by name."""
    there = state(*cluster(), raw_pod("t", "b"), raw_pod("u", "e"))  # type: ignore[arg-type]
    (waiting,) = decide(there).waiting
    assert waiting.stops == {Reason.CLASS_CONSTRAINTS: 1, Reason.NO_ROOM: 4}
    assert (waiting.reason, waiting.nearest) == (Reason.NO_ROOM, "b")
    assert waiting.message == (
        f"no room for 2 of {H100} on 5 nodes: "
        "1 not accepted by the class (taint, label, not Ready or cordoned), "
        "4 without enough free units; nearest is b with 1 free"
    )


def test_every_node_that_offers_something_has_the_stage_that_stopped_it() -> None:
    there = state(*cluster(memory="1Ti"))  # type: ignore[arg-type]
    world = look_at(there, {})
    claim_set = world.sets[SetId(is_order=False, key=("default", "vm1"))]
    wish = Wish(claim_set.needs, {"memory": 2**50}, refused=frozenset({"b"}))
    found = stage_of_each_node(wish, world.sites_for(claim_set), world.room, there.of(Node))
    assert found == {
        "a": Reason.CLASS_CONSTRAINTS,
        "b": Reason.NODES_REFUSED,
        "c": Reason.NO_ROOM,
        "d": Reason.NO_ROOM,
        "e": Reason.OTHER_RESOURCES,
    }


def test_node_that_would_take_the_set_has_no_stage() -> None:
    there = state(*cluster())  # type: ignore[arg-type]
    world = look_at(there, {})
    claim_set = world.sets[SetId(is_order=False, key=("default", "vm1"))]
    found = stage_of_each_node(Wish(claim_set.needs), world.sites_for(claim_set), world.room, there.of(Node))
    assert [name for name, stop in found.items() if stop is None] == ["b", "e"]


def test_each_reason_has_a_remedy() -> None:
    assert REMEDIES.keys() == set(Reason)
    assert all(REMEDIES.values())
