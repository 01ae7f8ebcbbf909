"""How much of each class is held, by what, and how much each budget's namespaces use (R26, R27)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from binder.core.nodes import class_accepts
from binder.core.relations import Relations
from binder.core.world import World
from model.claims import GPUClass, Phase
from model.nodes import Node
from model.pods import Pod
from model.requests import effective_request


@dataclass(frozen=True, slots=True)
class ClassUse:
    """Units of one class in all. Classes of one resource share allocatable, raw and free."""

    nodes: int = 0
    """Nodes that the class accepts and that offer its resource."""
    allocatable: int = 0
    bound: int = 0
    raw: int = 0
    """What pods hold there that no claim covers."""
    lost: int = 0
    pending: int = 0
    free: int = 0
    """What can still be had: never less than none on a node."""


@dataclass(slots=True)
class Use:
    """What the namespaces of one budget use."""

    classes: dict[str, int] = field(default_factory=dict)
    """Units of claims, whatever their phase."""
    resources: dict[str, int] = field(default_factory=dict)
    """What pods ask for that no claim of their VMI covers, whatever its phase."""


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
            is_odd = claim.status.phase is Phase.BOUND and not claim.bound_node
            units[Phase.PENDING if is_odd else claim.status.phase] += claim.spec.units
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


def raw_units(pod: Pod, links: Relations) -> dict[str, int]:
    """What the pod asks for of resources on sale, less the claims of its VMI, whatever their phase (R27)."""
    rest = {r: n for r, n in sorted(effective_request(pod).items()) if r in links.sold and n > 0}
    launcher = links.launchers.get(pod.metadata.uid)
    for claim in links.claims_serving(launcher.vmi) if launcher else ():
        gpu_class = links.classes.get(claim.spec.class_name)
        resource = gpu_class.spec.resource_name if gpu_class else ""
        if resource in rest:
            rest[resource] = max(0, rest[resource] - claim.spec.units)
    return {resource: units for resource, units in rest.items() if units}


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, units in more.items():
        total[name] = total.get(name, 0) + units
