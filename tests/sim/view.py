"""The cluster as the API server has it: who is whose launcher, what is held where. Knows nothing of our core.

Amounts are counted by the simulator's own code, over raw objects that must not be changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from model import resources as r
from model.names import GATE
from model.resources import Resource
from simulator.actors.quantities import allocatable, requests
from simulator.apiserver.store import Store

Raw = dict[str, Any]
ENDED = ("Succeeded", "Failed")
MIGRATION_LABEL = "kubevirt.io/migrationJobUID"
CREATED_BY = "kubevirt.io/created-by"
ORDERS, CLASS = "gpu.cozystack.io/claims", "gpu.cozystack.io/class"
FORGED = "virt-launcher-forged-"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def name(one: Raw) -> str:
    return str(one["metadata"]["name"])


def namespace(one: Raw) -> str:
    return str(one["metadata"].get("namespace", ""))


def full_name(one: Raw) -> str:
    return f"{namespace(one)}/{name(one)}"


def uid(one: Raw) -> str:
    return str(one["metadata"]["uid"])


def is_forged(pod: Raw) -> bool:
    return name(pod).startswith(FORGED)


def is_leaving(one: Raw) -> bool:
    return bool(one["metadata"].get("deletionTimestamp"))


def status(one: Raw) -> Raw:
    return one.get("status") or {}


def controller(one: Raw, kind: str) -> str:
    owners = one["metadata"].get("ownerReferences") or []
    return next((str(o["uid"]) for o in owners if o.get("controller") and o["kind"] == kind), "")


def phase(one: Raw) -> str:
    return str(status(one).get("phase") or "")


def is_gated(pod: Raw) -> bool:
    return any(gate["name"] == GATE for gate in pod["spec"].get("schedulingGates") or [])


def pin_of(pod: Raw) -> str:
    """The one node that every required term of the pod names."""
    affinity: Raw = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    named = [
        [v for f in term.get("matchFields") or [] if f["key"] == "metadata.name" for v in f["values"]]
        for term in terms
    ]
    pins = {tuple(one) for one in named}
    return next(iter(pins))[0] if len(pins) == 1 and len(next(iter(pins))) == 1 else ""


def node_of(claim: Raw) -> str:
    """Where it is held."""
    return str(status(claim).get("nodeName") or "") if phase(claim) == "Bound" else ""


@dataclass
class View:
    """One moment; what is asked for twice is looked up once."""

    store: Store
    _of: dict[str, list[Raw]] = field(default_factory=dict)

    def of(self, resource: Resource) -> list[Raw]:
        found = self._of.get(resource.full_name)
        if found is None:
            found = self._of[resource.full_name] = list(self.store.scan(resource))
        return found

    @cached_property
    def resource_of_class(self) -> dict[str, str]:
        return {name(one): str(one["spec"]["resourceName"]) for one in self.of(r.GPU_CLASSES)}

    @cached_property
    def vmis_by_uid(self) -> dict[str, Raw]:
        return {uid(one): one for one in self.of(r.VIRTUAL_MACHINE_INSTANCES)}

    @cached_property
    def vms_by_name(self) -> dict[str, Raw]:
        return {full_name(one): one for one in self.of(r.VIRTUAL_MACHINES)}

    @cached_property
    def nodes(self) -> dict[str, Raw]:
        return {name(one): one for one in self.of(r.NODES)}

    def vmi_of(self, pod: Raw) -> Raw | None:
        """R28 without the part on migrations: the VMI lists the pod, and the pod names the VMI twice."""
        vmi = self.vmis_by_uid.get(controller(pod, "VirtualMachineInstance"))
        if vmi is None or namespace(vmi) != namespace(pod):
            return None
        labels = pod["metadata"].get("labels") or {}
        is_listed = uid(pod) in (status(vmi).get("activePods") or {})
        return vmi if is_listed and labels.get(CREATED_BY) == uid(vmi) else None

    def is_target(self, pod: Raw, vmi: Raw) -> bool:
        """Whether it is a migration's target that its VMI has not arrived at."""
        labels = pod["metadata"].get("labels") or {}
        at = pod["spec"].get("nodeName") or ""
        return MIGRATION_LABEL in labels and (not at or at != status(vmi).get("nodeName"))

    def all_launchers(self) -> Iterator[tuple[Raw, Raw]]:
        """Pods and their VMIs, targets of migrations left out."""
        for pod in self.of(r.PODS):
            vmi = self.vmi_of(pod)
            if vmi is not None and not self.is_target(pod, vmi):
                yield pod, vmi

    def launchers(self) -> Iterator[tuple[Raw, Raw]]:
        """Those that are what they say.

        Left out are the VMIs for which somebody has made a second launcher that virt-controller has listed:
        who may do that is a policy's business, and their owner's harm. Their units count as all others do.
        """
        forged = {controller(pod, "VirtualMachineInstance") for pod in self.of(r.PODS) if is_forged(pod)}
        yield from ((pod, vmi) for pod, vmi in self.all_launchers() if uid(vmi) not in forged)

    def vm_of(self, vmi: Raw) -> Raw | None:
        vm = self.vms_by_name.get(full_name(vmi))
        return vm if vm is not None and controller(vmi, "VirtualMachine") == uid(vm) else None

    def claims_of(self, vmi: Raw) -> list[Raw]:
        """Template claims of the VMI, and the orders that say they serve its VM."""
        vm = self.vm_of(vmi)
        user = uid(vm) if vm is not None else uid(vmi)
        found = []
        for claim in self.of(r.GPU_CLAIMS):
            owner = controller(claim, "VirtualMachineInstance")
            serves = str((status(claim).get("vm") or {}).get("uid") or "")
            if namespace(claim) == namespace(vmi) and (owner == uid(vmi) or (not owner and serves == user)):
                found.append(claim)
        return found

    def set_of(self, vmi: Raw) -> list[Raw]:
        """Of those what is placed together: an order that the VMI no longer names is not (R16)."""
        named = orders_named(vmi)
        return [
            claim
            for claim in self.claims_of(vmi)
            if controller(claim, "VirtualMachineInstance") == uid(vmi) or name(claim) in named
        ]

    def resource_of(self, claim: Raw) -> str:
        return self.resource_of_class.get(str(claim["spec"]["className"]), "")

    def held(self, node: str, claims: list[Raw] | None = None) -> dict[str, int]:
        """Units of claims that are Bound there, by resource."""
        units: dict[str, int] = {}
        for claim in self.of(r.GPU_CLAIMS) if claims is None else claims:
            if node_of(claim) == node and self.resource_of(claim):
                resource = self.resource_of(claim)
                units[resource] = units.get(resource, 0) + int(claim["spec"]["units"])
        return units

    def place_of(self, pod: Raw) -> str:
        """Where the pod is, or can only go to."""
        at = str(pod["spec"].get("nodeName") or "")
        if at or is_gated(pod) or self.vmi_of(pod) is None:
            return at
        return pin_of(pod)

    def uncovered(self, node: str, pods: list[Raw]) -> dict[str, int]:
        """What pods take there besides the claims of their VMIs that are held there (R26), sold or not."""
        by_vmi: dict[str, tuple[Raw | None, dict[str, int]]] = {}
        for pod in pods:
            if self.place_of(pod) != node or phase(pod) in ENDED:
                continue
            vmi = self.vmi_of(pod)
            _, asked = by_vmi.setdefault(uid(vmi) if vmi else uid(pod), (vmi, {}))
            for resource, amount in requests(pod).items():
                asked[resource] = asked.get(resource, 0) + amount
        total: dict[str, int] = {}
        for vmi, asked in by_vmi.values():
            covered = self.held(node, self.claims_of(vmi)) if vmi is not None else {}
            for resource, amount in asked.items():
                left = max(0, amount - covered.get(resource, 0))
                total[resource] = total.get(resource, 0) + left
        return total

    def free(self, node: str) -> dict[str, Any]:
        """R26, all resources."""
        free: dict[str, Any] = dict(allocatable(self.nodes[node]))
        for taken in (self.held(node), self.uncovered(node, self.of(r.PODS))):
            for resource, amount in taken.items():
                free[resource] = free.get(resource, 0) - amount
        return free


def orders_named(one: Raw) -> list[str]:
    """By the annotation of a VMI, or of a VM's template."""
    listed = (one["metadata"].get("annotations") or {}).get(ORDERS, "")
    found = [part.strip() for part in listed.split(",")]
    return [part for number, part in enumerate(found) if part and part not in found[:number]]
