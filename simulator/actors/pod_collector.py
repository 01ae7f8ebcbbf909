"""The pod garbage collector: pods whose node has gone end, too.

As kubernetes/kubernetes pkg/controller/podgc has it: a node must be missing for a while before its pods are
marked Failed and deleted without grace, since no kubelet is left that could end them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kube.port import MERGE_STATUS, DeleteOptions, Json
from model.resources import NODES, PODS, Resource
from simulator.actors.acting import Stage, with_condition

QUARANTINE_S = 40.0
_ENDED = ("Succeeded", "Failed")


@dataclass(slots=True)
class PodCollector:
    """Remembers since when each node that pods name has been missing."""

    resources: tuple[Resource, ...] = (NODES, PODS)
    _missing_ms: dict[str, int] = field(default_factory=dict)

    async def act(self, stage: Stage) -> float | None:
        """See Actor."""
        there = {node["metadata"]["name"] for node in stage.cache.of(NODES)}
        orphans = [pod for pod in stage.cache.of(PODS) if pod["spec"].get("nodeName", "") not in {"", *there}]
        named = {str(pod["spec"]["nodeName"]) for pod in orphans}
        now_ms = stage.clock()
        self._missing_ms = {name: self._missing_ms.get(name, now_ms) for name in sorted(named)}

        async def tend(pod: Json) -> float | None:
            missing_s = (now_ms - self._missing_ms[pod["spec"]["nodeName"]]) / 1000
            if missing_s < QUARANTINE_S:
                return QUARANTINE_S - missing_s
            await _end(stage, pod)
            return None

        return await stage.attend(PODS, orphans, tend)


async def _end(stage: Stage, pod: Json) -> None:
    if pod["status"].get("phase") not in _ENDED:
        target = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByPodGC",
            "message": "PodGC: node no longer exists",
            "lastProbeTime": None,
            "lastTransitionTime": stage.now,
        }
        conditions = with_condition(pod["status"].get("conditions"), target)
        change = {"status": {"phase": "Failed", "conditions": conditions}}
        await stage.patch(PODS, pod, change, MERGE_STATUS)
    await stage.delete(PODS, pod, DeleteOptions(grace_s=0))
