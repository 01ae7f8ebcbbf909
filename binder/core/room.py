"""Room: what each node can give, what is taken of it, and what is left (R26).

A pass books what it places here, so that the next set of the same pass sees less, and takes all of it back at
its end: the next pass counts what became of it. Must not know: why something is booked.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from model.nodes import Node
from model.reasons import Reason
from model.requests import Units

PODS = "pods"
"""The resource that every pod takes one of."""


@dataclass(slots=True)
class NodeRoom:
    """One node's amounts."""

    allocatable: Units
    taken: Units = field(default_factory=dict)

    def free(self, resource: str) -> int:
        """What is left; negative where more is taken than there is."""
        return self.allocatable.get(resource, 0) - self.taken.get(resource, 0)

    def take(self, resource: str, amount: int) -> None:
        """Book; a negative amount gives back."""
        self.taken[resource] = self.taken.get(resource, 0) + amount

    def misses(self, wanted: Mapping[str, int]) -> str:
        """The first resource, by name, of which less is left than wanted; empty if there is room."""
        for resource, amount in wanted.items():
            if self.allocatable.get(resource, 0) - self.taken.get(resource, 0) < amount:
                return resource
        return ""


Judge = Callable[[Node], Reason | None]
"""What stops a node at R8a or R8b, or nothing."""


@dataclass(slots=True)
class Sites:
    """Nodes that offer one of `resources`: those that R8a or R8b stops, and the others from full to empty.

    The order is that of R9: least free units first, then the name. So the first node of it that has room for
    a set is the set's node.
    """

    resources: tuple[str, ...]
    judge: Judge
    stops: dict[str, Reason] = field(default_factory=dict)
    free: dict[str, int] = field(default_factory=dict)
    _order: list[tuple[int, str]] = field(default_factory=list)

    def put(self, name: str, node: Node, room: NodeRoom) -> None:
        """The node as it is now."""
        self.drop(name)
        if not any(resource in room.allocatable for resource in self.resources):
            return
        verdict = self.judge(node)
        if verdict is not None:
            self.stops[name] = verdict
            return
        self.free[name] = sum(room.free(resource) for resource in self.resources)
        insort(self._order, (self.free[name], name))

    def drop(self, name: str) -> None:
        """The node is no more."""
        self.stops.pop(name, None)
        free = self.free.pop(name, None)
        if free is not None:
            del self._order[bisect_left(self._order, (free, name))]

    def shift(self, name: str, amount: int) -> None:
        """So many units more are free on the node."""
        free = self.free.get(name)
        if free is not None:
            del self._order[bisect_left(self._order, (free, name))]
            self.free[name] = free + amount
            insort(self._order, (free + amount, name))

    def count_with_less(self, units: int) -> int:
        """How many nodes have fewer free units in all."""
        return bisect_left(self._order, (units, ""))

    def emptiest_with_less(self, units: int) -> str:
        """Of those nodes the one with most, by name among equals; empty if there is none."""
        last = self.count_with_less(units) - 1
        if last < 0:
            return ""
        return self._order[bisect_left(self._order, (self._order[last][0], ""))][1]

    def with_at_least(self, units: int) -> Iterator[str]:
        """Nodes with so many free units in all, fullest first, then by name."""
        for place in range(bisect_left(self._order, (units, "")), len(self._order)):
            yield self._order[place][1]


@dataclass(slots=True)
class Room:
    """All nodes' amounts, and the orders of nodes that rest on them."""

    nodes: dict[str, NodeRoom] = field(default_factory=dict)
    sites: dict[object, Sites] = field(default_factory=dict)
    """By what decides R8a and R8b (the set's classes, the pod's constraints), and the resources wanted."""
    given_back: int = 0
    """Rises whenever a node has more room than before: what did not fit until then may fit now."""
    _booked: list[tuple[str, str, int]] = field(default_factory=list)

    def take(self, node: str, resource: str, amount: int) -> None:
        """Book on a node that may be gone; a negative amount gives back."""
        room = self.nodes.get(node)
        if room is None or amount == 0:
            return
        self._booked.append((node, resource, amount))
        self._change(node, room, resource, amount)

    @contextmanager
    def draft(self) -> Iterator[None]:
        """What is booked within is undone at the end."""
        self._booked.clear()
        try:
            yield
        finally:
            while self._booked:
                node, resource, amount = self._booked.pop()
                self._change(node, self.nodes[node], resource, -amount)

    def _change(self, node: str, room: NodeRoom, resource: str, amount: int) -> None:
        room.take(resource, amount)
        self.given_back += amount < 0
        for sites in self.sites.values():
            if resource in sites.resources:
                sites.shift(node, -amount)
