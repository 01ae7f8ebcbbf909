"""The choice of a node for a whole set (R8, R9).

Nodes that already hold some of the set come first, most of it first; then the others from full to empty. The
first that every stage of R8 lets through is the node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from binder.core.nodes import selector_matches
from binder.core.room import Room, Sites
from binder.core.volumes import VolumeReach
from model.nodes import Node
from model.reasons import Reason


@dataclass(frozen=True, slots=True)
class Wish:
    """What a set wants of a node, beyond what its classes and its pod accept."""

    needs: Mapping[str, int]
    other: Mapping[str, int] = field(default_factory=dict)
    held: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Units that wait for it, by node: its own claims and what is kept for its restart."""
    reach: VolumeReach = ()
    refused: frozenset[str] = frozenset()
    """Nodes that have refused its VM (R13)."""
    excluded: str = ""
    """A node that it is to leave."""

    @property
    def is_plain(self) -> bool:
        """Whether nothing but its classes, its pod and the room on a node counts."""
        return not (self.held or self.reach or self.refused or self.excluded)


def find_node(wish: Wish, sites: Sites, room: Room, nodes: Mapping[tuple[str, str], Node]) -> str | None:
    """The node, or None where none takes the whole set."""
    holders = [name for name in wish.held if name in sites.free]
    for name in sorted(holders, key=lambda one: _standing(one, wish, sites)):
        if what_stops(wish, name, room, nodes["", name]) is None:
            return name
    for name in sites.with_at_least(sum(wish.needs.values())):
        if name not in wish.held and what_stops(wish, name, room, nodes["", name]) is None:
            return name
    return None


def what_stops(wish: Wish, name: str, room: Room, node: Node) -> Reason | None:
    """The first stage of R8 from c to e that keeps an acceptable node from taking the set."""
    if wish.reach and not all(selector_matches(selector, node) for selector in wish.reach):
        return Reason.VOLUME_UNREACHABLE
    if name in wish.refused or name == wish.excluded:
        return Reason.NODES_REFUSED
    here, held = room.nodes[name], wish.held.get(name, {})
    for resource, units in wish.needs.items():
        if here.free(resource) + held.get(resource, 0) < units:
            return Reason.NO_ROOM
    return Reason.OTHER_RESOURCES if here.misses(wish.other) else None


def _standing(name: str, wish: Wish, sites: Sites) -> tuple[int, int, str]:
    return (-sum(wish.held[name].values()), sites.free[name], name)
