"""Who has how much of each class, and what each budget's namespaces use, counted from nothing (R26, R27).

The reference of the books, and what is shown where no binder runs.
"""

from __future__ import annotations

from collections.abc import Mapping

from binder.core.books import ClassUse, Use, counted_phase
from binder.core.counting import raw_units
from binder.core.nodes import class_accepts
from binder.core.world import World
from model.claims import GPUClass, Phase
from model.nodes import Node
from model.pods import Pod


def class_use(world: World, gpu_class: GPUClass) -> ClassUse:
    """Where the class's resource is and who has it."""
    links, resource, name = world.relations, gpu_class.spec.resource_name, gpu_class.metadata.name
    units = dict.fromkeys(Phase, 0)
    bound_on: dict[str, int] = {}
    for claim in links.claims.values():
        other = links.classes.get(claim.spec.class_name)
        if other is not None and other.spec.resource_name == resource and claim.bound_node:
            bound_on[claim.bound_node] = bound_on.get(claim.bound_node, 0) + claim.spec.units
        if claim.spec.class_name == name:
            units[counted_phase(claim)] += claim.spec.units
    nodes = allocatable = raw = free = 0
    for (_, node_name), node in sorted(world.state.of(Node).items()):
        room = world.room.nodes[node_name]
        if resource in room.allocatable and class_accepts(gpu_class, node):
            nodes += 1
            allocatable += room.allocatable[resource]
            raw += room.taken.get(resource, 0) - bound_on.get(node_name, 0)
            free += max(0, room.free(resource))
    return ClassUse(
        nodes, allocatable, units[Phase.BOUND], raw, units[Phase.LOST], units[Phase.PENDING], free
    )


def budget_use(world: World) -> Mapping[str, Use]:
    """By the budget's name. A VM is counted once: its claims as such, of its pod the rest."""
    tree, links = world.budgets, world.relations
    uses = {name: Use() for name in sorted(tree.budgets)}
    for (namespace, _), claim in sorted(links.claims.items()):
        for budget in tree.over.get(namespace, ()):
            _add(uses[budget].classes, {claim.spec.class_name: claim.spec.units})
    for (namespace, _), pod in sorted(world.state.of(Pod).items()):
        budgets = tree.over.get(namespace, ())
        rest = raw_units(pod, links) if budgets and not pod.is_terminal else {}
        for budget in budgets:
            _add(uses[budget].resources, rest)
    return uses


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, units in more.items():
        total[name] = total.get(name, 0) + units
