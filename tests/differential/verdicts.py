"""What the binder's own predicates say of each pod and node: R8 a to e, as the passes use them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from binder.core import nodes, volumes
from binder.core.launchers import Launcher
from binder.core.sets import Obstacle
from binder.core.state import ClusterState
from binder.core.world import look_at
from model import requests
from model.claims import GPUClass
from model.kinds import BY_KIND
from model.kubevirt import VirtualMachineInstance
from model.lean import lean_object
from model.meta import Lean
from model.nodes import Node
from model.pods import Pod
from model.taints import Toleration
from tests.builders import state

Json = dict[str, Any]


def lean(raw: Mapping[str, Any]) -> Json:
    """What the log keeps of an object of the API server."""
    watched = BY_KIND[raw["kind"]]
    kept: Json = orjson.loads(lean_object(watched.model, watched.prune, raw))
    return {"kind": raw["kind"], **kept}


def model_of(raw: Mapping[str, Any]) -> Lean:
    return BY_KIND[raw["kind"]].model.model_validate(raw)


@dataclass
class Judge:
    """The cluster, as the passes see it."""

    cluster: ClusterState

    def __post_init__(self) -> None:
        self.room = look_at(self.cluster, {}).room.nodes
        self.nodes = {name: node for (_, name), node in sorted(self.cluster.of(Node).items())}

    def accepted(self, raw: Mapping[str, Any]) -> frozenset[str]:
        """The nodes that take the pod, as the launcher of a class that tolerates what the pod tolerates."""
        pod = Pod.model_validate(raw)
        gpu_class = GPUClass.model_validate({"spec": {"resourceName": "nvidia.com/gpu"}})
        spec = gpu_class.spec.model_copy(update={"tolerations": lasting(pod.spec.tolerations)})
        gpu_class = gpu_class.model_copy(update={"spec": spec})
        reach = volumes.volume_reach(Launcher(pod, VirtualMachineInstance()), self.cluster)
        if isinstance(reach, Obstacle):
            return frozenset()
        wanted = {**requests.effective_request(pod), "pods": 1}
        return frozenset(
            name
            for name, node in self.nodes.items()
            if nodes.class_accepts(gpu_class, node)
            and nodes.pod_accepts(pod, node)
            and all(nodes.selector_matches(selector, node) for selector in reach)
            and not self.room[name].misses(wanted)
        )

    @property
    def cordoned(self) -> frozenset[str]:
        """Nodes that a rule of ours refuses whatever a pod tolerates (R8a)."""
        return frozenset(name for name, node in self.nodes.items() if node.spec.unschedulable)


def lasting(tolerations: Iterable[Toleration]) -> tuple[Toleration, ...]:
    """Without their end: a class takes nothing new where it only puts up with a taint for a while (R20)."""
    return tuple(one.model_copy(update={"toleration_seconds": None}) for one in tolerations)


def judge_of(objects: Iterable[Mapping[str, Any]]) -> Judge:
    """A judge over lean objects of the kinds that are watched."""
    return Judge(state(*(model_of(one) for one in objects)))
