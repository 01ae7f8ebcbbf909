"""What was, as far as the API server showed it: for checks that have to know since when."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from model import resources as r
from simulator.actors.quantities import allocatable
from tests.sim import view as v
from tests.sim.view import Raw, View

LAG_S = 130.0
"""The oldest news that a binder may decide on: a stream that is silent for 90 s, with back-off after it."""


@dataclass(slots=True)
class Past:
    """Times are seconds of the loop."""

    most: dict[tuple[str, str], int] = field(default_factory=dict)
    """The most units a node of that name ever reported allocatable, by node and resource."""
    sick_s: dict[str, float] = field(default_factory=dict)
    """When something was last wrong with each node."""
    budgets_changed_s: float = 0.0
    clock_jumped_s: float = -1e9
    log_emptied_s: float = -1e9
    deletions_s: list[float] = field(default_factory=list)
    """Of VMIs, by binders."""
    _budgets: Any = None

    def now_s(self) -> float:
        return asyncio.get_running_loop().time()

    def look(self, view: View) -> None:
        now_s = self.now_s()
        sold = set(view.resource_of_class.values())
        for name, node in view.nodes.items():
            offers = allocatable(node)
            for resource, amount in offers.items():
                if amount > self.most.get((name, resource), 0):
                    self.most[name, resource] = int(amount)
            held = view.held(name)
            is_short = any(offers.get(resource, 0) < held.get(resource, 0) for resource in sold)
            if is_short or not is_well(node, view):
                self.sick_s[name] = now_s
        for gone in {v.node_of(one) for one in view.of(r.GPU_CLAIMS)} - view.nodes.keys() - {""}:
            self.sick_s[gone] = now_s
        budgets = [(v.name(one), one["spec"]) for one in view.of(r.GPU_BUDGETS)]
        spaces = [(v.name(one), one["metadata"].get("labels")) for one in view.of(r.NAMESPACES)]
        if (budgets, spaces) != self._budgets:
            self._budgets, self.budgets_changed_s = (budgets, spaces), now_s

    def was_sick_lately(self, node: str) -> bool:
        return self.now_s() - self.sick_s.get(node, -1e9) < LAG_S

    def is_minute_known(self) -> bool:
        """Whether whoever deletes can know of all deletions of the last minute: its clock and its memory."""
        return self.now_s() - max(self.clock_jumped_s, self.log_emptied_s) > 3 * LAG_S

    def note_write(self, done: Any) -> None:
        write = done.write
        if write.verb != "delete" or done.old is None:
            return
        if write.key.resource == r.VIRTUAL_MACHINE_INSTANCES:
            self.deletions_s.append(self.now_s())


def is_well(node: Raw, view: View) -> bool:
    """Whether nothing is wrong with the node for any class (R20)."""
    ready = [one["status"] for one in v.status(node).get("conditions") or [] if one["type"] == "Ready"]
    labels = node["metadata"].get("labels") or {}
    selectors = [one["spec"].get("nodeSelector") or {} for one in view.of(r.GPU_CLASSES)]
    return (
        ready == ["True"]
        and not v.is_leaving(node)
        and not any(one["effect"] == "NoExecute" for one in node["spec"].get("taints") or [])
        and all(labels.get(key) == value for selector in selectors for key, value in selector.items())
    )
