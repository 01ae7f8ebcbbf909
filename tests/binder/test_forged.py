"""What a tenant writes proves nothing: owner references and labels that name what is not theirs (R28)."""

from __future__ import annotations

import pytest

from model.decisions import CreateClaim, DeletePod, LetGo, PinLauncher
from model.kubevirt import VirtualMachineInstance
from model.meta import Lean
from model.pods import Pod
from model.reasons import Reason
from tests.binder.deciding import Binder, bound_to, decide, kinds_of, placed_on, reason_of
from tests.builders import (
    gpu_class,
    launcher,
    node,
    order,
    pinned_launcher,
    running_vm,
    started_vm,
    state,
    template_claim,
    vm,
    vmi,
)

MIGRATION = {"kubevirt.io/migrationJobUID": "forged"}


def in_namespace(one: Lean, namespace: str) -> Lean:
    """The same object in another namespace, with what it says of others unchanged."""
    raw = one.model_dump(by_alias=True)
    raw["metadata"]["namespace"] = namespace
    return type(one).model_validate(raw)


def test_a_claim_of_another_namespace_joins_nobodys_set() -> None:
    """R7, R16: a controller reference never leaves its namespace, whatever uid it names."""
    forged = template_claim(units=5, namespace="evil")
    result = decide(state(node(), gpu_class(), *started_vm("vm1")), forged)
    assert placed_on(result) == {"default/vm1": "gpu-1"}
    assert [one.claim.namespace for one in result.decisions if isinstance(one, CreateClaim)] == ["default"]


def test_a_claim_of_another_namespace_covers_no_launcher() -> None:
    """R26: vm1's launcher takes one of two units, and what evil holds by a reference to it the other."""
    forged = template_claim(units=1, namespace="evil", node="gpu-1")
    cluster = state(node(), gpu_class(), *running_vm())
    assert reason_of(decide(cluster, forged, order("o"))) is Reason.NO_ROOM


def test_a_claim_that_names_a_vmi_of_another_namespace_waits_for_no_launcher() -> None:
    """R30: its deletion ends although the VMI that it names runs."""
    forged = template_claim(namespace="evil", node="gpu-1", deleting=True)
    result = decide(state(node(), gpu_class(), *running_vm()), template_claim(node="gpu-1"), forged)
    assert [type(one) for one in result.decisions] == [LetGo]


def evils_run() -> tuple[Lean, Lean]:
    """A VMI of another namespace and its gated launcher; the VMI says that default's vm1 is its VM."""
    alike = vmi(uid="evil-vmi", pods=["evil-pod"])
    return in_namespace(alike, "evil"), in_namespace(launcher(uid="evil-pod", vmi_uid="evil-vmi"), "evil")


def test_what_is_held_for_a_restart_is_not_given_to_another_namespace() -> None:
    """R39: by namespace and uid; the unit waits for vm1."""
    binder, there = Binder(), (node(units=1), gpu_class(), vm())
    run = (vmi(phase="Running", node="gpu-1"), pinned_launcher(node="gpu-1", phase="Running"))
    binder.passes(state(*there, *run), template_claim(node="gpu-1"))
    assert reason_of(binder.passes(state(*there, *evils_run()), after_s=5)) is Reason.NO_ROOM
    again = (vmi(uid="vmi-2", pods=["pod-2"]), launcher(uid="pod-2", vmi_uid="vmi-2"))
    last = binder.passes(state(*there, *evils_run(), *again), after_s=5)
    assert placed_on(last) == {"default/vm1": "gpu-1"}


def test_a_refusal_in_another_namespace_is_not_the_vms() -> None:
    """R14: keyed by namespace and uid: nobody can have a node closed to another tenant's VM."""
    evil, pod = evils_run()
    assert isinstance(evil, VirtualMachineInstance)
    assert isinstance(pod, Pod)
    pinned = pinned_launcher(
        uid="evil-pod",
        vmi_uid="evil-vmi",
        node="gpu-1",
        phase="Failed",
        status={"reason": "UnexpectedAdmissionError"},
    )
    binder = Binder()
    refused = binder.passes(
        state(node(), node("gpu-2", 4), gpu_class(), evil, in_namespace(pinned, "evil"), vm())
    )
    assert DeletePod in kinds_of(refused)
    assert list(binder.memory.rejections) == ["evil/vm-vm1"]
    cluster = state(node(), node("gpu-2", 4), gpu_class(), *started_vm("vm1"))
    assert placed_on(binder.passes(cluster, after_s=1)) == {"default/vm1": "gpu-1"}


def test_an_order_is_not_kept_in_use_from_another_namespace() -> None:
    """R18: the VM that it serves is gone; a VMI elsewhere that says it is that VM's is not that VM."""
    alike = in_namespace(vmi("old", uid="evil-vmi", vm_uid="vm-old"), "evil")
    cluster = state(node(), gpu_class(), alike, vm(claims="o"), vmi(claims="o"), launcher())
    held = order("o", node="gpu-1", vm_uid="vm-old")
    assert placed_on(decide(cluster, held)) == {"default/vm1": "gpu-1"}


@pytest.mark.parametrize("phase", ["Scheduling", "Pending", ""])
def test_a_label_makes_no_target_of_a_vmis_first_launcher(phase: str) -> None:
    """R7, R28: VMI labels are copied to the launcher; a target is placed without a claim: for free."""
    cluster = state(node(), gpu_class(), vm(), vmi(phase=phase), launcher(labels=MIGRATION))
    result = decide(cluster)
    assert bound_to(result) == {"vm1-h100-vmi-vm1": "gpu-1"}
    assert kinds_of(result)[-1] is PinLauncher
