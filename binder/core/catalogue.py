"""Live claims, classes and VMs, indexed once per pass for the look-ups that forming sets needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from binder.core.launchers import VM_KIND, VMI_KIND, controller_uid
from binder.core.state import ClusterState, Key
from model.claims import GPUClaim, GPUClass
from model.decisions import VmRef
from model.kubevirt import VirtualMachine, VirtualMachineInstance
from model.meta import ObjectMeta
from model.names import ANNOTATION_CLAIMS


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What is on sale, what is claimed, and who claims it."""

    claims: Mapping[Key, GPUClaim]
    classes: Mapping[str, GPUClass]
    vms: Mapping[Key, VirtualMachine]
    users: frozenset[str]
    """Uids that may hold an order: VMs, and VMIs that run with what they refer to, also when that is gone."""
    by_owner: Mapping[str, tuple[GPUClaim, ...]]
    """Template claims by the uid of their VMI."""
    by_user: Mapping[str, tuple[GPUClaim, ...]]
    """Orders by the uid of the VM that uses them."""
    named: Mapping[Key, VmRef]
    """The oldest VM whose template names an order (R18)."""
    busy: frozenset[Key]
    """Orders that a live VMI names: they are placed with its launcher."""

    def selling(self, resource: str) -> list[GPUClass]:
        """The classes that sell the resource, by name."""
        return [c for _, c in sorted(self.classes.items()) if c.spec.resource_name == resource]


def index_claims(claims: Mapping[Key, GPUClaim], state: ClusterState) -> Catalogue:
    """Index the live claims beside what the log knows of classes, VMs and VMIs."""
    templates = [c for _, c in sorted(claims.items()) if is_template_claim(c)]
    orders = [c for _, c in sorted(claims.items()) if not is_template_claim(c)]
    vms = state.of(VirtualMachine).values()
    vmis = [vmi for vmi in state.of(VirtualMachineInstance).values() if not vmi.is_final]
    return Catalogue(
        claims=claims,
        classes={c.metadata.name: c for c in state.of(GPUClass).values()},
        vms=state.of(VirtualMachine),
        users=frozenset(vm.metadata.uid for vm in vms) | frozenset(_uids_of(vmis)),
        by_owner=_grouped((controller_uid(c.metadata, VMI_KIND), c) for c in templates),
        by_user=_grouped((c.status.vm.uid, c) for c in orders if c.status.vm is not None),
        named=_namers(vms),
        busy=frozenset(key for vmi in vmis for key in _order_keys(vmi.metadata, vmi.metadata)),
    )


def is_template_claim(claim: GPUClaim) -> bool:
    """Whether a VMI controls the claim; every other claim is an order."""
    return bool(controller_uid(claim.metadata, VMI_KIND))


def key_of(claim: GPUClaim) -> Key:
    """Its namespace and name."""
    return (claim.metadata.namespace, claim.metadata.name)


def orders_named_by(metadata: ObjectMeta) -> tuple[str, ...]:
    """The orders that the annotations of a VMI or a VM's template name, in order, each once."""
    names = (name.strip() for name in metadata.annotations.get(ANNOTATION_CLAIMS, "").split(","))
    return tuple(dict.fromkeys(name for name in names if name))


def _uids_of(vmis: Iterable[VirtualMachineInstance]) -> Iterable[str]:
    for vmi in vmis:
        yield vmi.metadata.uid
        yield controller_uid(vmi.metadata, VM_KIND)


def _order_keys(metadata: ObjectMeta, home: ObjectMeta) -> list[Key]:
    return [(home.namespace, name) for name in orders_named_by(metadata)]


def _namers(vms: Iterable[VirtualMachine]) -> Mapping[Key, VmRef]:
    named: dict[Key, VmRef] = {}
    age = lambda vm: (vm.metadata.creation_timestamp, vm.metadata.namespace, vm.metadata.name)  # noqa: E731
    for vm in sorted(vms, key=age):
        for key in _order_keys(vm.spec.template.metadata, vm.metadata):
            named.setdefault(key, VmRef(vm.metadata.name, vm.metadata.uid))
    return named


def _grouped(pairs: Iterable[tuple[str, GPUClaim]]) -> Mapping[str, tuple[GPUClaim, ...]]:
    groups: dict[str, list[GPUClaim]] = {}
    for key, claim in pairs:
        groups.setdefault(key, []).append(claim)
    return {key: tuple(group) for key, group in groups.items()}
