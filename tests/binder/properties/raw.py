"""Raw objects of a small cluster, as a watcher reads them: every field that a rule looks at can vary.

Names and uids come from small pools, so that random objects meet: of each name there are two lives, with uids
of their own.
"""

from __future__ import annotations

from typing import Any

from model.names import ANNOTATION_CLAIMS, ANNOTATION_CLASS, FINALIZER, GATE

Raw = dict[str, Any]

H = "nvidia.com/H100"
T = "nvidia.com/T4"
AT = "2026-12-01T05:38:25Z"
DEAD = "2026-12-01T06:00:00Z"
TAINTS: tuple[list[Raw], ...] = (
    [],
    [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}],
    [{"key": "drain", "value": "", "effect": "NoExecute", "timeAdded": AT}],
    [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "timeAdded": AT}],
)
TOLERATIONS: tuple[list[Raw], ...] = (
    [],
    [{"key": "gpu", "operator": "Exists"}],
    [{"key": "drain", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}],
)


def uid_of(kind: str, namespace: str, name: str, life: int) -> str:
    return f"{kind.lower()}{life}-{namespace}-{name}"


def vmi_uid(namespace: str, name: str, life: int) -> str:
    """Begins with what makes template claims of two lives differ."""
    return f"{life}{name}{namespace}vmi-vmi"


def owner(kind: str, name: str, uid: str) -> Raw:
    return {"apiVersion": "kubevirt.io/v1", "kind": kind, "name": name, "uid": uid, "controller": True}


def meta(namespace: str, name: str, uid: str, **more: Any) -> Raw:
    return {"name": name, "namespace": namespace, "uid": uid, "creationTimestamp": AT} | more


def node(name: str, life: int, gpus: Raw, **look: Any) -> Raw:
    """Look: labels, taints, ready, unschedulable, memory, deleted."""
    deleted = {"deletionTimestamp": DEAD} if look.get("deleted") else {}
    allocatable = {"cpu": "8", "memory": look.get("memory", "16Gi"), "pods": "6"} | gpus
    return {
        "metadata": meta("", name, uid_of("Node", "", name, life), labels=look.get("labels", {}), **deleted),
        "spec": {"taints": look.get("taints", []), "unschedulable": look.get("unschedulable", False)},
        "status": {
            "allocatable": allocatable,
            "conditions": [{"type": "Ready", "status": look.get("ready", "True")}],
        },
    }


def gpu_class(name: str, resource: str, **spec: Any) -> Raw:
    """Spec, `deleted` or `kept` in the metadata, and what somebody has written as `status`."""
    status: Raw = spec.pop("status", {})
    more: Raw = {"deletionTimestamp": DEAD} if spec.pop("deleted", False) else {}
    more |= {"finalizers": [FINALIZER]} if spec.pop("kept", True) else {}
    return {
        "metadata": meta("", name, uid_of("GPUClass", "", name, 0), **more),
        "spec": {"resourceName": resource} | spec,
        "status": status,
    }


def vm(namespace: str, name: str, life: int, strategy: str, orders: str = "", *, created: str = AT) -> Raw:
    annotations = {ANNOTATION_CLAIMS: orders} if orders else {}
    metadata = meta(namespace, name, uid_of("VM", namespace, name, life)) | {"creationTimestamp": created}
    return {
        "metadata": metadata,
        "spec": {"runStrategy": strategy, "template": {"metadata": {"annotations": annotations}}},
    }


def vmi(namespace: str, name: str, life: int, phase: str, **look: Any) -> Raw:
    """Look: vm_life (None: no owner), orders, gpu_class, node, pods (names it lists), ran, deleted."""
    annotations = {
        key: value
        for key, value in (
            (ANNOTATION_CLAIMS, look.get("orders", "")),
            (ANNOTATION_CLASS, look.get("gpu_class", "")),
        )
        if value
    }
    more: Raw = {"annotations": annotations}
    if look.get("vm_life") is not None:
        vm_name = look.get("vm_name", name)
        more["ownerReferences"] = [
            owner("VirtualMachine", vm_name, uid_of("VM", namespace, vm_name, look["vm_life"]))
        ]
    if look.get("deleted"):
        more["deletionTimestamp"] = DEAD
    volumes = [
        {"name": disk, "persistentVolumeClaim": {"claimName": disk, "hotpluggable": True}}
        for disk in look.get("disks", ())
    ]
    status: Raw = {
        "phase": phase,
        "nodeName": look.get("node", ""),
        "activePods": {uid_of("Pod", namespace, pod, 0): "" for pod in look.get("pods", ())},
    }
    if look.get("ran"):
        status["phaseTransitionTimestamps"] = [{"phase": "Running", "phaseTransitionTimestamp": AT}]
    metadata = meta(namespace, name, vmi_uid(namespace, name, life), **more)
    return {"metadata": metadata, "spec": {"volumes": volumes}, "status": status}


def launcher(namespace: str, pod: str, vmi_name: str, life: int, **look: Any) -> Raw:
    """Look: gpus, memory, gates, pin, node, phase, reason, unschedulable, migration, deleted, priority..."""
    vmi = vmi_uid(namespace, vmi_name, life)
    labels = {"kubevirt.io": "virt-launcher", "kubevirt.io/created-by": vmi}
    labels |= {"kubevirt.io/migrationJobUID": "m"} if look.get("migration") else {}
    more: Raw = {
        "labels": labels,
        "ownerReferences": [owner("VirtualMachineInstance", vmi_name, vmi)],
        "creationTimestamp": look.get("created", AT),
    }
    more |= {"deletionTimestamp": DEAD} if look.get("deleted") else {}
    terms = [dict(term) for term in look.get("terms", ())]
    if look.get("pin"):
        pin = {"key": "metadata.name", "operator": "In", "values": [look["pin"]]}
        terms = [{**term, "matchFields": [pin]} for term in terms] or [{"matchFields": [pin]}]
    spec: Raw = {
        "containers": [
            {
                "name": "compute",
                "resources": {"requests": {"memory": look.get("memory", "1Gi")} | look["gpus"]},
            }
        ],
        "schedulingGates": [{"name": gate} for gate in look.get("gates", ())],
        "nodeName": look.get("node", ""),
        "nodeSelector": look.get("selector", {}),
        "priority": look.get("priority", 0),
        "volumes": [
            {"name": disk, "persistentVolumeClaim": {"claimName": disk}} for disk in look.get("disks", ())
        ],
    }
    if terms:
        required = {"nodeSelectorTerms": terms}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    status: Raw = {"phase": look.get("phase", "Pending"), "reason": look.get("reason", "")}
    if look.get("unschedulable"):
        status["conditions"] = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    return {
        "metadata": meta(namespace, pod, uid_of("Pod", namespace, pod, 0), **more),
        "spec": spec,
        "status": status,
    }


def raw_pod(namespace: str, name: str, node: str, gpus: Raw, phase: str) -> Raw:
    return {
        "metadata": meta(namespace, name, uid_of("Pod", namespace, name, 0)),
        "spec": {"nodeName": node, "containers": [{"name": "c", "resources": {"requests": gpus}}]},
        "status": {"phase": phase},
    }


def claim(namespace: str, name: str, class_name: str, units: int, **look: Any) -> Raw:
    """Look: phase, node, vm_uid, vmi (name, life) that owns it, deleted, kept, marked, bound_at, life."""
    more: Raw = {"finalizers": [FINALIZER]} if look.get("kept", True) else {}
    more |= {"deletionTimestamp": DEAD} if look.get("deleted") else {}
    if look.get("vmi"):
        vmi_name, life = look["vmi"]
        more["ownerReferences"] = [
            owner("VirtualMachineInstance", vmi_name, vmi_uid(namespace, vmi_name, life))
        ]
    status: Raw = {"phase": look.get("phase", "Pending"), "nodeName": look.get("node", "")}
    if look.get("phase") == "Bound":
        status["boundAt"] = look.get("bound_at", AT)
    if look.get("phase") == "Lost":
        status |= {"lostAt": AT, "lostFrom": "n0"}
    if look.get("vm_uid"):
        status["vm"] = {"name": "user", "uid": look["vm_uid"]}
    if look.get("marked"):
        status["conditions"] = [{"type": "Placed", "status": "False", "reason": look["marked"]}]
    return {
        "metadata": meta(namespace, name, uid_of("GPUClaim", namespace, name, look.get("life", 0)), **more),
        "spec": {"className": class_name, "units": units},
        "status": status,
    }


def budget(name: str, parent: str, classes: Raw, labels: Raw, status: Raw | None = None) -> Raw:
    return {
        "metadata": meta("", name, uid_of("GPUBudget", "", name, 0)),
        "spec": {"parent": parent, "classes": classes, "namespaceSelector": {"matchLabels": labels}},
        "status": status or {},
    }


def namespace(name: str, labels: Raw) -> Raw:
    return {"metadata": meta("", name, uid_of("Namespace", "", name, 0), labels=labels)}


def volume_claim(namespace: str, name: str, volume: str, storage_class: str) -> Raw:
    return {
        "metadata": meta(namespace, name, uid_of("PVC", namespace, name, 0)),
        "spec": {"volumeName": volume, "storageClassName": storage_class},
        "status": {"phase": "Bound" if volume else "Pending"},
    }


def volume(name: str, zones: list[str]) -> Raw:
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": zones}]}]
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}} if zones else {}
    return {"metadata": meta("", name, uid_of("PV", "", name, 0)), "spec": affinity}


def storage_class(name: str, mode: str) -> Raw:
    metadata = meta("", name, uid_of("StorageClass", "", name, 0))
    return {"metadata": metadata, "volumeBindingMode": mode, "provisioner": "csi.example"}


GATES = ((), (GATE,), (GATE, "other"), ("other",))
