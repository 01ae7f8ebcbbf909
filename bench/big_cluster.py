"""A large GPU cluster as a pass sees it: running VMs, and some whose launchers are gated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from binder.core.state import ClusterState, Key
from model.claims import GPUClaim, GPUClass
from model.kinds import BY_KIND
from model.kubevirt import VirtualMachine, VirtualMachineInstance
from model.meta import Lean
from model.names import FINALIZER, GATE
from model.nodes import Node
from model.pods import Pod
from simulator.objects import gpu_node

GPU = "nvidia.com/GH100_H100_SXM5_80GB"
NOW_MS = 1_800_000_000_000
CLAIMS_A_NODE = 4
NODES_A_GATED = 5
"""One launcher waits for every so many nodes."""


@dataclass(slots=True)
class Cluster:
    """Nodes of some units each; four VMs of one unit run on each."""

    state: ClusterState
    claims: dict[Key, GPUClaim]
    gated: int
    _version: int = 0

    def put(self, model: type[Lean], raw: dict[str, Any]) -> None:
        """An object comes or changes: its bytes, as the fold takes them in."""
        meta = raw["metadata"]
        shelf = self.state.shelves[model.__name__]
        self._version += 1
        key = (meta.get("namespace", ""), meta["name"])
        shelf.put(key, meta.get("uid", meta["name"]), str(self._version), orjson.dumps(raw))

    def put_node(self, number: int, units: int) -> None:
        """A node comes, or reports other units."""
        raw = gpu_node(f"n{number}", {GPU: units})
        raw["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        self.put(Node, raw)

    def put_vm(self, name: str, node: str) -> None:
        """A VM that runs on the node with its claim, or (no node) one whose launcher is gated."""
        meta = {"name": name, "namespace": "default"}
        vm = meta | {"uid": f"vm-{name}"}
        vmi = meta | {"uid": f"vmi-{name}", "ownerReferences": [_owner("VirtualMachine", name, f"vm-{name}")]}
        self.put(VirtualMachine, {"metadata": vm, "spec": {"runStrategy": "Always"}})
        status = {"phase": "Running" if node else "Scheduling", "nodeName": node}
        listed = {"activePods": {f"pod-{name}": node}}
        self.put(VirtualMachineInstance, {"metadata": vmi, "status": status | listed})
        self.put(Pod, _launcher(name, node))

    def put_claim(self, name: str, status: dict[str, Any]) -> None:
        """The template claim of a VM's VMI."""
        uid = f"vmi-{name}"
        meta = {
            "name": f"{name}-h100-{uid[:8]}",
            "namespace": "default",
            "uid": f"claim-{name}",
            "resourceVersion": "7",
            "finalizers": [FINALIZER],
            "ownerReferences": [_owner("VirtualMachineInstance", name, uid)],
        }
        raw = {"metadata": meta, "spec": {"className": "h100", "units": 1}, "status": status}
        self.claims["default", meta["name"]] = GPUClaim.model_validate(raw)  # type: ignore[index]


def big_cluster(nodes: int, units: int) -> Cluster:
    """So many nodes of so many units."""
    state = ClusterState(heard_ms=NOW_MS, complete=set(BY_KIND))
    cluster = Cluster(state, {}, nodes // NODES_A_GATED)
    meta = {"name": "h100", "uid": "c", "finalizers": [FINALIZER]}
    cluster.put(GPUClass, {"metadata": meta, "spec": {"resourceName": GPU}})
    for number in range(nodes):
        cluster.put_node(number, units)
        for part in range(CLAIMS_A_NODE):
            name, node = f"vm-{number}-{part}", f"n{number}"
            cluster.put_vm(name, node)
            vm = {"name": name, "uid": f"vm-{name}"}
            cluster.put_claim(name, {"phase": "Bound", "nodeName": node, "vm": vm})
    for number in range(cluster.gated):
        cluster.put_vm(f"new-{number}", "")
    return cluster


def _launcher(name: str, node: str) -> dict[str, Any]:
    requests = {"cpu": "2", "memory": "8Gi", GPU: "1", "devices.kubevirt.io/kvm": "1"}
    expressions = [{"key": "node-labeller.kubevirt.io/obsolete-host-model", "operator": "DoesNotExist"}]
    required = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    return {
        "metadata": {
            "name": f"virt-launcher-{name}",
            "namespace": "default",
            "uid": f"pod-{name}",
            "resourceVersion": "5",
            "labels": {"kubevirt.io/created-by": f"vmi-{name}"},
            "ownerReferences": [_owner("VirtualMachineInstance", name, f"vmi-{name}")],
        },
        "spec": {
            "nodeName": node,
            "schedulingGates": [] if node else [{"name": GATE}],
            "nodeSelector": {"kubernetes.io/arch": "amd64"},
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
            "containers": [{"name": "compute", "resources": {"requests": requests}}],
        },
        "status": {"phase": "Running" if node else "Pending"},
    }


def _owner(kind: str, name: str, uid: str) -> dict[str, Any]:
    return {"apiVersion": "kubevirt.io/v1", "controller": True, "kind": kind, "name": name, "uid": uid}
