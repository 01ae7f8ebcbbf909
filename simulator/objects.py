"""GPU nodes and VMs as a cluster has them, in the shape of the recordings."""

from __future__ import annotations

from collections.abc import Mapping

from kube.port import Json
from simulator.actors.kubelet import KUBELET


def gpu_node(name: str, gpus: Mapping[str, int], labels: Mapping[str, str] | None = None) -> Json:
    """A Node whose kubelet our actor plays; `gpus` are units per extended resource."""
    allocatable = {
        "cpu": "64",
        "memory": "512Gi",
        "pods": "110",
        "ephemeral-storage": "500Gi",
        "devices.kubevirt.io/kvm": "1k",
        "devices.kubevirt.io/tun": "1k",
        "devices.kubevirt.io/vhost-net": "1k",
        **{resource: str(units) for resource, units in gpus.items()},
    }
    return {
        "metadata": {
            "name": name,
            "labels": {
                KUBELET: "yes",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubevirt.io/schedulable": "true",
                "machine-type.node.kubevirt.io/q35": "true",
                **(labels or {}),
            },
        },
        "spec": {},
        "status": {"allocatable": allocatable, "capacity": dict(allocatable)},
    }


def gpu_vm(name: str, gpus: Mapping[str, int], namespace: str = "default") -> Json:
    """A VirtualMachine that asks for units per extended resource, as a tenant writes it."""
    devices = [
        {"deviceName": resource, "name": f"gpu{index}"}
        for index, resource in enumerate(r for r, units in sorted(gpus.items()) for _ in range(units))
    ]
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "runStrategy": "Always",
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "architecture": "amd64",
                    "domain": {
                        "cpu": {"cores": 2},
                        "devices": {"gpus": devices},
                        "machine": {"type": "q35"},
                        "memory": {"guest": "4Gi"},
                    },
                },
            },
        },
    }
