"""A world as plain values: what two worlds of the same cluster must agree on, however they came to be.

What is left out: empty rows of tables, amounts of zero, and of a class all but its name and spec (a set keeps
the class object that it was formed with).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from binder.core.books import ClassUse
from binder.core.relations import Relations
from binder.core.room import Sites
from binder.core.sets import ClaimSet, Member
from binder.core.world import World
from model.claims import GPUClass


def view(world: World) -> dict[str, Any]:
    """Everything a pass may look at."""
    return {
        "room": {
            name: (room.allocatable, {r: n for r, n in room.taken.items() if n})
            for name, room in world.room.nodes.items()
        },
        "sets": {set_id: _set(one) for set_id, one in world.sets.items()},
        "queues": {queue: set(ids) for queue, ids in world.queues.items()},
        "held_on": {node: set(ids) for node, ids in world.held_on.items() if ids},
        "troubled": world.troubled,
        "gpu_nodes": world.gpu_nodes,
        "budgets": (world.budgets.budgets, world.budgets.faults, world.budgets.over, world.budgets.covers),
        "books": _books(world),
        "counts": (world.claimed, world.unkept, world.leaving, _rows(world.held_units)),
        "relations": _relations(world.relations),
    }


def _books(world: World) -> dict[str, Any]:
    books = world.books
    named = {*books.classes, *world.relations.classes}
    uses = {name: (books.class_use(name), books.largest(name)) for name in named}
    return {
        "classes": {name: use for name, use in uses.items() if use != (ClassUse(), 0)},
        "offering": books.offering,
        "namespaces": (_rows(books.claimed), _rows(books.raw)),
        "uses": books.uses,
    }


def sites_of(world: World) -> dict[Any, Any]:
    """The orders of nodes for every set that wants units, made now where they were not."""
    wanting = {set_id: one for set_id, one in world.sets.items() if one.needs}
    return {set_id: _sites(world.sites_for(one)) for set_id, one in wanting.items()}


def _sites(sites: Sites) -> Any:
    return (sites.resources, sites.stops, sites.free, sites._order)


def _set(one: ClaimSet) -> Any:
    wanted = one.shape.constraints
    return {
        "key": one.key,
        "members": [_member(member) for member in one.members],
        "stage": one.stage,
        "vm": (one.vm, one.vmi, one.launcher, one.run_strategy),
        "obstacle": (one.obstacle, one.unsold),
        "wanted": ([_class(c) for c in wanted.classes], wanted.selector, wanted.affinity),
        "amounts": (list(one.shape.needs.items()), list(one.shape.other.items())),
        "nodes": one.nodes,
    }


def _member(one: Member) -> Any:
    return (one.ref, _class(one.gpu_class), one.units, one.claim)


def _class(one: GPUClass) -> Any:
    return (one.metadata.name, one.spec)


def _relations(links: Relations) -> dict[str, Any]:
    return {
        "vms": dict(links.vms),
        "vmis": dict(links.vmis),
        "claims": links.claims,
        "classes": links.classes,
        "sold": {resource: [_class(one) for one in selling] for resource, selling in links.sold.items()},
        "launchers": links.launchers,
        "launchers_of": _rows(links.launchers_of),
        "suspects": links.suspects,
        "pods_on": _rows(links.pods_on),
        "claims_on": _rows(links.claims_on),
        "template_claims": _rows(links.template_claims),
        "orders_of": _rows(links.orders_of),
        "namers": _rows(links.namers),
        "users": _rows(links.users),
        "names": {key: links.names_of(key) for key in (*links.vms, *links.vmis)},
    }


def _rows(table: Mapping[Any, Mapping[Any, Any]]) -> dict[Any, Any]:
    return {name: row for name, row in table.items() if row}
