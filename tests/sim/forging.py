"""What tenants write that is not what it says it is, and pods that ask for GPUs without a VM."""

from __future__ import annotations

from kube.port import Json
from simulator.actors.kubelet import LINGER
from simulator.actors.launcher_pod import launcher_pod
from tests.sim.view import FORGED, uid


def raw_pod(ns: str, name: str, gpus: dict[str, int], node: str) -> Json:
    """A pod of a tenant; one with a node name goes past the scheduler."""
    asked = {resource: str(units) for resource, units in gpus.items()}
    container = {"name": "c", "image": "cuda", "resources": {"requests": asked, "limits": asked}}
    spec: Json = {"containers": [container], "terminationGracePeriodSeconds": 30}
    if node:
        spec["nodeName"] = node
    meta = {"name": name, "namespace": ns, "annotations": {LINGER: "yes"}}
    return {"metadata": meta, "spec": spec}


def local_volume(ns: str, name: str, node: str) -> tuple[Json, Json]:
    """A volume on one node's disk, and the claim that has it."""
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    spec = {
        "capacity": {"storage": "10Gi"},
        "accessModes": ["ReadWriteOnce"],
        "claimRef": {"name": name, "namespace": ns},
        "local": {"path": "/disk"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
    }
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}}
    claim = {
        "metadata": {"name": name, "namespace": ns},
        "spec": wanted | {"volumeName": f"pv-{ns}-{name}"},
    }
    return {"metadata": {"name": f"pv-{ns}-{name}"}, "spec": spec}, claim


def launcher(vmi: Json, gpus: dict[str, int]) -> Json:
    """A pod that claims to be another launcher of a VMI; virt-controller will even list it."""
    pod = launcher_pod(vmi)
    pod["metadata"]["generateName"] = f"{FORGED}{vmi['metadata']['name']}-"
    asked = {resource: str(units) for resource, units in gpus.items()}
    pod["spec"]["containers"][0]["resources"] = {"requests": asked, "limits": asked}
    return pod


def claim(vmi: Json, gpu_class: str) -> Json:
    """A claim that has the name which the VMI's own would have."""
    meta = vmi["metadata"]
    name = f"{meta['name']}-{gpu_class}-{uid(vmi)[:8]}"
    return {
        "metadata": {"name": name, "namespace": meta["namespace"]},
        "spec": {"className": gpu_class, "units": 1},
    }


def owner(vmi: Json) -> Json:
    """A reference that makes a VMI the owner of something."""
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "name": vmi["metadata"]["name"],
        "uid": uid(vmi),
        "controller": True,
        "blockOwnerDeletion": False,
    }
