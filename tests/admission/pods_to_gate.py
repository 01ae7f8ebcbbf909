"""Pods, and whether a cluster that sells `SOLD` gates them (R6): one table, for function and policy."""

from __future__ import annotations

from typing import Any

SOLD = "nvidia.com/GATED_GPU"
LAUNCHER = {"kubevirt.io": "virt-launcher"}


def pod(labels: dict[str, str], *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    named = [{"name": f"c{n}", "image": "x", "resources": r} for n, r in enumerate(containers)]
    return {"metadata": {"labels": labels}, "spec": {"containers": named, **spec}}


def gpus(count: str, resource: str = SOLD) -> dict[str, Any]:
    return {"requests": {resource: count}, "limits": {resource: count}}


def init(resources: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": "i", "image": "x", "resources": resources}]


def sidecar(resources: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"restartPolicy": "Always", **one} for one in init(resources)]


CPU = {"requests": {"cpu": "1"}}
TABLE: list[tuple[str, dict[str, Any], bool]] = [
    ("launcher with one unit", pod(LAUNCHER, gpus("1")), True),
    ("launcher with limits only", pod(LAUNCHER, {"limits": {SOLD: "2"}}), True),
    ("unit in the second container", pod(LAUNCHER, CPU, gpus("1")), True),
    ("unit in an init container", pod(LAUNCHER, CPU, initContainers=init(gpus("1"))), True),
    ("unit in a sidecar", pod(LAUNCHER, {}, initContainers=sidecar(gpus("1"))), True),
    ("one unit in another notation", pod(LAUNCHER, gpus("1000m")), True),
    ("thousand units", pod(LAUNCHER, gpus("1k")), True),
    ("unit written as a number", pod(LAUNCHER, {"limits": {SOLD: 1}}), True),
    ("unit beside other resources", pod(LAUNCHER, {"limits": {SOLD: "1", "nvidia.com/OTHER": "1"}}), True),
    ("unit in the last of many containers", pod(LAUNCHER, *[CPU] * 60, gpus("1")), True),
    ("empty list of gates", pod(LAUNCHER, gpus("1"), schedulingGates=[]), True),
    ("none in another notation", pod(LAUNCHER, gpus("0Ki")), False),
    ("nulls", pod(LAUNCHER, {"requests": None, "limits": None}), False),
    ("label that differs by case", pod({"kubevirt.io": "Virt-Launcher"}, gpus("1")), False),
    ("launcher without GPUs", pod(LAUNCHER, CPU), False),
    ("launcher without requests", pod(LAUNCHER, {}), False),
    ("launcher that asks for none", pod(LAUNCHER, gpus("0")), False),
    ("launcher of a resource that nobody sells", pod(LAUNCHER, gpus("1", "nvidia.com/OTHER")), False),
    ("name that differs by case", pod(LAUNCHER, gpus("1", SOLD.replace("GPU", "Gpu"))), False),
    ("pod that is no launcher", pod({}, gpus("1")), False),
    ("hotplug pod", pod({"kubevirt.io": "hotplug-disk"}, gpus("1")), False),
]
FOREIGN = pod(LAUNCHER, gpus("1"), schedulingGates=[{"name": "example.com/mine"}])
