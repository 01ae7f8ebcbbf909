"""What was, as far as the API server showed it: for checks that have to know since when."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from model import resources as r
from simulator.actors.quantities import allocatable
from simulator.apiserver.admission import Request
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
    clock_jumped_s: float = -1e9
    log_emptied_s: float = -1e9
    deletions_s: list[float] = field(default_factory=list)
    """Of VMIs, by binders."""
    refused_s: dict[tuple[str, str, str], tuple[float, str]] = field(default_factory=dict)
    """By namespace, VM and node: when the node has refused a launcher of it, and which."""
    changed_s: dict[str, float] = field(default_factory=dict)
    """When each node last looked different: what ends the memory of a refusal (R13)."""
    _revision: int = -1
    _sick: set[str] = field(default_factory=set)
    _looks: dict[str, Any] = field(default_factory=dict)

    def now_s(self) -> float:
        return asyncio.get_running_loop().time()

    def look(self, view: View) -> None:
        now_s = self.now_s()
        if self._revision == view.store.revision:  # nothing has changed: who was sick is
            self.sick_s.update(dict.fromkeys(self._sick, now_s))
            return
        self._revision, self._sick = view.store.revision, set()
        sold = set(view.resource_of_class.values())
        looks = {name: _look(node) for name, node in view.nodes.items()}
        for name in looks.keys() | self._looks.keys():
            if looks.get(name) != self._looks.get(name):
                self.changed_s[name] = now_s
        self._looks = looks
        for name, node in view.nodes.items():
            offers = allocatable(node)
            for resource, amount in offers.items():
                if amount > self.most.get((name, resource), 0):
                    self.most[name, resource] = int(amount)
            held = view.held(name)
            is_short = any(offers.get(resource, 0) < held.get(resource, 0) for resource in sold)
            if is_short or not is_well(node, view):
                self._sick.add(name)
        self._sick |= {v.node_of(one) for one in view.of(r.GPU_CLAIMS)} - view.nodes.keys() - {""}
        self.sick_s.update(dict.fromkeys(self._sick, now_s))

    def was_sick_lately(self, node: str) -> bool:
        return self.now_s() - self.sick_s.get(node, -1e9) < LAG_S

    def is_minute_known(self) -> bool:
        """Whether whoever deletes can know of all deletions of the last minute: its clock and its memory."""
        return self.now_s() - max(self.clock_jumped_s, self.log_emptied_s) > 3 * LAG_S

    def note_update(self, request: Request) -> None:
        """A kubelet that refuses a pinned launcher (a validator that admits all)."""
        new, old = request.new, request.old
        if request.key.resource != r.PODS or new is None or old is None:
            return
        at, owner = str(new["spec"].get("nodeName") or ""), v.controller(new, "VirtualMachineInstance")
        if v.MIGRATION_LABEL in (new["metadata"].get("labels") or {}) or v.is_forged(new):
            return  # R13 is of launchers
        is_refused = v.phase(old) == "Pending" and v.phase(new) == "Failed" and v.status(new).get("reason")
        if is_refused and owner and at and at == v.pin_of(new):
            vm = new["metadata"]["annotations"]["kubevirt.io/domain"]
            self.refused_s[v.namespace(new), vm, at] = (self.now_s(), v.uid(new))

    def note_write(self, done: Any) -> None:
        """What a binder has deleted."""
        write, old = done.write, done.old
        if write.verb != "delete" or old is None:
            return
        if write.key.resource == r.VIRTUAL_MACHINE_INSTANCES:
            self.deletions_s.append(self.now_s())


def _look(node: Raw) -> Any:
    ready = [one["status"] for one in v.status(node).get("conditions") or [] if one["type"] == "Ready"]
    taints = [(one["key"], one["effect"]) for one in node["spec"].get("taints") or []]
    return (v.uid(node), v.status(node).get("allocatable"), ready, sorted(taints))


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
