"""Which pods are launchers (R28).

A pod is a VMI's launcher only if the VMI lists its uid **and** its controller reference and created-by label
carry that VMI's uid. Whoever creates a pod writes its owner references; only virt-controller writes the list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from binder.core.state import ClusterState, Key
from model.decisions import VmRef
from model.kubevirt import VirtualMachine, VirtualMachineInstance
from model.meta import ObjectMeta, OwnerReference
from model.names import LABEL_CREATED_BY, LABEL_MIGRATION_JOB
from model.pods import Pod

VMI_KIND = "VirtualMachineInstance"
VM_KIND = "VirtualMachine"


@dataclass(frozen=True, slots=True)
class Launcher:
    """A launcher and the VMI that lists it."""

    pod: Pod
    vmi: VirtualMachineInstance

    @property
    def is_placeable(self) -> bool:
        """Whether it waits for a node: gated by us, and neither it nor its VMI has ended or is going away."""
        dying = self.pod.metadata.deletion_timestamp or self.vmi.metadata.deletion_timestamp
        return self.pod.is_gated and not dying and not self.pod.is_terminal and not self.vmi.is_final


def find_launchers(state: ClusterState) -> Mapping[str, Launcher]:
    """All launchers by pod uid, in the order of namespace and name."""
    vmis = {vmi.metadata.uid: vmi for vmi in state.of(VirtualMachineInstance).values()}
    found = {}
    for _, pod in sorted(state.of(Pod).items()):
        vmi = vmis.get(controller_uid(pod.metadata, VMI_KIND))
        if vmi is not None and is_launcher_of(pod, vmi):
            found[pod.metadata.uid] = Launcher(pod, vmi)
    return found


def is_launcher_of(pod: Pod, vmi: VirtualMachineInstance) -> bool:
    """R28; a migration target is none."""
    labels = pod.metadata.labels
    return (
        pod.metadata.namespace == vmi.metadata.namespace
        and pod.metadata.uid in vmi.status.active_pods
        and controller_uid(pod.metadata, VMI_KIND) == vmi.metadata.uid
        and labels.get(LABEL_CREATED_BY) == vmi.metadata.uid
        and LABEL_MIGRATION_JOB not in labels
    )


def controller_of(metadata: ObjectMeta, kind: str) -> OwnerReference | None:
    """The controller reference to an owner of `kind`, or None."""
    return next((ref for ref in metadata.owner_references if ref.controller and ref.kind == kind), None)


def controller_uid(metadata: ObjectMeta, kind: str) -> str:
    """The uid of the controlling owner of `kind`, or the empty string."""
    owner = controller_of(metadata, kind)
    return owner.uid if owner else ""


def vm_of(vmi: VirtualMachineInstance, vms: Mapping[Key, VirtualMachine]) -> VmRef:
    """The VM that runs the VMI; a VMI without one stands for itself.

    The reference alone proves nothing, a tenant can write it: the VM must exist under the VMI's own name, as
    KubeVirt names it. So of many VMIs that refer to one VM, one at most is that VM's.
    """
    owner = controller_of(vmi.metadata, VM_KIND)
    vm = vms.get((vmi.metadata.namespace, vmi.metadata.name))
    if owner is not None and vm is not None and vm.metadata.uid == owner.uid:
        return VmRef(owner.name, owner.uid)
    return VmRef(vmi.metadata.name, vmi.metadata.uid)


def pinned_node(pod: Pod) -> str:
    """The one node that every required affinity term names by `metadata.name In`, or the empty string."""
    if pod.required_affinity is None:
        return ""
    names = {
        requirement.values
        for term in pod.required_affinity.node_selector_terms
        for requirement in term.match_fields
        if requirement.key == "metadata.name" and requirement.operator == "In"
    }
    (values,) = names if len(names) == 1 else ((),)
    return values[0] if len(values) == 1 else ""
