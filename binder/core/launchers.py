"""Which pods are launchers (R28).

A pod is a VMI's launcher only if the VMI lists its uid **and** its controller reference and created-by label
carry that VMI's uid. Whoever creates a pod writes its owner references; only virt-controller writes the list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from binder.core.state import Key
from model.decisions import VmRef
from model.kubevirt import VirtualMachine, VirtualMachineInstance
from model.meta import ObjectMeta, OwnerReference
from model.names import LABEL_CREATED_BY, LABEL_MIGRATION_JOB
from model.pods import Pod
from model.selectors import NodeSelector, NodeSelectorTerm

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

    @property
    def anchor(self) -> str:
        """The node that it is on or can only go to; empty while it is gated, or has ended."""
        if self.pod.is_terminal or self.pod.is_gated:
            return ""
        return self.pod.spec.node_name or pinned_node(self.pod)


def is_launcher_of(pod: Pod, vmi: VirtualMachineInstance) -> bool:
    """R28. The target of a migration is none until the VMI runs there."""
    return _is_listed(pod, vmi) and (not _is_for_migration(pod, vmi) or _has_arrived(pod, vmi))


def is_target_of(pod: Pod, vmi: VirtualMachineInstance) -> bool:
    """Whether it is the target of a migration that the VMI has not arrived at."""
    return _is_listed(pod, vmi) and _is_for_migration(pod, vmi) and not _has_arrived(pod, vmi)


NO_REFUSALS = ("", "DeadlineExceeded", "Terminated", "Preempting")
"""Reasons of a Failed pod that say nothing about its node; every other one with which no container ever began
is a kubelet's refusal, also one that is not known yet (case 002)."""


def refused_by_kubelet(pod: Pod) -> bool:
    """R13 (i): Failed on a node before any container began, by the reason alone."""
    status = pod.status
    if status.phase != "Failed" or not pod.spec.node_name or status.reason in NO_REFUSALS:
        return False
    states = [one.state for one in (*status.container_statuses, *status.init_container_statuses)]
    moments = [moment for state in states for moment in (state.running, state.terminated) if moment]
    return not any(moment.started_at for moment in moments)


def is_unschedulable(pod: Pod) -> bool:
    """R13 (ii), but for how long: the scheduler has found no node for an ungated pod, and nominated none."""
    if pod.spec.scheduling_gates or pod.spec.node_name or pod.status.nominated_node_name:
        return False
    return any(
        (one.type, one.status, one.reason) == ("PodScheduled", "False", "Unschedulable")
        for one in pod.status.conditions
    )


def is_suspect(pod: Pod) -> bool:
    """Whether a launcher may have been refused by its node."""
    return refused_by_kubelet(pod) or is_unschedulable(pod)


def has_run(vmi: VirtualMachineInstance) -> bool:
    """Whether it is or was Running, as far as it says itself."""
    return vmi.status.phase == "Running" or any(
        moment.phase == "Running" for moment in vmi.status.phase_transition_timestamps
    )


def _is_listed(pod: Pod, vmi: VirtualMachineInstance) -> bool:
    return (
        pod.metadata.uid in vmi.status.active_pods
        and pod.metadata.namespace == vmi.metadata.namespace
        and controller_uid(pod.metadata, VMI_KIND) == vmi.metadata.uid
        and pod.metadata.labels.get(LABEL_CREATED_BY) == vmi.metadata.uid
    )


def _is_for_migration(pod: Pod, vmi: VirtualMachineInstance) -> bool:
    """Only what is somewhere migrates. The label alone proves nothing: a VMI's labels are copied."""
    return LABEL_MIGRATION_JOB in pod.metadata.labels and vmi.status.node_name != ""


def _has_arrived(pod: Pod, vmi: VirtualMachineInstance) -> bool:
    return pod.spec.node_name == vmi.status.node_name


def controller_of(metadata: ObjectMeta, kind: str) -> OwnerReference | None:
    """The controller reference to an owner of `kind`, or None."""
    for owner in metadata.owner_references:
        if owner.controller and owner.kind == kind:
            return owner
    return None


def controller_uid(metadata: ObjectMeta, kind: str) -> str:
    """The uid of the controlling owner of `kind`, or the empty string."""
    owner = controller_of(metadata, kind)
    return owner.uid if owner else ""


def vm_of(vmi: VirtualMachineInstance, vms: Mapping[Key, VirtualMachine]) -> VmRef:
    """The VM that runs the VMI; a VMI without one stands for itself.

    The reference alone proves nothing, a tenant can write it: KubeVirt names a VMI as its VM, and where a VM
    of that name exists, it must be the one referred to. So of many VMIs that refer to one VM, one at most is
    that VM's.
    """
    owner = controller_of(vmi.metadata, VM_KIND)
    if owner is not None and owner.uid and owner.name == vmi.metadata.name:
        vm = vms.get((vmi.metadata.namespace, vmi.metadata.name))
        if vm is None or vm.metadata.uid == owner.uid:
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


def affinity_before_pin(pod: Pod) -> NodeSelector | None:
    """The required node affinity as it was before our pin; None: no constraint."""
    required, pin = pod.required_affinity, pinned_node(pod)
    if required is None or not pin or pod.is_gated:
        return required
    terms = tuple(_before_pin(term, pin) for term in required.node_selector_terms)
    return NodeSelector(node_selector_terms=terms) if all(map(_says_something, terms)) else None


def _before_pin(term: NodeSelectorTerm, pin: str) -> NodeSelectorTerm:
    fields = term.match_fields
    is_pin = bool(fields) and (fields[-1].key, fields[-1].values) == ("metadata.name", (pin,))
    return term.model_copy(update={"match_fields": fields[:-1]}) if is_pin else term


def _says_something(term: NodeSelectorTerm) -> bool:
    return bool(term.match_expressions or term.match_fields)
