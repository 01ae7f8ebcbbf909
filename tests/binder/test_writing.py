"""Decisions carry everything that is to be written, field by field (R10, R12, R22, R30)."""

from __future__ import annotations

from typing import Any

from binder.core.pin import spec_digest
from model.claims import GPUClaim
from model.decisions import (
    BindClaim,
    CreateClaim,
    DeleteClaim,
    DeleteVmi,
    Keep,
    Kept,
    LetGo,
    LoseClaim,
    MarkWaiting,
    ObjectRef,
    PinLauncher,
    UngateLauncher,
    VmRef,
    WarnVmi,
)
from model.meta import Lean, OwnerReference
from model.names import LABEL_MIGRATION_JOB
from model.reasons import Reason
from tests.binder.deciding import decide
from tests.binder.failing import cluster
from tests.builders import (
    AT,
    NOW,
    gpu_class,
    launcher,
    node,
    order,
    running_vm,
    started_vm,
    state,
    template_claim,
    vm,
    vmi,
)

VM1 = VmRef("vm1", "vm-vm1")
POD = ObjectRef("default", "virt-launcher-vm1-abcde", "pod-vm1", "5")


def with_meta(one: Any, **changes: Any) -> Any:
    return one.model_copy(update={"metadata": one.metadata.model_copy(update=changes)})


def ref(claim: GPUClaim) -> ObjectRef:
    meta = claim.metadata
    return ObjectRef("default", meta.name, meta.uid, "7")


def test_start_of_a_vm() -> None:
    """R7, R10: the claim with its owner, the booking, the pin with what the pass saw of the launcher."""
    create, bind, pin = decide(state(node(), gpu_class(), *started_vm("vm1"))).decisions
    name = ObjectRef("default", "vm1-h100-vmi-vm1")
    owner = OwnerReference(
        api_version="kubevirt.io/v1",
        kind="VirtualMachineInstance",
        name="vm1",
        uid="vmi-vm1",
        controller=True,
    )
    assert create == CreateClaim("default/vm1", name, "h100", 1, owner)
    assert bind == BindClaim("default/vm1", name, "gpu-1", VM1, NOW, 1, "")
    assert pin == PinLauncher("default/vm1", POD, "gpu-1", spec_digest(launcher().spec), ())


def test_booking_of_a_claim_that_has_changed_its_spec() -> None:
    """R10: of the generation that was looked at; bound now, wherever it was bound before."""
    (bind,) = decide(state(node(), gpu_class()), with_meta(order("o"), generation=4)).decisions
    assert isinstance(bind, BindClaim)
    assert bind.generation == 4
    moved = order("o", node="gpu-1", boundAt="2026-11-01T00:00:00Z")
    (bind,) = decide(cluster(gone=True), moved).decisions
    assert isinstance(bind, BindClaim)
    assert (bind.node, bind.bound_at) == ("gpu-2", NOW)


def test_loss() -> None:
    """R22: by whom it was used, of which generation."""
    held = with_meta(order("o", node="gpu-1", vm_uid="vm-vm1"), generation=4)
    (lose,) = decide(cluster(vm(claims="o"), gone=True, spare=0), held).decisions
    assert isinstance(lose, LoseClaim)
    assert (lose.set, lose.claim, lose.lost_from) == ("default/vm1", ref(held), "gpu-1")
    assert (lose.lost_at, lose.vm, lose.generation) == (NOW, VM1, 4)


def test_marks_of_a_claim_that_is_to_be_made_and_of_one_that_waits() -> None:
    """R12: both say why, since now; the one that is still to be made is of the first generation."""
    objects = (vm(claims="o"), vmi(claims="o"), launcher(units=3))
    live = with_meta(order("o"), generation=4)
    result = decide(state(node(units=2), node("b", 4, unschedulable=True), gpu_class(), *objects), live)
    (waiting,) = result.waiting
    why = (waiting.reason, waiting.message)
    made = ObjectRef("default", "vm1-h100-vmi-vm1")
    marks = [one for one in result.decisions if isinstance(one, MarkWaiting)]
    assert marks == [
        MarkWaiting("default/vm1", made, *why, NOW, 1),
        MarkWaiting("default/vm1", ref(live), *why, NOW, 4),
    ]
    (warn,) = (one for one in result.decisions if isinstance(one, WarnVmi))
    assert warn == WarnVmi("default/vm1", ObjectRef("default", "vm1", "vmi-vm1"), *why, NOW)
    assert (waiting.set, waiting.vmi_uid) == ("default/vm1", "vmi-vm1")


def test_mark_of_an_order_whose_class_does_not_exist() -> None:
    """R12: nobody's set; no VMI waits with it."""
    live = order("o", class_name="gone")
    result = decide(state(node(), gpu_class()), live)
    (waiting,) = result.waiting
    text = "GPUClass gone does not exist"
    mark = MarkWaiting("default/o (order)", ref(live), Reason.CLASS_NOT_FOUND, text, NOW, 1)
    assert (result.decisions, waiting.message, waiting.vmi_uid) == ((mark,), text, "")


def test_deletion_of_a_vmi_names_the_version_that_was_seen() -> None:
    """R21."""
    machine, run, pod = running_vm()
    objects = (machine, with_meta(run, resource_version="9"), pod)
    (deletion,) = decide(cluster(*objects, gone=True), template_claim(node="gpu-1")).decisions
    assert deletion == DeleteVmi(
        "default/vm1", ObjectRef("default", "vm1", "vmi-vm1", "9"), "Running on gpu-1", "node gpu-1 is gone"
    )


def test_finalizers_come_and_go_by_name_and_version() -> None:
    """R30: of classes and claims."""
    fresh, leaving = with_meta(gpu_class(), finalizers=()), with_meta(gpu_class(), deletion_timestamp=AT)
    of_class = ObjectRef("", "h100", "class-h100")
    assert decide(state(fresh)).decisions == (Keep("class h100", Kept.CLASS, of_class),)
    assert decide(state(leaving)).decisions == (LetGo("class h100", Kept.CLASS, of_class),)
    unkept = with_meta(order("o", node="gpu-1"), finalizers=())
    kept = decide(state(node(), gpu_class()), unkept).decisions
    assert kept == (Keep("claim default/o", Kept.CLAIM, ref(unkept)),)
    gone = order("o", node="gpu-1", deleting=True)
    let_go = decide(state(node(), gpu_class()), gone).decisions
    assert let_go == (LetGo("claim default/o", Kept.CLAIM, ref(gone)),)


def test_claims_of_a_run_that_has_ended_are_deleted_as_they_were_seen() -> None:
    """R30."""
    ended = template_claim(node="gpu-1")
    result = decide(state(node(), gpu_class(), vm(), vmi(phase="Succeeded", pods=[])), ended)
    assert result.decisions == (DeleteClaim("default/vm1", ref(ended)),)


def test_gates_that_go_without_a_pin_name_their_launcher() -> None:
    """R30: switched off; the target of a migration goes under its own name, it has no set."""
    target = launcher("vm2", uid="target", pod="target", labels={LABEL_MIGRATION_JOB: "job"})
    pods: tuple[Lean, ...] = (
        *started_vm("vm1"),
        vm("vm2"),
        vmi("vm2", phase="Running", node="gpu-1", pods=["target"]),
        target,
    )
    assert decide(state(node(), gpu_class(), *pods), is_enabled=False).decisions == (
        UngateLauncher("default/vm1", POD),
        UngateLauncher("default/target", ObjectRef("default", "target", "target", "5")),
    )
