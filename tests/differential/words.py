"""The words that random nodes and pods are made of: few, so that they meet; some odd, so that they hurt."""

from __future__ import annotations

from random import Random
from typing import Any

Json = dict[str, Any]

GPU = "nvidia.com/GH100_H100_SXM5_80GB"
NIC = "example.com/nic"
KVM = "devices.kubevirt.io/kvm"
HUGE = "hugepages-2Mi"
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
OLD_REGION = "failure-domain.beta.kubernetes.io/region"

LABELS: dict[str, tuple[str, ...]] = {
    ZONE: ("z1", "z2", "z3"),
    REGION: ("r1", "r2"),
    OLD_ZONE: ("z1", "z2"),
    OLD_REGION: ("r1",),
    "tier": ("gold", "silver", ""),
    "mem": ("40960", "81920", "081920", "abc", "1_000", "9223372036854775807", "9223372036854775808", ""),
    "example.com/gpu": ("true",),
    "metadata.name": ("n-1",),
}
BOUNDS = ("80000", "40960", "0", "1", "12.5", "0x10", "1_000", "9223372036854775808", "007", "")
TAINT_KEYS = ("gpu", "dedicated", "example.com/gpu", "node.kubernetes.io/unschedulable")
TAINT_VALUES = ("", "present", "5", "10", "007", "vm", "9223372036854775807")
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
NODES = tuple(f"n-{number}" for number in range(1, 41))


def chance(rng: Random, percent: int) -> bool:
    return rng.randrange(100) < percent


def some(rng: Random, words: tuple[str, ...], low: int, high: int) -> list[str]:
    return [rng.choice(words) for _ in range(rng.randint(low, high))]


def requirement(rng: Random) -> Json:
    """A condition on a node's label, mostly one that the server takes."""
    key = rng.choice((*LABELS, "tier", "mem", "nobody-has-it"))
    operator = rng.choice(("In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    if operator in ("Gt", "Lt"):
        return {"key": rng.choice((key, "mem")), "operator": operator, "values": [rng.choice(BOUNDS)]}
    if operator in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": operator}
    values = some(rng, LABELS.get(key, ("x",)), 1, 3)
    return {"key": key, "operator": operator, "values": values}


def term(rng: Random, names_percent: int = 15) -> Json:
    """Conditions that must all hold; now and then none."""
    if chance(rng, 6):
        return {}
    written: Json = {}
    expressions = [requirement(rng) for _ in range(rng.choice((0, 1, 1, 1, 2, 3)))]
    if expressions:
        written["matchExpressions"] = expressions
    if chance(rng, names_percent):
        written["matchFields"] = [
            {
                "key": "metadata.name",
                "operator": rng.choice(("In", "NotIn")),
                "values": [rng.choice(NODES[:4])],
            }
            for _ in range(rng.choice((1, 1, 2)))
        ]
    return written


def terms(rng: Random, names_percent: int = 15) -> list[Json]:
    return [term(rng, names_percent) for _ in range(rng.choice((1, 1, 2, 3)))]


def requests(rng: Random) -> Json:
    """What a container asks for; limits where the server wants them."""
    wanted: dict[str, str] = {}
    if chance(rng, 60):
        wanted["cpu"] = rng.choice(("100m", "1", "1500m", "2", "0", "3", "1e-1", "0.0005", "8"))
    if chance(rng, 60):
        wanted["memory"] = rng.choice(
            ("64Mi", "1Gi", "2Gi", "1500M", "0", "500m", "1e9", "1", "8Gi", "1.5Gi")
        )
    if chance(rng, 15):
        wanted["ephemeral-storage"] = rng.choice(("1Gi", "0", "10Gi", "1k"))
    exact: dict[str, str] = {}
    if chance(rng, 35):
        exact[GPU] = rng.choice(("0", "1", "1", "2", "1000m", "4"))
    if chance(rng, 10):
        exact[NIC] = rng.choice(("1", "2", "0"))
    if chance(rng, 10):
        exact[KVM] = "1"
    if chance(rng, 10):
        exact[HUGE] = rng.choice(("2Mi", "4Mi", "64Mi", "0"))
        wanted.setdefault("memory", "64Mi")
    resources: Json = {"requests": wanted | exact}
    if exact:
        resources["limits"] = exact
    return resources
