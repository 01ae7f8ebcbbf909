"""Finalizers, what has ended, and the feature switched off (R30, R32, R33)."""

from __future__ import annotations

import pytest

from binder.core.policy import Policy
from binder.core.run_pass import run_pass
from binder.core.world import look_at
from model.claims import GPUClaim, GPUClass
from model.decisions import (
    CreateClaim,
    DeleteClaim,
    DeletePod,
    Keep,
    Kept,
    LetGo,
    ObjectRef,
    PinLauncher,
    UngateLauncher,
    WarnVmi,
)
from model.meta import Lean
from model.names import FINALIZER
from model.reasons import Reason
from projections.folds.memory import Memory
from tests.binder.deciding import Binder, bound_to, decide, kinds_of, placed_on, reason_of
from tests.builders import (
    AT,
    NOW,
    NOW_MS,
    gpu_class,
    launcher,
    node,
    order,
    pinned_launcher,
    raw_pod,
    running_vm,
    started_vm,
    state,
    template_claim,
    vm,
    vmi,
)


def bare(claim: GPUClaim) -> GPUClaim:
    """Without our finalizer."""
    return claim.model_copy(update={"metadata": claim.metadata.model_copy(update={"finalizers": ()})})


def going(one: GPUClass) -> GPUClass:
    """Being deleted."""
    meta = one.metadata.model_copy(update={"deletion_timestamp": AT})
    return one.model_copy(update={"metadata": meta})


@pytest.mark.parametrize("is_enabled", [True, False])
def test_claims_get_the_finalizer_whoever_made_them(is_enabled: bool) -> None:
    """R30: also with the feature switched off."""
    result = decide(state(gpu_class(), node(units=0)), bare(order("o")), is_enabled=is_enabled)
    keep = result.decisions[0]
    assert isinstance(keep, Keep)
    assert (keep.kind, keep.ref.uid) == (Kept.CLAIM, "claim-o")


def test_claim_that_is_being_deleted_gets_no_finalizer() -> None:
    """R30: the API server would refuse it."""
    assert decide(state(gpu_class()), bare(order("o", deleting=True))).decisions == ()


@pytest.mark.parametrize("is_enabled", [True, False])
@pytest.mark.parametrize("phase", ["Pending", "Running", "Unknown"])
def test_claim_in_use_stays_until_its_launcher_has_ended(phase: str, is_enabled: bool) -> None:
    """R30: orders and template claims."""
    for claim, claims_named in (
        (template_claim(node="gpu-1", deleting=True), ""),
        (order("o", node="gpu-1", vm_uid="vm-vm1", deleting=True), "o"),
    ):
        run = vmi(phase="Running", claims=claims_named)
        alive = (vm(claims=claims_named), run, pinned_launcher(node="gpu-1", phase=phase))
        result = decide(state(node(), gpu_class(), *alive), claim, is_enabled=is_enabled)
        assert LetGo not in kinds_of(result)
        ended = (*alive[:2], pinned_launcher(node="gpu-1", phase="Succeeded"))
        result = decide(state(node(), gpu_class(), *ended), claim, is_enabled=is_enabled)
        assert LetGo in kinds_of(result)


def test_claim_that_is_deleted_while_its_launcher_waits_goes_and_is_made_anew() -> None:
    """R30: it holds nothing, so nothing was pinned for it; else the two would wait for each other."""
    full = (node(units=1), raw_pod("r", "gpu-1"), gpu_class(), *started_vm("vm1"))
    result = decide(state(*full), template_claim(deleting=True))
    assert [one for one in kinds_of(result) if one is not WarnVmi] == [LetGo]
    assert result.waiting[0].message == "claim default/vm1-h100-vmi-vm1 is being deleted"
    assert CreateClaim in kinds_of(decide(state(*full)))
    order_named = (vm(claims="o"), vmi(claims="o"), launcher())
    assert LetGo in kinds_of(decide(state(node(), gpu_class(), *order_named), order("o", deleting=True)))


def test_held_claim_that_is_deleted_while_its_launcher_waits_serves_until_the_launcher_ends() -> None:
    """R3, R30: the pin may be on its way already; a unit is not given back beside it."""
    held = template_claim(node="gpu-1", deleting=True)
    result = decide(state(node(), node("gpu-2"), gpu_class(), *started_vm("vm1")), held)
    assert kinds_of(result) == [PinLauncher]
    assert placed_on(result) == {"default/vm1": "gpu-1"}
    running = running_vm(node="gpu-2")
    moved = decide(state(node(), node("gpu-2"), gpu_class(), *running), held)
    assert bound_to(moved) == {"vm1-h100-vmi-vm1": "gpu-2"}


def test_lost_claim_of_a_launcher_that_runs_stays() -> None:
    """R22, R30: it holds nothing, and its VM still uses it."""
    lost = order("o", phase="Lost", lostFrom="gpu-1", vm_uid="vm-vm1", deleting=True)
    there = state(node(ready="False"), gpu_class(), *running_vm(claims="o"))
    assert LetGo not in kinds_of(decide(there, lost))


def test_claim_of_a_terminating_launcher_stays() -> None:
    """R30: deletion is not the end of the pod."""
    dying = (vm(), vmi(deleting=True), pinned_launcher(node="gpu-1", phase="Running", deleting=True))
    result = decide(state(node(), gpu_class(), *dying), template_claim(node="gpu-1", deleting=True))
    assert result.decisions == ()


@pytest.mark.parametrize(
    "objects",
    [
        (),
        (vm(),),
        (vm(), vmi(pods=[])),
        (vm(), vmi(), launcher("evil", vmi_uid="vmi-vm1", uid="forged", created=NOW)),
    ],
    ids=["nothing", "VM alone", "no launcher", "forged launcher"],
)
def test_claim_that_nothing_runs_with_goes_at_once(objects: tuple[Lean, ...]) -> None:
    """R28, R30: a forged pod holds up no deletion."""
    live = order("o", node="gpu-1", vm_uid="vm-vm1", deleting=True)
    (let_go,) = decide(state(node(), gpu_class(), *objects), live).decisions
    assert isinstance(let_go, LetGo)
    assert let_go.ref.resource_version == "7"


def test_claim_in_another_namespace_is_not_kept_by_a_launcher_here() -> None:
    """R30: a status is written by us alone, but it names only a uid."""
    live = order("o", namespace="other", node="gpu-1", vm_uid="vm-vm1", deleting=True)
    assert LetGo in kinds_of(
        decide(state(node(), gpu_class(), *running_vm()), live, template_claim(node="gpu-1"))
    )


def test_order_that_is_going_away_serves_no_new_vm() -> None:
    """R30: it is on its way out."""
    objects = (vm(claims="o"), vmi(claims="o"), launcher())
    assert placed_on(decide(state(node(), gpu_class(), *objects), order("o", deleting=True))) == {}


def test_order_that_is_going_away_gets_no_node() -> None:
    """R30."""
    assert bound_to(decide(state(node(), gpu_class()), order("o", deleting=True))) == {}


@pytest.mark.parametrize("is_enabled", [True, False])
def test_class_stays_while_a_claim_names_it_whatever_its_phase(is_enabled: bool) -> None:
    """R30: Pending, Bound, Lost, or going away; then it goes."""
    for claim in (order("o"), order("o", node="gpu-1"), order("o", phase="Lost"), order("o", deleting=True)):
        result = decide(state(going(gpu_class())), claim, is_enabled=is_enabled)
        assert Kept.CLASS not in {one.kind for one in result.decisions if isinstance(one, LetGo)}
    (let_go,) = decide(state(going(gpu_class())), is_enabled=is_enabled).decisions
    assert isinstance(let_go, LetGo)
    assert let_go.kind is Kept.CLASS


def test_class_that_goes_without_our_finalizer_is_left_to_go() -> None:
    """R30: the API server takes no new finalizer then, and there is none of ours to take off."""
    bare_class = going(gpu_class())
    meta = bare_class.metadata.model_copy(update={"finalizers": ("other.io/finalizer",)})
    gone_soon = bare_class.model_copy(update={"metadata": meta})
    assert decide(state(gone_soon)).decisions == ()
    assert decide(state(gone_soon, node()), order("o", node="gpu-1")).decisions == ()


def test_class_that_is_going_away_sells_nothing_new_and_serves_what_it_has() -> None:
    """R30: else each restart of a VM would keep it; its deletion always ends."""
    there = (going(gpu_class()), node("gpu-1", 4))
    keeper = order("keeper", node="gpu-1")
    result = decide(state(*there, *started_vm("vm1")), keeper)
    assert (kinds_of(result), reason_of(result)) == ([WarnVmi], Reason.CLASS_NOT_FOUND)
    assert result.waiting[0].message == "GPUClass h100 is going away: it serves what it has, and nothing new"
    assert placed_on(decide(state(*there, *started_vm("vm1")), template_claim(node="gpu-1"))) == {
        "default/vm1": "gpu-1"
    }
    ordered = (vm(claims="keeper"), vmi(claims="keeper"), launcher())
    assert placed_on(decide(state(*there, *ordered), keeper)) == {"default/vm1": "gpu-1"}
    annotated = (vm(), vmi(gpu_class="h100"), launcher())
    assert reason_of(decide(state(*there, gpu_class("other"), *annotated))) is Reason.CLASS_NOT_FOUND
    unnamed = decide(state(*there, gpu_class("other"), *started_vm("vm1")))
    assert [one.class_name for one in unnamed.decisions if isinstance(one, CreateClaim)] == ["other"]


def test_world_that_is_kept_up_sees_that_a_class_is_going_away() -> None:
    """R30, R4: a pass over the same world before and after."""
    cluster = state(gpu_class(), node(), *started_vm("vm1"))
    world = look_at(cluster, {})
    assert placed_on(run_pass(world, Memory(), Policy(), NOW_MS)) == {"default/vm1": "gpu-1"}
    shelf = cluster.shelves["GPUClass"]
    shelf.models["", "h100"] = going(gpu_class())
    shelf.touched["", "h100"] = None
    world.update({})
    assert placed_on(run_pass(world, Memory(), Policy(), NOW_MS)) == {}


def test_deletion_of_a_namespace_with_everything_in_it_ends() -> None:
    """R30: VMs, VMIs, launchers and claims go in whatever order; the claims go with the last launcher."""
    live = [template_claim(node="gpu-1", deleting=True), order("o", node="gpu-1", deleting=True)]
    dying = [
        (vm(), vmi(deleting=True), pinned_launcher(node="gpu-1", phase="Running", deleting=True)),
        (vmi(deleting=True), pinned_launcher(node="gpu-1", phase="Failed", deleting=True)),
        (vmi(deleting=True),),
        (),
    ]
    let_go = [kinds_of(decide(state(node(), gpu_class(), *there), *live)).count(LetGo) for there in dying]
    assert let_go == [1, 2, 2, 2]


def test_finalizer_of_a_claim_whose_class_never_was_comes_off() -> None:
    """R30: a class that does not exist hangs no deletion."""
    result = decide(state(node()), order("o", class_name="never", deleting=True))
    assert kinds_of(result) == [LetGo]


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_template_claims_of_a_vmi_that_stays_when_it_has_ended_are_given_back(phase: str) -> None:
    """A VMI under Manual or Once stays as it ended; a stopped VM keeps no units."""
    ended = (vm(strategy="Manual"), vmi(phase=phase))
    there = state(node(), gpu_class(), *ended)
    assert kinds_of(decide(there, template_claim(node="gpu-1"))) == [DeleteClaim]
    assert (
        decide(there, template_claim(node="gpu-1", deleting=True)).decisions[0]
        == decide(state(node(), gpu_class()), template_claim(node="gpu-1", deleting=True)).decisions[0]
    )


@pytest.mark.parametrize("is_enabled", [True, False])
def test_claims_that_garbage_collection_has_left_are_given_back_after_a_minute(is_enabled: bool) -> None:
    """R7: a restarted API server can make the collector miss that a VMI went; its units must not be lost."""
    binder, there = Binder(), state(node(), gpu_class(), vm())
    claim, going_already = template_claim(node="gpu-1"), template_claim("vm2", deleting=True)
    first = binder.passes(there, claim, is_enabled=is_enabled)
    assert first.decisions == ()
    assert first.wake_at_ms == binder.now_ms + 60_000
    assert binder.passes(there, claim, after_s=59.999, is_enabled=is_enabled).decisions == ()
    (decision,) = binder.passes(there, claim, after_s=0.001, is_enabled=is_enabled).decisions
    name, gone = claim.metadata.name, ObjectRef("default", "vm1", "vmi-vm1")
    assert isinstance(decision, DeleteClaim)
    assert (decision.set, decision.claim.name, decision.gone) == (f"claim default/{name}", name, gone)
    assert kinds_of(binder.passes(there, going_already, is_enabled=is_enabled)) == [LetGo]


def test_claims_that_are_not_collected_yet_keep_no_others() -> None:
    """R7: one goes already, one has a minute still, and then comes the one whose minute is over."""
    binder, there = Binder(), state(node(), gpu_class())
    young, old = template_claim("b"), [template_claim(name) for name in ("c", "d")]
    going = template_claim("a", deleting=True)
    binder.passes(there, going, *old)
    result = binder.passes(there, going, young, *old, after_s=60)
    assert kinds_of(result) == [LetGo, DeleteClaim, DeleteClaim]
    assert result.wake_at_ms == binder.now_ms + 60_000


def test_claims_of_a_vmi_that_is_there_again_or_cannot_be_read_are_not_collected() -> None:
    """R7, R33: what the log does not show may be there all the same."""
    binder, there = Binder(), state(node(), gpu_class(), vm())
    claim = template_claim(node="gpu-1")
    binder.passes(there, claim)
    binder.passes(state(node(), gpu_class(), *running_vm()), claim, after_s=30)
    assert binder.passes(there, claim, after_s=30).decisions == ()
    assert binder.passes(there, claim, after_s=30).decisions == ()
    unreadable = state(node(), gpu_class(), vm())
    unreadable.shelves["VirtualMachineInstance"].put(("default", "vm1"), "vmi-vm1", "1", b"[]")
    assert binder.passes(unreadable, claim, after_s=300).decisions == ()


def test_template_claim_on_its_way_out_is_neither_placed_nor_moved() -> None:
    """A VMI that failed while its claim was Pending or Lost: nothing is placed for it."""
    ended = (vm(strategy="Manual"), vmi(phase="Failed"))
    for status in ({}, {"phase": "Lost", "lostFrom": "x"}):
        claim = template_claim(**status)  # type: ignore[arg-type]
        assert kinds_of(decide(state(node(), gpu_class(), *ended), claim)) == [DeleteClaim]


def test_orders_of_a_vmi_that_has_ended_are_kept() -> None:
    """An order outlives VMs."""
    ended = (vm(strategy="Manual", claims="o"), vmi(phase="Failed", claims="o"))
    assert (
        decide(state(node(), gpu_class(), *ended), order("o", node="gpu-1", vm_uid="vm-vm1")).decisions == ()
    )


def test_switched_off_gates_go_without_a_pin_and_nothing_else_happens() -> None:
    """R30: nothing is placed, moved or lost, and no launcher is deleted."""
    refused = pinned_launcher("bad", node="gpu-1", status={"phase": "Failed", "reason": "OutOfcpu"})
    there = (node(), gpu_class(), *started_vm("vm1"), vm("bad"), vmi("bad"), refused)
    live = (order("new"), order("moving", node="gone"), order("lost", phase="Lost"))
    result = decide(state(*there), *live, is_enabled=False)
    (ungate,) = result.decisions
    assert isinstance(ungate, UngateLauncher)
    assert (ungate.pod.uid, ungate.pod.resource_version) == ("pod-vm1", "5")
    assert result.waiting == ()


def test_switched_off_a_foreign_pod_with_our_gate_is_left_alone() -> None:
    """R28, R30: it is no launcher; who made it takes the gate off."""
    forged = launcher("evil", vmi_uid="vmi-vm1", created=NOW)
    assert decide(state(node(), gpu_class(), vm(), vmi(), forged), is_enabled=False).decisions == ()


def test_switched_on_again_what_runs_without_claims_counts_as_raw_and_its_order_joins_it() -> None:
    """R19, R26, R30."""
    there = (node("gpu-1", 2), gpu_class(), *running_vm(claims="o"))
    assert bound_to(decide(state(*there), order("o"))) == {"o": "gpu-1"}
    assert placed_on(decide(state(*there, *started_vm("x", 2)))) == {}


def test_orders_are_served_before_kubevirt_arrives() -> None:
    """R32: its kinds are told absent, which is an answer."""
    assert bound_to(decide(state(node(), gpu_class()), order("o"))) == {"o": "gpu-1"}


def test_pass_that_may_not_decide_learns_nothing_and_forgets_nothing() -> None:
    """R33: graces go on when the watchers are back."""
    binder = Binder()
    failing = state(node("gpu-1", ready="False"), node("gpu-2"), gpu_class())
    held = order("o", node="gpu-1")
    binder.passes(failing, held)
    failing.complete.discard("Pod")
    blocked = binder.passes(failing, held, after_s=150)
    assert (blocked.decisions, blocked.lessons) == ((), ())
    assert blocked.blocked == "waiting for the first complete list of Pod"
    failing.complete.add("Pod")
    assert bound_to(binder.passes(failing, held, after_s=150)) == {"o": "gpu-2"}


def test_launcher_is_not_deleted_when_its_class_is_gone_by_force() -> None:
    """R21: VMIs and launchers are deleted for no other reasons."""
    there = state(node(), *running_vm())
    assert {DeletePod}.isdisjoint(kinds_of(decide(there, template_claim(node="gpu-1"))))
    assert FINALIZER in gpu_class().metadata.finalizers
