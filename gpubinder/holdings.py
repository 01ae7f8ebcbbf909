"""What is held where, from the API server's own objects, counted as the pass counts it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from binder.core.books import ClassUse
from binder.core.state import ClusterState, Key
from binder.core.usage import budget_use, class_uses
from binder.core.world import World, look_at
from kube.errors import NotFound
from kube.port import Reader, list_all
from model.claims import GPUClaim
from model.kinds import BY_KIND
from model.lean import Malformed, lean_object


@dataclass(frozen=True, slots=True)
class NodeHolding:
    """Units of one class on one node."""

    node: str
    gpu_class: str
    allocatable: int
    bound: int
    raw: int

    @property
    def free(self) -> int:
        """What is left; negative where more is taken than there is."""
        return self.allocatable - self.bound - self.raw


@dataclass(frozen=True, slots=True)
class ClaimLine:
    """One claim, as people ask for it."""

    namespace: str
    name: str
    gpu_class: str
    units: int
    phase: str
    node: str
    vm: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ClassLine:
    """One class, and who has its units."""

    name: str
    resource: str
    use: ClassUse


@dataclass(frozen=True, slots=True)
class BudgetLine:
    """One limit of a budget, and what its namespaces use of it."""

    budget: str
    of: str
    used: int
    limit: int


async def read(client: Reader, now_ms: int) -> World:
    """List every kind once, and count as a pass does; kinds not served are empty. Raises ApiError."""
    state, claims = ClusterState(heard_ms=now_ms), dict[Key, GPUClaim]()
    for kind, watched in BY_KIND.items():
        try:
            items = (await list_all(client, watched.resource)).items
        except NotFound:
            continue
        for raw in items:
            meta = raw["metadata"]
            key = (meta.get("namespace", ""), meta["name"])
            try:
                state.shelves[kind].put(
                    key, meta["uid"], meta["resourceVersion"], lean_object(watched.model, watched.prune, raw)
                )
            except Malformed:
                continue
    claims.update(state.of(GPUClaim))
    return look_at(state, claims)


def node_holdings(world: World) -> list[NodeHolding]:
    """Nodes by class, for every node that offers the class's resource."""
    bound: dict[tuple[str, str], int] = {}
    for claim in world.relations.claims.values():
        key = (claim.bound_node, claim.spec.class_name)
        bound[key] = bound.get(key, 0) + claim.spec.units
    found = []
    for name, gpu_class in sorted(world.relations.classes.items()):
        resource = gpu_class.spec.resource_name
        by_resource = _bound_of_resource(world, bound, resource)
        for node, room in sorted(world.room.nodes.items()):
            if resource in room.allocatable:
                raw = room.taken.get(resource, 0) - by_resource.get(node, 0)
                held = bound.get((node, name), 0)
                found.append(NodeHolding(node, name, room.allocatable[resource], held, raw))
    return found


def class_lines(world: World) -> list[ClassLine]:
    """Every class, by name."""
    classes, uses = sorted(world.relations.classes.items()), class_uses(world)
    return [ClassLine(name, one.spec.resource_name, uses[name]) for name, one in classes]


def budget_lines(world: World) -> list[BudgetLine]:
    """Every limit, by the budget's name: classes, then resources."""
    lines = []
    for name, use in budget_use(world).items():
        spec = world.budgets.budgets[name].spec
        for limits, used in ((spec.classes, use.classes), (spec.resources, use.resources)):
            lines += [BudgetLine(name, of, used.get(of, 0), limit) for of, limit in sorted(limits.items())]
    return lines


def claim_lines(world: World) -> list[ClaimLine]:
    """Every claim, by namespace and name."""
    return [_line(claim) for _, claim in sorted(world.relations.claims.items())]


def _bound_of_resource(
    world: World, bound: Mapping[tuple[str, str], int], resource: str
) -> Mapping[str, int]:
    total: dict[str, int] = {}
    for (node, name), units in bound.items():
        gpu_class = world.relations.classes.get(name)
        if gpu_class is not None and gpu_class.spec.resource_name == resource:
            total[node] = total.get(node, 0) + units
    return total


def _line(claim: GPUClaim) -> ClaimLine:
    meta, status, placed = claim.metadata, claim.status, claim.placed_condition
    waits = placed is not None and placed.status == "False"
    return ClaimLine(
        meta.namespace,
        meta.name,
        claim.spec.class_name,
        claim.spec.units,
        str(status.phase),
        claim.bound_node,
        status.vm.name if status.vm else "",
        placed.reason if placed and waits else "",
        placed.message if placed and waits else "",
    )
