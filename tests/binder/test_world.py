"""What a world keeps from pass to pass, and what it takes in anew (R2, R3)."""

from __future__ import annotations

import pytest

from binder.core import world as world_module
from binder.core.claims import key_of
from binder.core.relations import SetId
from binder.core.sets import ClaimSet
from binder.core.world import World, look_at
from model.claims import GPUClaim, GPUClassStatus
from model.storage import PersistentVolumeClaim
from tests.builders import H100, T4, claims, gpu_class, node, order, started_vm, state, template_claim


def version(claim: GPUClaim, **meta: str) -> GPUClaim:
    """Another object, that differs in its metadata."""
    return claim.model_copy(update={"metadata": claim.metadata.model_copy(update=meta)})


def learned(*live: GPUClaim) -> World:
    """A world from which a pass has learned."""
    world = look_at(state(gpu_class(), node()), claims(*live))
    world.learned_from()
    return world


UNVERSIONED = version(order("o"), resource_version="")


@pytest.mark.parametrize(
    ("known", "listed", "is_changed"),
    [
        (order("o"), order("o"), False),
        (order("o"), version(order("o"), resource_version="8"), True),
        (order("o"), version(order("o"), uid="another"), True),
        (UNVERSIONED, UNVERSIONED, False),
        (UNVERSIONED, version(UNVERSIONED), True),
    ],
    ids=["same version", "another version", "another claim", "same object", "no version"],
)
def test_claim_is_taken_in_when_it_is_another_version(
    known: GPUClaim, listed: GPUClaim, is_changed: bool
) -> None:
    """R3: each pass lists all claims; only what differs costs anything."""
    world = learned(known)
    assert not world.is_new
    assert world.changed == set()
    world.update(claims(listed))
    assert world.changed == ({SetId(is_order=True, key=("default", "o"))} if is_changed else set())


def test_claim_that_goes_as_another_comes_is_no_more() -> None:
    """R3: as many claims as before are not the same claims."""
    world = learned(order("o"), order("p"))
    world.update(claims(order("q"), order("p")))
    assert sorted(set_id.key[1] for set_id in world.sets) == ["p", "q"]
    assert world.claimed == {"h100": 2}


def test_claims_that_the_live_list_does_not_name_as_changed_are_not_looked_at() -> None:
    """R2: a pass over one change costs nothing for the thousands of other claims."""
    world, known = learned(order("o"), order("p")), order("o")
    newer = [version(order(name), resource_version="8") for name in ("o", "p")]
    world.update(claims(*newer), [key_of(known)])
    assert world.changed == {SetId(is_order=True, key=key_of(known))}


def test_status_of_a_class_is_no_other_sale() -> None:
    """What is sold decides over everything, so a change of it costs everything; its status does not."""
    world = learned(order("o"))
    links, shelf = world.relations, world.state.shelves["GPUClass"]
    body = gpu_class().model_copy(update={"status": GPUClassStatus(free=1)}).model_dump_json(by_alias=True)
    shelf.put(("", "h100"), "class-h100", "8", body.encode())
    world.update(claims(order("o")))
    assert world.relations is links
    assert not world.is_new
    shelf.put(
        ("", "h100"), "class-h100", "9", gpu_class(default=True).model_dump_json(by_alias=True).encode()
    )
    world.update(claims(order("o")))
    assert world.relations is not links


def test_nothing_that_was_taken_in_is_kept_as_a_change() -> None:
    """Also of kinds that are only looked up: else what has gone would pile up."""
    disk = PersistentVolumeClaim.model_validate(
        {"metadata": {"name": "d", "namespace": "default", "uid": "u"}}
    )
    there = state(gpu_class(), node(), disk, *started_vm("vm1"))
    world = look_at(there, {})
    assert not world.relations.dirty_nodes
    for shelf in there.shelves.values():
        for key, uid in list(shelf.uids.items()):
            shelf.drop(key, uid)
    world.update({})
    assert not any(shelf.touched or shelf.departed for shelf in there.shelves.values())
    links = world.relations
    assert not any((links.dirty_nodes, links.dirty_sets, links.dirty_pods, links.dirty_orders))
    assert not any((links.dirty_vmis, links.dirty_users))


def test_order_of_nodes_is_made_once_and_kept_up() -> None:
    """R9: to make one costs as much as there are nodes."""
    world = learned(order("o"))
    first = world.sites_for(the_set(world))
    assert world.sites_for(the_set(world)) is first
    assert list(first.with_at_least(1)) == ["gpu-1"]


def test_orders_of_nodes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each launcher may have a selector of its own."""
    monkeypatch.setattr(world_module, "MAX_SITES", 2)
    vms = [one for n in range(3) for one in started_vm(f"vm{n}", node_selector={"x": str(n)})]
    world = look_at(state(gpu_class(), node(), *vms), {})
    counts = []
    for _, one in sorted(world.sets.items()):
        world.sites_for(one)
        counts.append(len(world.room.sites))
    assert counts == [1, 2, 1]


def test_shapes_that_are_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each order may want another number of units."""
    monkeypatch.setattr(world_module, "MAX_SHAPES", 2)
    orders = [order(f"o{units}", units) for units in (1, 2, 3, 4)]
    world, counts = learned(*orders[:2]), []
    for number in (2, 3, 4):
        world.update(claims(*orders[:number]))
        counts.append(len(world.relations.shapes))
    assert counts == [2, 3, 1]


def test_node_that_holds_claims_is_a_gpu_node_whatever_it_offers() -> None:
    """R24: it is one of those that cannot keep their sets."""
    there = state(gpu_class(), node("holds", resource=T4), node("offers"), node("other", resource=T4))
    assert look_at(there, claims(order("o", node="holds"))).gpu_nodes == {"holds", "offers"}


def test_troubles_of_a_node_are_known_in_one_order() -> None:
    """R4: by class, then by resource."""
    classes = (gpu_class(nodeSelector={"a": "b"}), gpu_class("t4", T4, nodeSelector={"a": "b"}))
    held = (order("a", class_name="t4", node="gpu-1"), order("b", node="gpu-1"))
    world = look_at(state(*classes, node(units=0)), claims(*held))
    assert [trouble.of for trouble in world.troubled["gpu-1"]] == ["h100", "t4", H100, T4]


def test_claims_with_and_without_our_finalizer_are_known_until_they_go() -> None:
    """R30."""
    bare = version(order("bare"))
    bare = bare.model_copy(update={"metadata": bare.metadata.model_copy(update={"finalizers": ()})})
    world = learned(bare, order("going", deleting=True), order("o"))
    assert (world.unkept, world.leaving) == ({("default", "bare")}, {("default", "going")})
    world.update({})
    assert (world.unkept, world.leaving) == (set(), set())


def test_claims_that_a_set_hopes_for_are_known_as_long_as_it_does() -> None:
    """R7: their coming and going is looked at for it, and for nobody who has gone."""
    there = state(gpu_class(), node(), *started_vm("vm1"))
    world = look_at(there, {})
    hoped = template_claim("vm1")
    assert list(world.relations.hoped) == [("default", hoped.metadata.name)]
    world.state.shelves["VirtualMachineInstance"].drop(("default", "vm1"), "vmi-vm1")
    world.update({})
    assert world.relations.hoped == {}


def the_set(world: World) -> ClaimSet:
    (one,) = world.sets.values()
    return one
