"""Random clusters: nodes, pods that take room, volumes bound, unbound, half bound, lost and leaving."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from binder.core.volumes import SELECTED_NODE
from model.names import ANNOTATIONS_READ
from tests.differential.words import (
    EFFECTS,
    GPU,
    HUGE,
    KVM,
    LABELS,
    NIC,
    NODES,
    OLD_ZONE,
    TAINT_KEYS,
    TAINT_VALUES,
    ZONE,
    Json,
    chance,
    requests,
    terms,
)

VOLUMES = tuple(f"pv-{number}" for number in range(1, 25))
CLAIMS = tuple(f"pvc-{number}" for number in range(1, 41))
STATIC_CLAIMS = CLAIMS[5::8]
"""Unbound, of a class whose volumes somebody makes beforehand."""
HALVES = (
    (VOLUMES[0], "Pending"),
    (VOLUMES[1], "Lost"),
    ("pv-gone", "Bound"),
    ("pv-gone", "Lost"),
    (VOLUMES[3], "Lost"),
)
"""Claims that name a volume and are not bound to it, or not any more, or whose volume has gone."""
RUNTIME = "with-overhead"
OVERHEAD = {"cpu": "250m", "memory": "120Mi"}
IMMEDIATE, WAITING, ZONED, NOWHERE, STATIC = "immediate", "waiting", "zoned", "nowhere", "static"
BOUND_ANNOTATION = "pv.kubernetes.io/bind-completed"


def nodes(rng: Random) -> Iterator[Json]:
    for name in NODES:
        labels = {key: rng.choice(values) for key, values in LABELS.items() if chance(rng, 45)}
        taints = {
            (key, effect): {"key": key, "value": rng.choice(TAINT_VALUES), "effect": effect}
            for key in TAINT_KEYS
            for effect in EFFECTS
            if chance(rng, 4)
        }
        spec: Json = {"taints": list(taints.values())}
        if chance(rng, 8):
            spec["unschedulable"] = True
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": spec,
            "status": {
                "allocatable": allocatable(rng),
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }


def allocatable(rng: Random) -> dict[str, str]:
    offered = {
        "cpu": rng.choice(("8", "16", "32", "17", "2500m", "0")),
        "memory": rng.choice(("16Gi", "32Gi", "8Gi", "1500M", "100")),
        "ephemeral-storage": rng.choice(("20Gi", "100Gi", "0", "1Gi")),
        "pods": rng.choice(("110", "110", "110", "110", "3", "2", "0")),
        GPU: rng.choice(("0", "1", "2", "4", "8")),
        NIC: rng.choice(("0", "1", "4")),
        KVM: "1k",
        HUGE: rng.choice(("0", "64Mi", "4Mi")),
    }
    return {name: amount for name, amount in offered.items() if not chance(rng, 5)}


def occupants(rng: Random) -> Iterator[Json]:
    """Pods that are on nodes, in every phase, some of them being resized."""
    for number in range(60):
        containers = [
            {"name": f"c{n}", "image": "x", "resources": requests(rng)} for n in range(rng.choice((1, 1, 2)))
        ]
        inits: list[Json] = [
            {"name": f"i{n}", "image": "x", "resources": requests(rng)}
            for n in range(rng.choice((0, 0, 1, 2)))
        ]
        for init in inits:
            if chance(rng, 50):
                init["restartPolicy"] = "Always"
        spec: Json = {"nodeName": rng.choice(NODES), "containers": containers, "initContainers": inits}
        if chance(rng, 15):
            spec["resources"] = {"requests": {"cpu": "9", "memory": "9Gi"}}
        phase = rng.choice(("Running", "Running", "Running", "Pending", "Succeeded", "Failed"))
        status: Json = {"phase": phase}
        if chance(rng, 40):
            status |= resized(rng, containers, inits, is_whole="resources" in spec)
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"occupant-{number}"},
            "spec": spec,
            "status": status,
        }


def resized(rng: Random, containers: list[Json], inits: list[Json], *, is_whole: bool) -> Json:
    """What the kubelet reports while a pod's resources are being changed."""
    status: Json = {}
    for field, described in (("containerStatuses", containers), ("initContainerStatuses", inits)):
        status[field] = [_container_status(rng, one["name"]) for one in described if chance(rng, 80)]
    if is_whole and chance(rng, 60):
        status["allocatedResources"] = {"cpu": rng.choice(("2", "12")), "memory": rng.choice(("1Gi", "12Gi"))}
        if chance(rng, 70):
            status["resources"] = {"requests": {"cpu": rng.choice(("1", "11")), "memory": "2Gi"}}
    if chance(rng, 40):
        reason = rng.choice(("Infeasible", "Deferred"))
        status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    return status


def _container_status(rng: Random, name: str) -> Json:
    status: Json = {"name": name, "image": "x", "imageID": "", "ready": True, "restartCount": 0}
    if chance(rng, 70):
        status["allocatedResources"] = {
            "cpu": rng.choice(("50m", "4", "1")),
            "memory": rng.choice(("1Mi", "6Gi")),
        }
    if chance(rng, 60):
        status["resources"] = {
            "requests": {"cpu": rng.choice(("10m", "5")), "memory": rng.choice(("2Mi", "7Gi"))}
        }
    return status


def classes() -> Iterator[Json]:
    """Storage classes, and the runtime class whose overhead pods get."""
    zoned = [
        {
            "matchLabelExpressions": [
                {"key": ZONE, "values": ["z1", "z2"]},
                {"key": "tier", "values": ["gold"]},
            ]
        },
        {"matchLabelExpressions": [{"key": ZONE, "values": ["z3"]}]},
    ]
    nowhere = [{"matchLabelExpressions": [{"key": "nobody-has-it", "values": ["x"]}]}]
    static = "kubernetes.io/no-provisioner"
    for name, mode, provisioner, topologies in (
        (IMMEDIATE, "Immediate", "example.com/disk", []),
        (WAITING, "WaitForFirstConsumer", "example.com/disk", []),
        (ZONED, "WaitForFirstConsumer", "example.com/disk", zoned),
        (NOWHERE, "WaitForFirstConsumer", "example.com/disk", nowhere),
        (STATIC, "WaitForFirstConsumer", static, []),
    ):
        yield {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name},
            "provisioner": provisioner,
            "volumeBindingMode": mode,
            "allowedTopologies": topologies,
        }
    yield {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": RUNTIME},
        "handler": "x",
        "overhead": {"podFixed": OVERHEAD},
    }


def volumes(rng: Random) -> Iterator[Json]:
    for number, name in enumerate(VOLUMES):
        is_free = number % 3 == 2
        spec: Json = {
            "capacity": {"storage": rng.choice(("1Gi", "10Gi"))},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/x"},
            "storageClassName": rng.choice((STATIC, ZONED)) if is_free else IMMEDIATE,
        }
        if chance(rng, 10):
            spec["volumeMode"] = "Block"
        if number % 6 == 0:
            name_only = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [NODES[0]]}]}
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [name_only]}}
        elif chance(rng, 75):
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms(rng, 25)}}
        labels = {}
        if chance(rng, 25):
            labels[rng.choice((ZONE, OLD_ZONE))] = rng.choice(("z1", "z2", "z1__z3", "z1__", "z9"))
        yield {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name, "labels": labels},
            "spec": spec,
            "status": {"phase": "Available" if is_free else "Bound"},
        }


def claims(rng: Random) -> Iterator[Json]:
    """Claims that the pods of the cluster name; those whose names end in 7 are deleted afterwards."""
    for number, name in enumerate(CLAIMS):
        spec: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        annotations: dict[str, str] = {}
        phase = "Pending"
        match number % 8:
            case 0 | 1 | 2:  # bound
                spec |= {"volumeName": rng.choice(VOLUMES), "storageClassName": IMMEDIATE}
                annotations[BOUND_ANNOTATION] = "yes"
                phase = "Bound"
            case 3:
                volume, phase = HALVES[number // 8]
                spec |= {"volumeName": volume, "storageClassName": WAITING}
                if phase != "Pending":
                    annotations[BOUND_ANNOTATION] = "yes"
            case 4:
                spec["storageClassName"] = rng.choice((IMMEDIATE, "no-such-class", ""))
            case _:
                spec["storageClassName"] = rng.choice((WAITING, ZONED, ZONED, NOWHERE, STATIC))
                if name in STATIC_CLAIMS:
                    spec["storageClassName"] = STATIC
                if SELECTED_NODE in ANNOTATIONS_READ and chance(rng, 25):
                    annotations[SELECTED_NODE] = rng.choice(NODES)
                if chance(rng, 15):
                    spec["volumeMode"] = "Block"
                if name in STATIC_CLAIMS[:2] or chance(rng, 10):
                    spec["resources"]["requests"]["storage"] = "5Gi"
        yield {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "annotations": annotations},
            "spec": spec,
            "status": {"phase": phase},
        }
