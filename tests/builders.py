"""Builders of the models, with a default for every field: a test names only what it is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from binder.core.claims import key_of
from binder.core.state import ClusterState, Key
from model.claims import GPUBudget, GPUClaim, GPUClass
from model.kinds import BY_KIND
from model.kubevirt import VirtualMachine, VirtualMachineInstance
from model.meta import Lean
from model.names import ANNOTATION_CLAIMS, ANNOTATION_CLASS, FINALIZER, GATE
from model.namespaces import Namespace
from model.nodes import Node
from model.pods import Pod

H100 = "nvidia.com/GH100_H100_SXM5_80GB"
T4 = "nvidia.com/TU104GL_Tesla_T4"
NOW_MS = 1_800_000_000_000
NOW = "2027-01-15T08:00:00Z"
"""The same instant, as objects have it."""
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
    name: str = "order-1",
    units: int = 1,
    *,
    class_name: str = "h100",
    node: str = "",
    vm_uid: str = "",
    **more: object,
) -> GPUClaim:
    """An order, Pending or Bound to `node`, used by the VM of `vm_uid`.

    More: namespace, created, deleting, and parts of its status (boundAt, lostAt...).
    """
    status: dict[str, object] = {"phase": "Bound", "nodeName": node} if node else {"phase": "Pending"}
    namespace, created = more.pop("namespace", "default"), more.pop("created", AT)
    deleted_at = AT if more.pop("deleting", False) else None
    status |= more
    if vm_uid:
        status["vm"] = {"name": vm_uid.removeprefix("vm-"), "uid": vm_uid}
    return GPUClaim.model_validate(
        {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": f"claim-{name}",
                "resourceVersion": "7",
                "generation": 1,
                "creationTimestamp": created,
                "deletionTimestamp": deleted_at,
                "finalizers": [FINALIZER],
            },
            "spec": {"className": class_name, "units": units},
            "status": status,
        }
    )


def template_claim(
    vm: str = "vm1", units: int = 1, *, class_name: str = "h100", node: str = "", **more: object
) -> GPUClaim:
    """The template claim of the VMI that `vmi(vm)` builds; more: vmi_uid, and what `order` takes."""
    vmi_uid = str(more.pop("vmi_uid", f"vmi-{vm}"))
    name = f"{vm}-{class_name}-{vmi_uid[:8]}"
    raw = order(name, units, class_name=class_name, node=node, **more).model_dump(by_alias=True)  # type: ignore[arg-type]
    raw["metadata"]["ownerReferences"] = [_owner("VirtualMachineInstance", vm, vmi_uid)]
    if node:
        raw["status"]["vm"] = {"name": vm, "uid": f"vm-{vm}"}
    return GPUClaim.model_validate(raw)


def vm(
    name: str = "vm1", *, claims: str = "", created: str = AT, strategy: str = "Always", uid: str = ""
) -> VirtualMachine:
    """A VM whose template names the orders of `claims`."""
    annotations = {ANNOTATION_CLAIMS: claims} if claims else {}
    return VirtualMachine.model_validate(
        {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": uid or f"vm-{name}",
                "creationTimestamp": created,
            },
            "spec": {"runStrategy": strategy, "template": {"metadata": {"annotations": annotations}}},
        }
    )


def vmi(
    name: str = "vm1", *, phase: str = "Scheduling", claims: str = "", gpu_class: str = "", **more: object
) -> VirtualMachineInstance:
    """The VMI of `vm(name)`, listing the pod that `launcher(name)` builds.

    More: uid, vm_uid (empty for none), node, pods (uids that it lists), seen (phases it went through),
    deleting.
    """
    uid, vm_uid = more.get("uid", f"vmi-{name}"), more.get("vm_uid", f"vm-{name}")
    pods, seen = more.get("pods", [f"pod-{name}"]), more.get("seen", [])
    assert isinstance(pods, list)
    assert isinstance(seen, list)
    annotations = {k: v for k, v in ((ANNOTATION_CLAIMS, claims), (ANNOTATION_CLASS, gpu_class)) if v}
    return VirtualMachineInstance.model_validate(
        {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": uid,
                "annotations": annotations,
                "ownerReferences": [_owner("VirtualMachine", name, str(vm_uid))] if vm_uid else [],
                "deletionTimestamp": AT if more.get("deleting") else None,
            },
            "status": {
                "phase": phase,
                "nodeName": more.get("node", ""),
                "activePods": dict.fromkeys(pods, ""),
                "phaseTransitionTimestamps": [{"phase": one} for one in seen],
            },
        }
    )


def launcher(name: str = "vm1", units: int = 1, *, resource: str = H100, **changes: object) -> Pod:
    """The gated launcher of `vmi(name)`.

    Changes: gates, node, phase, requests, terms, priority, uid, pod, labels, status, deleting...
    """
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
    labels: dict[str, object] = {"kubevirt.io": "virt-launcher", "kubevirt.io/created-by": owner_uid}
    return Pod.model_validate(
        {
            "metadata": {
                "name": changes.get("pod", f"virt-launcher-{name}-abcde"),
                "namespace": "default",
                "uid": changes.get("uid", f"pod-{name}"),
                "resourceVersion": "5",
                "creationTimestamp": changes.get("created", AT),
                "deletionTimestamp": AT if changes.get("deleting") else None,
                "labels": labels | changes.get("labels", {}),  # type: ignore[operator]
                "ownerReferences": [_owner("VirtualMachineInstance", name, str(owner_uid))],
            },
            "spec": spec,
            "status": {"phase": changes.get("phase", "Pending")} | changes.get("status", {}),  # type: ignore[operator]
        }
    )


def pinned_to(node: str) -> list[dict[str, object]]:
    """The required terms of a launcher that had none, once it is pinned."""
    return [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]


def pinned_launcher(name: str = "vm1", pin: str = "gpu-1", units: int = 1, **changes: object) -> Pod:
    """The launcher of `vmi(name)`, pinned to that node and ungated; changes as for `launcher`."""
    return launcher(name, units, **{"gates": [], "terms": pinned_to(pin), **changes})  # type: ignore[arg-type]


def running_vm(
    name: str = "vm1", node: str = "gpu-1", units: int = 1, *, strategy: str = "Always", claims: str = ""
) -> tuple[Lean, Lean, Lean]:
    """VM, Running VMI and its launcher on the node."""
    pod = pinned_launcher(name, node, units, node=node, phase="Running")
    run = vmi(name, phase="Running", node=node, claims=claims)
    return (vm(name, strategy=strategy, claims=claims), run, pod)


def starting_vm(
    name: str = "vm1", node: str = "gpu-1", units: int = 1, *, strategy: str = "Always", **changes: object
) -> tuple[Lean, Lean, Lean]:
    """VM, VMI and a launcher that is pinned to the node and has never run; changes are the launcher's."""
    return (vm(name, strategy=strategy), vmi(name), pinned_launcher(name, node, units, **changes))


def budget(
    name: str = "budget",
    *,
    parent: str = "",
    labels: object = None,
    resources: object = None,
    **classes: int,
) -> GPUBudget:
    """A budget of units by class, over the namespaces with the labels (all without)."""
    spec = {
        "parent": parent,
        "namespaceSelector": {"matchLabels": labels or {}},
        "classes": classes,
        "resources": resources or {},
    }
    return GPUBudget.model_validate({"metadata": {"name": name, "uid": f"budget-{name}"}, "spec": spec})


def namespace(name: str = "default", **labels: str) -> Namespace:
    """A namespace with labels."""
    return Namespace.model_validate({"metadata": {"name": name, "uid": f"ns-{name}", "labels": labels}})


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
