"""The simulated cluster's scheduler: an independent judge of where a pod may run."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from kube.port import MERGE_STATUS, Json
from model.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, Resource
from simulator.actors.acting import Stage, key_of, with_condition
from simulator.actors.filters import accepts, some_term_holds
from simulator.actors.quantities import allocatable, requests
from simulator.apiserver.server import ApiServer


@dataclass(slots=True)
class Scheduler:
    """Binds each pod without gates to the fitting node with most room, or says that none fits."""

    server: ApiServer
    resources: tuple[Resource, ...] = (NODES, PODS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES)

    async def act(self, stage: Stage) -> float | None:
        """See Actor."""
        waiting = [pod for pod in stage.cache.of(PODS) if _is_waiting(pod)]
        waiting.sort(key=lambda p: (-p["spec"].get("priority", 0), _age(p)))
        return await stage.attend(PODS, waiting, lambda pod: self._schedule(stage, pod))

    async def _schedule(self, stage: Stage, pod: Json) -> None:
        nodes = stage.cache.of(NODES)
        free = _free(nodes, stage.cache.of(PODS))
        fitting = [
            node["metadata"]["name"]
            for node in nodes
            if accepts(node, pod, free[node["metadata"]["name"]]) and _reaches(stage, node, pod)
        ]
        if fitting:
            best = min(fitting, key=lambda name: (-sum(free[name].values()), name))
            await self.server.bind(key_of(PODS, pod), best)
            stage.cache.put(PODS, await stage.client.get(key_of(PODS, pod)))
            return
        unschedulable = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": f"0/{len(nodes)} nodes are available",
            "lastProbeTime": None,
            "lastTransitionTime": stage.now,
        }
        old = (pod.get("status") or {}).get("conditions")
        conditions = with_condition(old, unschedulable)
        if conditions != old:
            await stage.patch(PODS, pod, {"status": {"conditions": conditions}}, MERGE_STATUS)


def _is_waiting(pod: Json) -> bool:
    spec, phase = pod["spec"], (pod.get("status") or {}).get("phase")
    going = pod["metadata"].get("deletionTimestamp")
    return not spec.get("nodeName") and not spec.get("schedulingGates") and not going and phase == "Pending"


def _free(nodes: list[Json], pods: list[Json]) -> dict[str, dict[str, Fraction]]:
    free = {node["metadata"]["name"]: allocatable(node) for node in nodes}
    for pod in pods:
        room = free.get(pod["spec"].get("nodeName", ""))
        if room is not None and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
            for name, amount in requests(pod).items():
                room[name] = room.get(name, Fraction(0)) - amount
    return free


def _reaches(stage: Stage, node: Json, pod: Json) -> bool:
    for volume in pod["spec"].get("volumes") or []:
        source = volume.get("persistentVolumeClaim")
        if not source:
            continue
        claim = stage.cache.get(PERSISTENT_VOLUME_CLAIMS, source["claimName"], pod["metadata"]["namespace"])
        bound = stage.cache.get(PERSISTENT_VOLUMES, (claim or {}).get("spec", {}).get("volumeName", ""))
        required: Any = ((bound or {}).get("spec", {}).get("nodeAffinity") or {}).get("required")
        if claim is None or (required and not some_term_holds(required["nodeSelectorTerms"], node)):
            return False
    return True


def _age(pod: Json) -> tuple[str, str]:
    return (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"])
