"""Why a set has no node: one reason, the counts per cause, the nearest miss, what would help (R12).

The reason is the last stage of R8 that some node reached. Equal states give equal text, and the room is
looked at when all sets of the pass have been placed: what one line says holds for the cluster as the pass
leaves it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from binder.core.placement import Wish, what_stops
from binder.core.room import Room, Sites
from model.nodes import Node
from model.reasons import Reason

STAGES: dict[Reason, str] = {
    Reason.CLASS_CONSTRAINTS: "not accepted by the class (taint, label, not Ready or cordoned)",
    Reason.POD_CONSTRAINTS: "excluded by the VM's own selector or affinity",
    Reason.VOLUME_UNREACHABLE: "out of reach of a volume",
    Reason.NODES_REFUSED: "that have refused this VM",
    Reason.NO_ROOM: "without enough free units",
    Reason.OTHER_RESOURCES: "with the units but short of cpu, memory or another resource",
}
"""The stages of R8 in their order, in the words of messages."""
_ORDER = list(STAGES)

REMEDIES: dict[Reason, str] = {
    Reason.FEATURE_DISABLED: "switch placement on",
    Reason.STALE_LOG: "start the watchers, or the Redis that they write to",
    Reason.MASS_OUTAGE: "bring nodes back; it goes on by itself then",
    Reason.CLAIM_NOT_FOUND: "create the order, or take it out of the VM's annotation",
    Reason.CLAIM_IN_USE: "stop the VM that uses the order, or name another order",
    Reason.CLASS_NOT_FOUND: "create the class, or name another one",
    Reason.CLASS_AMBIGUOUS: "name a class on the VM, or make one the default",
    Reason.NAME_TAKEN: "delete or rename the claim that has the name",
    Reason.BUDGET_EXCEEDED: "give units back, or raise the budget",
    Reason.VOLUME_PENDING: "create the volume, or wait until it is bound",
    Reason.TOO_LARGE: "a larger node, or a smaller order",
    Reason.CLASS_CONSTRAINTS: "a node of the class that is Ready, schedulable and tolerated",
    Reason.POD_CONSTRAINTS: "a node that the VM's selector and affinity accept, or other ones on the VM",
    Reason.VOLUME_UNREACHABLE: "GPUs where the volumes are, or the volumes elsewhere",
    Reason.NODES_REFUSED: "time, or a change of the node: then it is tried again",
    Reason.NO_ROOM: "units given back, or a node with more",
    Reason.OTHER_RESOURCES: "the other resources given back, or a smaller VM",
    Reason.WAITING_FOR_LAUNCHER: "the VM's launcher, which KubeVirt makes",
    Reason.NODE_LOST: "the node back, or room on another one",
    Reason.WRITE_REFUSED: "the quota or admission policy that refuses it changed",
    Reason.NOT_A_LAUNCHER: "the pod deleted; KubeVirt alone makes launchers",
}
"""What would unblock a set that waits for the reason, one for each."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a set waits, as data."""

    reason: Reason
    message: str
    stops: Mapping[Reason, int] = field(default_factory=dict)
    """How many nodes each stage stopped; empty where something is in the way of looking for one."""
    nearest: str = ""
    """The node that came nearest, if its distance can be told."""


def stage_of_each_node(
    wish: Wish, sites: Sites, room: Room, nodes: Mapping[tuple[str, str], Node]
) -> dict[str, Reason | None]:
    """What stops each node that offers something of what is wanted; None: it would take the set."""
    found: dict[str, Reason | None] = dict(sites.stops)
    for name in sites.free:
        found[name] = what_stops(wish, name, room, nodes["", name])
    return dict(sorted(found.items()))


def explain(wish: Wish, sites: Sites, room: Room, nodes: Mapping[tuple[str, str], Node]) -> Explanation:
    """From the stage that each node reached."""
    count = len(sites.stops) + len(sites.free) - (wish.excluded in sites.free)
    wanted = ", ".join(f"{units} of {resource}" for resource, units in sorted(wish.needs.items()))
    if not any(_is_large_enough(room, name, wish) for name in (*sites.free, *sites.stops)):
        some = sum(_offers_some(room, name, wish) for name in (*sites.free, *sites.stops))
        text = f"no node offers {wanted}: {some} have some of it"
        return Explanation(Reason.TOO_LARGE, text)
    if not count:
        return Explanation(Reason.NO_ROOM, f"no other node offers {wanted}")
    counts, nearest = _counted(wish, sites, room, nodes)
    stages = sorted((stage for stage in counts if counts[stage]), key=_ORDER.index)
    if not stages or (nearest and what_stops(wish, nearest, room, nodes["", nearest]) is None):
        return Explanation(Reason.NO_ROOM, f"room for {wanted} has just come free")
    causes = ", ".join(f"{counts[stage]} {STAGES[stage]}" for stage in stages)
    text = f"no room for {wanted} on {count} nodes: {causes}"
    if nearest and stages[-1] is Reason.NO_ROOM:
        free = sites.free[nearest] + sum(wish.held.get(nearest, {}).values())
        text += f"; nearest is {nearest} with {max(0, free)} free"
    elif nearest:
        text += f"; nearest is {nearest}, short of {room.nodes[nearest].misses(wish.other)}"
    return Explanation(stages[-1], text, {s: counts[s] for s in stages}, nearest)


def _is_large_enough(room: Room, name: str, wish: Wish) -> bool:
    allocatable = room.nodes[name].allocatable
    return all(allocatable.get(resource, 0) >= units for resource, units in wish.needs.items())


def _offers_some(room: Room, name: str, wish: Wish) -> bool:
    return any(room.nodes[name].allocatable.get(resource, 0) > 0 for resource in wish.needs)


def _counted(
    wish: Wish, sites: Sites, room: Room, nodes: Mapping[tuple[str, str], Node]
) -> tuple[Counter[Reason], str]:
    """How many nodes each stage stops, and the one that came nearest: of those at the last stage."""
    counts = Counter(sites.stops.values())
    if wish.is_plain and len(wish.needs) == 1:  # the order of the nodes tells it without a look at each
        (units,) = wish.needs.values()
        counts[Reason.NO_ROOM] = sites.count_with_less(units)
        counts[Reason.OTHER_RESOURCES] = len(sites.free) - counts[Reason.NO_ROOM]
        if counts[Reason.OTHER_RESOURCES]:
            return counts, next(sites.with_at_least(units))
        return counts, sites.emptiest_with_less(units)
    stops = {
        name: what_stops(wish, name, room, nodes["", name]) for name in sites.free if name != wish.excluded
    }
    counts.update(stop for stop in stops.values() if stop is not None)
    held = {name: sum(units.values()) for name, units in wish.held.items()}
    for stage, sign in ((Reason.OTHER_RESOURCES, 1), (Reason.NO_ROOM, -1)):
        stopped = [name for name, stop in stops.items() if stop is stage]
        if stopped:
            return counts, min(stopped, key=lambda n: (sign * (sites.free[n] + held.get(n, 0)), n))
    return counts, ""
