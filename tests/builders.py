"""Builders of the models, with a default for every field: a test names only what it is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from binder.core.claims import key_of
from binder.core.state import ClusterState, Key
from model.claims import GPUClaim, GPUClass
from model.kinds import BY_KIND
from model.kubevirt import VirtualMachine, VirtualMachineInstance
from model.meta import Lean
from model.names import ANNOTATION_CLAIMS, ANNOTATION_CLASS, FINALIZER, GATE
from model.nodes import Node
from model.pods import Pod

H100 = "nvidia.com/GH100_H100_SXM5_80GB"
T4 = "nvidia.com/TU104GL_Tesla_T4"
NOW_MS = 1_800_000_000_000
AT = "2026-12-01T05:38:25Z"


def node(name: str = "gpu-1", units: int = 2, *, resource: str = H100, **changes: object) -> Node:
    """A Ready node with `units` of one GPU resource. Changes: labels, taints, ready, unschedulable, more."""
    allocatable = {"cpu": "64", "memory": "512Gi", "pods": "110", "devices.kubevirt.io/kvm": "1k"}
    more = changes.get("more", {})
    assert isinstance(more, dict)
    return Node.model_validate(
        {
            "metadata": {"name": name, "uid": f"node-{name}", "labels": changes.get("labels", {})},
            "spec": {
                "taints": changes.get("taints", []),
                "unschedulable": changes.get("unschedulable", False),
            },
            "status": {
                "allocatable": allocatable | {resource: str(units)} | more,
                "conditions": [{"type": "Ready", "status": changes.get("ready", "True")}],
            },
        }
    )


def gpu_class(name: str = "h100", resource: str = H100, **spec: object) -> GPUClass:
    """A class; `spec` adds nodeSelector, tolerations, default."""
    return GPUClass.model_validate(
        {
            "metadata": {"name": name, "uid": f"class-{name}", "finalizers": [FINALIZER]},
            "spec": {"resourceName": resource, **spec},
        }
    )


def order(
    name: str = "order-1", units: int = 1, *, class_name: str = "h100", node: str = "", vm_uid: str = ""
) -> GPUClaim:
    """An order, Pending or Bound to `node`, used by the VM of `vm_uid`."""
    status: dict[str, object] = {"phase": "Bound", "nodeName": node} if node else {"phase": "Pending"}
    if vm_uid:
        status["vm"] = {"name": vm_uid.removeprefix("vm-"), "uid": vm_uid}
    return GPUClaim.model_validate(
        {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"claim-{name}",
                "resourceVersion": "7",
                "generation": 1,
                "creationTimestamp": AT,
                "finalizers": [FINALIZER],
            },
            "spec": {"className": class_name, "units": units},
            "status": status,
        }
    )


def template_claim(vm: str = "vm1", units: int = 1, *, class_name: str = "h100", node: str = "") -> GPUClaim:
    """The template claim of the VMI that `vmi(vm)` builds."""
    raw = order(f"{vm}-{class_name}-vmi-{vm}"[:60], units, class_name=class_name, node=node).model_dump(
        by_alias=True
    )
    raw["metadata"]["name"] = f"{vm}-{class_name}-{f'vmi-{vm}'[:8]}"
    raw["metadata"]["ownerReferences"] = [_owner("VirtualMachineInstance", vm, f"vmi-{vm}")]
    if node:
        raw["status"]["vm"] = {"name": vm, "uid": f"vm-{vm}"}
    return GPUClaim.model_validate(raw)


def vm(name: str = "vm1", *, claims: str = "", created: str = AT) -> VirtualMachine:
    """A VM whose template names the orders of `claims`."""
    annotations = {ANNOTATION_CLAIMS: claims} if claims else {}
    return VirtualMachine.model_validate(
        {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"vm-{name}",
                "creationTimestamp": created,
            },
            "spec": {"runStrategy": "Always", "template": {"metadata": {"annotations": annotations}}},
        }
    )


def vmi(
    name: str = "vm1", *, phase: str = "Scheduling", claims: str = "", gpu_class: str = ""
) -> VirtualMachineInstance:
    """The VMI of `vm(name)`, listing the pod that `launcher(name)` builds."""
    annotations = {k: v for k, v in ((ANNOTATION_CLAIMS, claims), (ANNOTATION_CLASS, gpu_class)) if v}
    return VirtualMachineInstance.model_validate(
        {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"vmi-{name}",
                "annotations": annotations,
                "ownerReferences": [_owner("VirtualMachine", name, f"vm-{name}")],
            },
            "status": {"phase": phase, "activePods": {f"pod-{name}": ""}},
        }
    )


def launcher(name: str = "vm1", units: int = 1, *, resource: str = H100, **changes: object) -> Pod:
    """The gated launcher of `vmi(name)`. Changes: gates, node, phase, requests, terms, priority..."""
    spec: dict[str, object] = {
        "schedulingGates": [{"name": gate} for gate in changes.get("gates", [GATE])],  # type: ignore[attr-defined]
        "nodeName": changes.get("node", ""),
        "priority": changes.get("priority", 0),
        "nodeSelector": changes.get("node_selector", {}),
        "volumes": changes.get("volumes", []),
        "tolerations": changes.get("tolerations", []),
    }
    requests = {"cpu": "200m", "memory": "5416Mi", resource: str(units)} | changes.get("requests", {})  # type: ignore[operator]
    spec["containers"] = [{"name": "compute", "resources": {"requests": requests}}]
    if "terms" in changes:
        required = {"nodeSelectorTerms": changes["terms"]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    owner_uid = changes.get("vmi_uid", f"vmi-{name}")
    return Pod.model_validate(
        {
            "metadata": {
                "name": f"virt-launcher-{name}-abcde",
                "namespace": "default",
                "uid": f"pod-{name}",
                "resourceVersion": "5",
                "creationTimestamp": changes.get("created", AT),
                "labels": {"kubevirt.io": "virt-launcher", "kubevirt.io/created-by": owner_uid},
                "ownerReferences": [_owner("VirtualMachineInstance", name, str(owner_uid))],
            },
            "spec": spec,
            "status": {"phase": changes.get("phase", "Pending")},
        }
    )


def raw_pod(name: str, node: str, units: int = 1, *, resource: str = H100, phase: str = "Running") -> Pod:
    """A pod that asks for GPUs and that no claim covers."""
    return Pod.model_validate(
        {
            "metadata": {"name": name, "namespace": "default", "uid": f"pod-{name}"},
            "spec": {
                "nodeName": node,
                "containers": [{"name": "c", "resources": {"requests": {resource: str(units)}}}],
            },
            "status": {"phase": phase},
        }
    )


def state(*objects: Lean) -> ClusterState:
    """A complete, fresh cluster that holds the objects."""
    cluster = ClusterState(heard_ms=NOW_MS)
    cluster.complete |= BY_KIND.keys()
    for one in objects:
        meta = one.metadata  # type: ignore[attr-defined]
        kind = type(one).__name__
        cluster.shelves[kind].models[meta.namespace, meta.name] = one
        cluster.shelves[kind].uids[meta.namespace, meta.name] = meta.uid
    return cluster


def claims(*live: GPUClaim) -> Mapping[Key, GPUClaim]:
    """The live claims of a pass."""
    return {key_of(claim): claim for claim in live}


def started_vm(name: str, units: int = 1, **changes: object) -> Iterable[Lean]:
    """VM, VMI and gated launcher."""
    return (vm(name), vmi(name), launcher(name, units, **changes))  # type: ignore[arg-type]


def _owner(kind: str, name: str, uid: str) -> dict[str, object]:
    return {"apiVersion": "kubevirt.io/v1", "kind": kind, "name": name, "uid": uid, "controller": True}
