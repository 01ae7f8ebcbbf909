"""The choice of a node for a whole set (R8, R9), and why there is none (the reasons of R12).

Each node is taken through the stages of R8 in their order until one stops it. The set's reason is the last
stage that stopped some node; the message counts the nodes per cause, so equal states give equal text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from binder.core.nodes import class_accepts, pod_accepts, selector_matches
from binder.core.requests import Units
from binder.core.room import NodeRoom, Room, other_request
from binder.core.sets import ClaimSet, Obstacle
from binder.core.volumes import VolumeReach
from model.nodes import Node
from model.reasons import Reason


@dataclass(frozen=True, slots=True)
class Site:
    """A node as one set meets it: what stopped it, or nothing; and the set's units there."""

    name: str
    stop: Reason | None
    held_units: int
    free_units: int
    """Of the set's resources, its own held units included."""


def choose_node(
    claim_set: ClaimSet, nodes: Sequence[tuple[str, Node]], room: Room, reach: VolumeReach
) -> str | Obstacle:
    """The best node that takes the whole set, or why none does."""
    needs = claim_set.needs()
    other = other_request(claim_set)
    sites = [
        _site(claim_set, node, room[name], other, reach)
        for name, node in nodes
        if any(resource in room[name].allocatable for resource in needs)
    ]
    fits = [site for site in sites if site.stop is None]
    if not fits:
        return explain(claim_set, sites, room)
    return min(fits, key=lambda site: (-site.held_units, site.free_units, site.name)).name


def explain(claim_set: ClaimSet, sites: Iterable[Site], room: Room) -> Obstacle:
    """One reason and one line: the counts per cause, and the nearest miss."""
    sites = list(sites)
    needs = claim_set.needs()
    wanted = ", ".join(f"{units} of {resource}" for resource, units in sorted(needs.items()))
    if not any(all(room[s.name].allocatable.get(r, 0) >= n for r, n in needs.items()) for s in sites):
        return Obstacle(Reason.TOO_LARGE, f"no node offers {wanted}: {len(sites)} have some of it")
    counts = Counter(site.stop for site in sites if site.stop is not None)
    stages = sorted(counts, key=_stage)
    causes = ", ".join(f"{counts[stage]} {_IN_WORDS[stage]}" for stage in stages)
    text = f"no room for {wanted} on {len(sites)} nodes: {causes}"
    short = [site for site in sites if site.stop is Reason.NO_ROOM]
    if short:
        best = min(short, key=lambda site: (-site.free_units, site.name))
        text += f"; nearest is {best.name} with {max(0, best.free_units)} free"
    return Obstacle(stages[-1], text)


_IN_WORDS: dict[Reason, str] = {
    Reason.CLASS_CONSTRAINTS: "not accepted by the class (taint, label, not Ready or cordoned)",
    Reason.POD_CONSTRAINTS: "excluded by the VM's own selector or affinity",
    Reason.VOLUME_UNREACHABLE: "out of reach of a volume",
    Reason.NO_ROOM: "without enough free units",
    Reason.OTHER_RESOURCES: "with the units but short of cpu, memory or another resource",
}
"""The stages of R8 in their order: a, b, c, and of e the units before what else the launcher asks for."""

_ORDER = list(_IN_WORDS)


def _stage(reason: Reason) -> int:
    return _ORDER.index(reason)


def _site(claim_set: ClaimSet, node: Node, room: NodeRoom, other: Units, reach: VolumeReach) -> Site:
    needs = claim_set.needs()
    held = claim_set.held_on(node.metadata.name)
    free = {resource: room.free(resource) + held.get(resource, 0) for resource in needs}
    stop = None
    pod = claim_set.launcher.pod if claim_set.launcher else None
    if not all(class_accepts(member.gpu_class, node) for member in claim_set.members):
        stop = Reason.CLASS_CONSTRAINTS
    elif pod is not None and not pod_accepts(pod, node):
        stop = Reason.POD_CONSTRAINTS
    elif not all(selector_matches(selector, node) for selector in reach):
        stop = Reason.VOLUME_UNREACHABLE
    elif any(free[resource] < units for resource, units in needs.items()):
        stop = Reason.NO_ROOM
    elif any(room.free(resource) < amount for resource, amount in other.items()):
        stop = Reason.OTHER_RESOURCES
    return Site(node.metadata.name, stop, sum(held.values()), sum(free.values()))
