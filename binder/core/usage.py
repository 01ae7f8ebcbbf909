"""Who has how much of each class, and what each budget's namespaces use, counted from nothing (R26, R27).

The reference of the books, and what is shown where no binder runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from binder.core.books import ClassUse, Use, counted_phase
from binder.core.counting import raw_units
from binder.core.nodes import class_accepts
from binder.core.world import World
from model.claims import GPUClass, Phase
from model.nodes import Node
from model.pods import Pod


def class_uses(world: World) -> Mapping[str, ClassUse]:
    """Where each class's resource is and who has it, by the class's name."""
    links = world.relations
    units: dict[str, dict[Phase, int]] = {name: dict.fromkeys(Phase, 0) for name in links.classes}
    bound_on: dict[tuple[str, str], int] = {}
    for claim in links.claims.values():
        gpu_class = links.classes.get(claim.spec.class_name)
        if gpu_class is None:
            continue
        units[claim.spec.class_name][counted_phase(claim)] += claim.spec.units
        place = (claim.bound_node, gpu_class.spec.resource_name)
        bound_on[place] = bound_on.get(place, 0) + claim.spec.units
    return {name: _class_use(world, one, units[name], bound_on) for name, one in links.classes.items()}


def _class_use(
    world: World, gpu_class: GPUClass, units: Mapping[Phase, int], bound_on: Mapping[tuple[str, str], int]
) -> ClassUse:
    resource = gpu_class.spec.resource_name
    nodes = allocatable = raw = free = 0
    for (_, name), node in world.state.of(Node).items():
        room = world.room.nodes[name]
        if resource in room.allocatable and class_accepts(gpu_class, node):
            nodes += 1
            allocatable += room.allocatable[resource]
            raw += room.taken.get(resource, 0) - bound_on.get((name, resource), 0)
            free += max(0, room.free(resource))
    return ClassUse(
        nodes, allocatable, units[Phase.BOUND], raw, units[Phase.LOST], units[Phase.PENDING], free
    )


def budget_use(world: World) -> Mapping[str, Use]:
    """By the budget's name. A VM is counted once: its claims as such, of its pod the rest."""
    tree, links = world.budgets, world.relations
    uses = {name: Use() for name in tree.budgets}
    for (namespace, _), claim in links.claims.items():
        for budget in tree.over.get(namespace, ()):
            _add(uses[budget].classes, {claim.spec.class_name: claim.spec.units})
    for (namespace, _), pod in world.state.of(Pod).items():
        budgets = tree.over.get(namespace, ())
        rest = raw_units(pod, links) if budgets and not pod.is_terminal else {}
        for budget in budgets:
            _add(uses[budget].resources, rest)
    return uses


def drift_units(world: World) -> int:
    """How far the books are from what is counted from nothing; 0, or the books have a fault.

    It costs as much as there are claims, nodes and pods: asked for now and then.
    """
    books, drift = world.books, 0
    for name, use in class_uses(world).items():
        drift += _distance(asdict(use), asdict(books.class_use(name)))
    for name, used in budget_use(world).items():
        kept = books.uses[name]
        drift += _distance(used.classes, kept.classes) + _distance(used.resources, kept.resources)
    return drift


def _distance(one: Mapping[str, int], other: Mapping[str, int]) -> int:
    return sum(abs(one.get(name, 0) - other.get(name, 0)) for name in one.keys() | other.keys())


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, units in more.items():
        total[name] = total.get(name, 0) + units
