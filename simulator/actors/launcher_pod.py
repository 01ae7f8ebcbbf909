"""The launcher pod that virt-controller makes for a VMI, as the recordings of a real one show it."""

from __future__ import annotations

import math
from typing import Any

from kube.port import Json
from model.quantity import parse_quantity

_IMAGE = "virt-launcher:simulated"
_MEMORY_OVERHEAD_MI = 1320
_LABEL_MAX = 63
_DROPPED_ANNOTATIONS = (
    "kubectl.kubernetes.io",
    "kubevirt.io/storage-observed-api-version",
    "kubevirt.io/latest-observed-api-version",
)
_HOST_MODEL = "node-labeller.kubevirt.io/obsolete-host-model"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def launcher_pod(vmi: Json) -> Json:
    """The pod's body; the gate is admission's business."""
    meta, spec = vmi["metadata"], vmi["spec"]
    name, uid = meta["name"], meta["uid"]
    return {
        "metadata": {
            "generateName": f"virt-launcher-{name}-",
            "namespace": meta["namespace"],
            "labels": {
                **(meta.get("labels") or {}),
                "kubevirt.io": "virt-launcher",
                "kubevirt.io/created-by": uid,
                "vm.kubevirt.io/name": _hostname(spec, name),
                "vmi.kubevirt.io/id": name[:_LABEL_MAX].rstrip("-."),
            },
            "annotations": {"kubevirt.io/domain": name} | _kept_annotations(meta) | _own_annotations(meta),
            "ownerReferences": [
                {
                    "apiVersion": "kubevirt.io/v1",
                    "kind": "VirtualMachineInstance",
                    "name": name,
                    "uid": uid,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": _pod_spec(spec, name),
    }


def _pod_spec(spec: Json, name: str) -> Json:
    pod: Json = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": spec.get("terminationGracePeriodSeconds", 30) + 30,
        "hostname": _hostname(spec, name),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "nodeSelector": _node_selector(spec),
        "affinity": _affinity(spec),
        "tolerations": list(spec.get("tolerations") or []),
        "readinessGates": [{"conditionType": "kubevirt.io/virtual-machine-unpaused"}],
        "volumes": _volumes(spec),
        "initContainers": [_console_log()],
        "containers": [{"name": "compute", "image": _IMAGE, "resources": _resources(spec)}],
    }
    for field in ("priorityClassName", "schedulerName", "topologySpreadConstraints", "resourceClaims"):
        if spec.get(field):
            pod[field] = spec[field]
    return pod


def _kept_annotations(meta: Json) -> dict[str, str]:
    given = meta.get("annotations") or {}
    return {key: value for key, value in given.items() if not key.startswith(_DROPPED_ANNOTATIONS)}


def _hostname(spec: Json, name: str) -> str:
    """A DNS label made from the hostname or the VMI's name: it does not tell which VM it is (049)."""
    return str(spec.get("hostname") or name.partition(".")[0])[:_LABEL_MAX].rstrip("-")


def _own_annotations(meta: Json) -> dict[str, str]:
    """What is written over the VMI's own annotations: marks for kubectl, the descheduler and backups."""
    freezer = "/usr/bin/virt-freezer"
    target = f'"--name", "{meta["name"]}", "--namespace", "{meta["namespace"]}"'
    return {
        "descheduler.alpha.kubernetes.io/request-evict-only": "",
        "kubectl.kubernetes.io/default-container": "compute",
        "kubevirt.io/memory-overhead-bytes": str(_MEMORY_OVERHEAD_MI * 1024 * 1024),
        "kubevirt.io/migrationTransportUnix": "true",
        "post.hook.backup.velero.io/command": f'["{freezer}", "--unfreeze", {target}]',
        "post.hook.backup.velero.io/container": "compute",
        "pre.hook.backup.velero.io/command": f'["{freezer}", "--freeze", {target}]',
        "pre.hook.backup.velero.io/container": "compute",
        "pre.hook.backup.velero.io/timeout": "60s",
    }


def _node_selector(spec: Json) -> dict[str, str]:
    machine = (spec["domain"].get("machine") or {}).get("type", "q35")
    return {
        "kubernetes.io/arch": spec.get("architecture", "amd64"),
        "kubevirt.io/schedulable": "true",
        f"machine-type.node.kubevirt.io/{machine}": "true",
        **(spec.get("nodeSelector") or {}),
    }


def _affinity(spec: Json) -> Json:
    """The VMI's own, with KubeVirt's expression in every required term, or as the only one."""
    affinity: Json = dict(spec.get("affinity") or {})
    node = dict(affinity.get("nodeAffinity") or {})
    expression = {"key": _HOST_MODEL, "operator": "DoesNotExist"}
    terms: list[Json] = list((node.get(_REQUIRED) or {}).get("nodeSelectorTerms") or [{}])
    node[_REQUIRED] = {
        "nodeSelectorTerms": [
            {**term, "matchExpressions": [*(term.get("matchExpressions") or []), expression]}
            for term in terms
        ]
    }
    return {**affinity, "nodeAffinity": node}


def _volumes(spec: Json) -> list[Json]:
    names = ("private", "public", "sockets", "virt-bin-share-dir", "libvirt-runtime", "ephemeral-disks")
    volumes: list[Json] = [{"name": name, "emptyDir": {}} for name in names]
    for disk in spec.get("volumes") or []:
        source = disk.get("persistentVolumeClaim") or {}
        claim = source.get("claimName") or (disk.get("dataVolume") or {}).get("name")
        hotplugged = source.get("hotpluggable") or (disk.get("dataVolume") or {}).get("hotpluggable")
        if claim and not hotplugged:
            volumes.append({"name": disk["name"], "persistentVolumeClaim": {"claimName": claim}})
    return [*volumes, {"name": "hotplug-disks", "emptyDir": {}}]


def _resources(spec: Json) -> Json:
    domain = spec["domain"]
    devices = {f"devices.kubevirt.io/{name}": 1 for name in ("kvm", "tun", "vhost-net")}
    for device in _devices(domain):
        devices[device] = devices.get(device, 0) + 1
    given = domain.get("resources") or {}
    limits = {name: str(count) for name, count in devices.items()}
    requests = {
        **limits,
        "cpu": f"{100 * ((domain.get('cpu') or {}).get('cores') or 1)}m",
        "memory": f"{_memory_mi(domain)}Mi",
        "ephemeral-storage": "50M",
    }
    return {
        "limits": limits | (given.get("limits") or {}),
        "requests": requests | (given.get("requests") or {}),
    }


def _devices(domain: Json) -> list[str]:
    """The extended resources of GPUs and host devices; those of a DRA claim have no deviceName (053)."""
    devices = domain.get("devices") or {}
    listed: list[Any] = [*(devices.get("gpus") or []), *(devices.get("hostDevices") or [])]
    return [device["deviceName"] for device in listed if device.get("deviceName")]


def _memory_mi(domain: Json) -> int:
    asked = ((domain.get("resources") or {}).get("requests") or {}).get("memory", "1Gi")
    guest = (domain.get("memory") or {}).get("guest", asked)
    return math.ceil(parse_quantity(guest) / 1024**2) + _MEMORY_OVERHEAD_MI


def _console_log() -> Json:
    return {
        "name": "guest-console-log",
        "image": _IMAGE,
        "restartPolicy": "Always",
        "resources": {
            "requests": {"cpu": "5m", "memory": "35M"},
            "limits": {"cpu": "15m", "memory": "60M"},
        },
    }
