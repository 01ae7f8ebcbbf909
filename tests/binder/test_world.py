"""What a world keeps from pass to pass, and what it takes in anew (R2, R3)."""

from __future__ import annotations

import pytest

from binder.core import world as world_module
from binder.core.relations import SetId
from binder.core.sets import ClaimSet
from binder.core.world import World, look_at
from model.claims import GPUClaim
from tests.builders import claims, gpu_class, node, order, started_vm, state, template_claim


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
