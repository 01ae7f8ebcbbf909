"""What a cluster offers and who asks for it, from the text of R7, R18, R26, R28 and R29 alone.

Knows nothing of the core: slow, short, over plain dicts. A cluster is a dict of lists of raw objects by kind.
Holds for clusters in which every VMI is its VM's, none has ended and no launcher is a migration's target.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

Raw = dict[str, Any]
Cluster = dict[str, list[Raw]]
GATE = "gpu.cozystack.io/placement"
ORDERS = "gpu.cozystack.io/claims"
CLASS = "gpu.cozystack.io/class"
FACTORS = {"m": Fraction(1, 1000), "k": 10**3, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


def name(one: Raw) -> str:
    return str(one["metadata"]["name"])


def namespace(one: Raw) -> str:
    return str(one["metadata"]["namespace"])


def full_name(one: Raw) -> str:
    return f"{namespace(one)}/{name(one)}"


def uid(one: Raw) -> str:
    return str(one["metadata"]["uid"])


def owner_uid(one: Raw, kind: str) -> str:
    owners = [o for o in one["metadata"].get("ownerReferences", []) if o["kind"] == kind and o["controller"]]
    return str(owners[0]["uid"]) if owners else ""


def amount(resource: str, text: str) -> int:
    """Milli-cores of cpu, whole units of all else, rounded up."""
    suffix = next((one for one in sorted(FACTORS, key=len, reverse=True) if text.endswith(one)), "")
    value = Fraction(text.removesuffix(suffix)) * FACTORS.get(suffix, 1) * (1000 if resource == "cpu" else 1)
    return -(-value.numerator // value.denominator)


def request(pod: Raw) -> dict[str, int]:
    """R29, of pods with containers and ordinary init containers only: the larger of the two, per resource."""
    total: dict[str, int] = {}
    for container in pod["spec"].get("containers", []):
        for resource, text in container["resources"]["requests"].items():
            total[resource] = total.get(resource, 0) + amount(resource, text)
    for container in pod["spec"].get("initContainers", []):
        for resource, text in container["resources"]["requests"].items():
            total[resource] = max(total.get(resource, 0), amount(resource, text))
    return total


def vmi_of(pod: Raw, cluster: Cluster) -> Raw | None:
    """R28: the VMI lists the pod, and the pod names the VMI twice."""
    for vmi in cluster["VirtualMachineInstance"]:
        is_listed = uid(pod) in vmi["status"]["activePods"] and namespace(pod) == namespace(vmi)
        names = (
            owner_uid(pod, "VirtualMachineInstance"),
            pod["metadata"].get("labels", {}).get("kubevirt.io/created-by"),
        )
        if is_listed and names == (uid(vmi), uid(vmi)):
            return vmi
    return None


def gates(pod: Raw) -> list[str]:
    return [gate["name"] for gate in pod["spec"].get("schedulingGates", [])]


def terms(pod: Raw) -> list[Raw] | None:
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required["nodeSelectorTerms"] if required else None


def place_of(pod: Raw, cluster: Cluster) -> str:
    """Where it is, or can only go to: the pin of a launcher that nothing holds back."""
    if pod["spec"].get("nodeName") or gates(pod) or vmi_of(pod, cluster) is None:
        return str(pod["spec"].get("nodeName", ""))
    pins = {
        tuple(field["values"])
        for term in terms(pod) or []
        for field in term.get("matchFields", [])
        if (field["key"], field["operator"]) == ("metadata.name", "In")
    }
    return next(iter(pins))[0] if len(pins) == 1 else ""


def vm_uid(vmi: Raw) -> str:
    return owner_uid(vmi, "VirtualMachine")


def serving(vmi: Raw, cluster: Cluster) -> list[Raw]:
    """The claims of a VMI: those that it owns, and the orders that its VM uses."""
    return [
        claim
        for claim in cluster["GPUClaim"]
        if owner_uid(claim, "VirtualMachineInstance") == uid(vmi)
        or (
            not owner_uid(claim, "VirtualMachineInstance")
            and claim["status"].get("vm", {}).get("uid") == vm_uid(vmi)
        )
    ]


def resource_of(claim: Raw, cluster: Cluster) -> str:
    """What its class sells, or nothing."""
    found = [c for c in cluster["GPUClass"] if name(c) == claim["spec"]["className"]]
    return str(found[0]["spec"]["resourceName"]) if found else ""


def units_on(node: str, claims: list[Raw], resource: str, cluster: Cluster) -> int:
    """Of the claims that are Bound there."""
    held = [c for c in claims if (c["status"]["phase"], c["status"].get("nodeName")) == ("Bound", node)]
    return sum(c["spec"]["units"] for c in held if resource_of(c, cluster) == resource)


def free_of(node: Raw, cluster: Cluster) -> dict[str, int]:
    """R26, of every resource that the node offers or that is sold: below zero where none is offered."""
    offered = {c["spec"]["resourceName"]: "0" for c in cluster["GPUClass"]} | node["status"]["allocatable"]
    return {r: amount(r, text) - used(node, r, cluster) for r, text in offered.items()}


def used(node: Raw, resource: str, cluster: Cluster) -> int:
    """Claims where they are Bound, and of each pod what the claims of its VMI do not cover there."""
    where = name(node)
    here = [
        pod
        for pod in cluster["Pod"]
        if place_of(pod, cluster) == where and pod["status"]["phase"] not in ("Succeeded", "Failed")
    ]
    if resource == "pods":
        return len(here)
    total = units_on(where, cluster["GPUClaim"], resource, cluster)
    for vmi in (None, *cluster["VirtualMachineInstance"]):
        asked = sum(request(pod).get(resource, 0) for pod in here if vmi_of(pod, cluster) is vmi)
        covered = units_on(where, serving(vmi, cluster), resource, cluster) if vmi else 0
        total += max(0, asked - covered)
    return total


def user_of(claim: Raw, cluster: Cluster) -> str:
    """R18: the uid of the VM that it serves."""
    recorded = claim["status"].get("vm", {}).get("uid", "")
    if recorded in {uid(vm) for vm in cluster["VirtualMachine"]}:
        return str(recorded)
    naming = [
        vm
        for vm in cluster["VirtualMachine"]
        if name(claim) in named_by(vm, cluster) and namespace(vm) == namespace(claim)
    ]
    return uid(min(naming, key=lambda vm: (vm["metadata"]["creationTimestamp"], name(vm)))) if naming else ""


def named_by(vm: Raw, cluster: Cluster) -> list[str]:
    """The orders: a VMI's annotation wins over its VM's template (R16)."""
    speaks = vm["spec"]["template"]["metadata"]
    for vmi in cluster["VirtualMachineInstance"]:
        if full_name(vmi) == full_name(vm):
            speaks = vmi["metadata"]
    found = [one.strip() for one in speaks.get("annotations", {}).get(ORDERS, "").split(",")]
    return [one for number, one in enumerate(found) if one and one not in found[:number]]
