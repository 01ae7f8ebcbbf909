"""Why a set waits, as data: R12."""

from __future__ import annotations

from binder.core.explanation import REMEDIES, explain, stage_of_each_node
from binder.core.placement import Wish
from binder.core.relations import SetId
from binder.core.world import look_at
from model.nodes import Node
from model.reasons import Reason
from model.selectors import NodeSelector
from tests.binder.deciding import decide
from tests.binder.test_volumes import claim as disk
from tests.binder.test_volumes import volume
from tests.builders import H100, T4, gpu_class, launcher, node, order, raw_pod, started_vm, state, vm, vmi

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


def test_wish_for_two_resources_counts_each_node_once_and_names_the_nearest() -> None:
    """The order of the nodes by their free units tells it for one resource only."""
    nodes = [node(name, 2, more={T4: t4}) for name, t4 in (("a", "0"), ("b", "1"), ("c", "1"), ("z", "9"))]
    pods = (raw_pod("r", "b", 1), raw_pod("s", "z", 1))
    there = (*nodes, *pods, gpu_class(), gpu_class("t4", T4))
    wanted = started_vm("vm1", 2, requests={T4: "1"})
    full = state(*there, raw_pod("t", "c", 1), *wanted)  # type: ignore[arg-type]
    (waiting,) = decide(full).waiting
    assert (waiting.stops, waiting.nearest) == ({Reason.NO_ROOM: 4}, "z")
    assert waiting.message == (
        f"no room for 2 of {H100}, 1 of {T4} on 4 nodes: "
        "4 without enough free units; nearest is z with 10 free"
    )
    big = started_vm("vm1", 2, requests={T4: "1", "memory": "600Gi"})
    (waiting,) = decide(state(*there, *big)).waiting  # type: ignore[arg-type]
    assert waiting.stops == {Reason.NO_ROOM: 3, Reason.OTHER_RESOURCES: 1}
    assert (waiting.reason, waiting.nearest) == (Reason.OTHER_RESOURCES, "c")
    assert waiting.message.endswith("; nearest is c, short of memory")


def test_what_a_set_holds_on_a_node_counts_as_free_there() -> None:
    """R8e, R12: gpu-1 is full of its own units; it needs one more."""
    objects = (vm(claims="o"), vmi(claims="o"), launcher(units=3))
    held = order("o", 2, node="gpu-1", vm_uid="vm-vm1")
    there = state(
        node("gpu-0", 3),
        node("gpu-1", 3),
        raw_pod("r", "gpu-1", 1),
        raw_pod("s", "gpu-0", 2),
        gpu_class(),
        *objects,
    )
    (waiting,) = decide(there, held).waiting
    assert (waiting.reason, waiting.nearest) == (Reason.NO_ROOM, "gpu-1")
    assert waiting.message.endswith("2 without enough free units; nearest is gpu-1 with 2 free")


def test_no_node_is_nearest_where_none_gets_as_far_as_its_room() -> None:
    """R12: what stops a node before that has no distance."""
    objects = (vm(claims="o"), vmi(claims="o"), launcher(node_selector={"x": "y"}))
    held = order("o", node="gpu-1", vm_uid="vm-vm1")
    (waiting,) = decide(state(node("gpu-1"), gpu_class(), *objects), held).waiting
    assert (waiting.reason, waiting.nearest) == (Reason.POD_CONSTRAINTS, "")
    assert "nearest" not in waiting.message


def test_too_large_counts_the_nodes_that_offer_some() -> None:
    """One unit is some of it, none is not."""
    there = state(node("a", 1), node("b", 0), node("c", 2, resource=T4), gpu_class(), *started_vm("vm1", 2))
    (waiting,) = decide(there).waiting
    assert (waiting.reason, waiting.message) == (
        Reason.TOO_LARGE, f"no node offers 2 of {H100}: 1 have some of it"
    )  # fmt: skip


def test_stages_come_in_their_order_whatever_node_comes_first() -> None:
    """R8: a, b, e; and each node once, by name."""
    nodes = [node("m", 2, labels={"x": "y"}), node("a", 2), node("z", ready="False")]
    wanted = started_vm("vm1", 2, node_selector={"x": "y"})
    there = state(*nodes, raw_pod("r", "m", 1), gpu_class(), *wanted)
    (waiting,) = decide(there).waiting
    assert list(waiting.stops) == [Reason.CLASS_CONSTRAINTS, Reason.POD_CONSTRAINTS, Reason.NO_ROOM]
    world = look_at(there, {})
    claim_set = world.sets[SetId(is_order=False, key=("default", "vm1"))]
    found = stage_of_each_node(Wish(claim_set.needs), world.sites_for(claim_set), world.room, there.of(Node))
    assert list(found) == ["a", "m", "z"]


def test_volume_out_of_reach_is_a_stage_of_each_node() -> None:
    """R8c: looked at node by node."""
    there = state(node("a"), gpu_class(), *started_vm("vm1"))
    world = look_at(there, {})
    claim_set = world.sets[SetId(is_order=False, key=("default", "vm1"))]
    elsewhere = NodeSelector.model_validate(
        {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]}
    )
    wish = Wish(claim_set.needs, reach=(elsewhere,))
    sites, nodes = world.sites_for(claim_set), there.of(Node)
    assert stage_of_each_node(wish, sites, world.room, nodes) == {"a": Reason.VOLUME_UNREACHABLE}
    assert explain(wish, sites, world.room, nodes).reason is Reason.VOLUME_UNREACHABLE


def test_room_that_has_come_free_while_the_pass_went_on_says_so() -> None:
    """R12: what one line says holds for the cluster as the pass leaves it."""
    there = state(node("a"), gpu_class(), *started_vm("vm1"))
    world = look_at(there, {})
    claim_set = world.sets[SetId(is_order=False, key=("default", "vm1"))]
    for wish in (Wish(claim_set.needs), Wish(claim_set.needs, refused=frozenset({"b"}))):
        found = explain(wish, world.sites_for(claim_set), world.room, there.of(Node))
        assert (found.reason, found.message) == (Reason.NO_ROOM, f"room for 1 of {H100} has just come free")
    alone = explain(
        Wish(claim_set.needs, excluded="a"), world.sites_for(claim_set), world.room, there.of(Node)
    )
    assert (alone.reason, alone.message) == (Reason.NO_ROOM, f"no other node offers 1 of {H100}")


def test_node_that_offers_none_of_two_resources_does_not_offer_some() -> None:
    """R12: what it does not name it has none of."""
    wanted = started_vm("vm1", 1, requests={T4: "9"})
    there = state(node("a", 0), node("b", 1), gpu_class(), gpu_class("t4", T4), *wanted)
    (waiting,) = decide(there).waiting
    assert waiting.message == f"no node offers 1 of {H100}, 9 of {T4}: 1 have some of it"


def test_nearest_of_a_set_with_a_disk_is_a_node_that_its_disk_reaches() -> None:
    """R8c, R8e."""
    mounted = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "disk"}}]}
    nodes = [node(name, 2, labels={"host": name}) for name in "ab"]
    disks = (disk(volumeName="pv"), volume("pv", "b"))
    there = state(*nodes, raw_pod("r", "b", 1), gpu_class(), *disks, *started_vm("vm1", 2, **mounted))
    (waiting,) = decide(there).waiting
    assert (waiting.reason, waiting.nearest) == (Reason.NO_ROOM, "b")
