"""Who serves whom, kept up while VMs, VMIs and claims come and go (R16, R18, R26, R27)."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from binder.core.world import World, look_at
from model.claims import GPUClaim
from model.meta import Lean
from model.reasons import Reason
from tests.binder.deciding import Binder, bound_to, decide, placed_on, reason_of
from tests.builders import (
    H100,
    claims,
    gpu_class,
    launcher,
    node,
    order,
    pinned_launcher,
    raw_pod,
    running_vm,
    state,
    vm,
    vmi,
)

THERE = (node("gpu-1", 2), gpu_class())
RECORDED = order("o", node="gpu-1", vm_uid="vm-vm1")
RIVAL = (vm("vm2", claims="o"), vmi("vm2", claims="o"), launcher("vm2"))
ALONE = running_vm()[1:]


def put(world: World, live: Iterable[GPUClaim], *changed: Lean) -> None:
    """The world with these objects as they are now."""
    for one in changed:
        meta, shelf = one.metadata, world.state.shelves[type(one).__name__]  # type: ignore[attr-defined]
        shelf.put((meta.namespace, meta.name), meta.uid, "99", one.model_dump_json(by_alias=True).encode())
    world.update(claims(*live))


@pytest.mark.parametrize("vms", [(), (vm(uid="vm-new"),)], ids=["VM has gone", "another VM of its name"])
def test_order_serves_the_vm_that_a_live_vmi_was_a_run_of(vms: tuple[Lean, ...]) -> None:
    """R18: the VM recorded in its status is there as long as its VMI is."""
    result = decide(state(*THERE, *vms, *ALONE, *RIVAL), RECORDED)
    assert (placed_on(result), reason_of(result)) == ({}, Reason.CLAIM_IN_USE)


def test_order_is_free_for_others_when_its_vm_goes_although_nobody_named_it() -> None:
    """R18: the recorded VM names it no more; whoever does gets it then."""
    binder = Binder()
    assert reason_of(binder.passes(state(*THERE, vm(), *RIVAL), RECORDED)) is Reason.CLAIM_IN_USE
    assert placed_on(binder.goes_on(state(*THERE, *RIVAL), RECORDED)) == {"default/vm2": "gpu-1"}


def test_order_that_a_vmi_without_its_vm_names_serves_it() -> None:
    """R16, R18: the VM is gone from the log, or not there yet; its VMI's annotation counts."""
    named = (vmi(claims="o"), launcher())
    result = decide(state(*THERE, *named), order("o"))
    assert (placed_on(result), bound_to(result)) == ({"default/vm1": "gpu-1"}, {"o": "gpu-1"})


def test_order_waits_for_the_oldest_of_three_that_name_it_and_says_which() -> None:
    """R18: of equal age the first by name; others that refer to it change nothing."""
    evil = vmi("evil", vm_uid="vm-a")
    vms = [one for name in ("c", "b", "a") for one in (vm(name, claims="o"), vmi(name, claims="o"))]
    result = decide(state(*THERE, *vms, launcher("a"), launcher("b"), evil), order("o"))
    assert placed_on(result) == {"default/a": "gpu-1"}
    assert [(one.set, one.reason) for one in result.waiting] == [("default/b", Reason.CLAIM_IN_USE)]
    assert "VM a" in result.waiting[0].message


def test_order_waits_for_a_vm_that_has_no_run_yet_if_it_is_the_older() -> None:
    """R16, R18: the VM's template counts before the first VMI exists."""
    older = vm("vm1", claims="o", created="2020-01-01T00:00:00Z")
    (waiting,) = decide(state(*THERE, older, *RIVAL), order("o", node="gpu-1")).waiting
    assert waiting.message == "order default/o is in use by VM vm1"


def test_order_of_a_vm_that_names_it_no_more_is_a_set_of_its_own() -> None:
    """R16, R18: others that name it wait."""
    others = [one for name in ("b", "c") for one in (vm(name, claims="o"), vmi(name, claims="o"))]
    world = look_at(state(*THERE, vm(), *others), claims(RECORDED))
    assert [one for one in world.sets if one.is_order] == [(True, ("default", "o"))]


def test_order_that_a_vm_begins_to_use_covers_its_launcher() -> None:
    """R27: a pod of a VM whose claim is Lost is no raw pod, whoever names the claim."""
    world = look_at(state(*THERE, *running_vm()), {})
    assert world.books.raw == {"default": {H100: 1}}
    put(world, [order("o", phase="Lost", lostFrom="x", vm_uid="vm-vm1")])
    assert world.books.raw == {}


def test_order_covers_no_launcher_whose_vm_turns_out_to_be_another() -> None:
    """R26: a VM of the VMI's name with another uid is another VM."""
    world = look_at(state(*THERE, *ALONE), claims(RECORDED))
    assert world.books.class_use("h100").raw == 0
    put(world, [RECORDED], vm(uid="vm-new"))
    assert world.books.class_use("h100").raw == 1


def test_vmi_without_a_vm_is_the_only_user_that_it_stands_for() -> None:
    """R18: no reference is no user."""
    world = look_at(state(*THERE, vmi(vm_uid="")), {})
    assert list(world.relations.users) == [("default", "vmi-vm1")]


def test_pod_that_asks_for_something_else_now_is_counted_anew() -> None:
    """R29: a pod may be resized where it is."""
    world = look_at(state(*THERE, raw_pod("p", "gpu-1")), {})
    put(world, [], raw_pod("p", "gpu-1", 2))
    assert world.room.nodes["gpu-1"].free(H100) == 0
    assert world.books.raw == {"default": {H100: 2}}


@pytest.mark.parametrize(("asked", "ordered", "raw"), [(3, 1, {"default": {H100: 2}}), (1, 3, {})])
def test_pod_counts_for_what_its_claims_do_not_cover(
    asked: int, ordered: int, raw: dict[str, dict[str, int]]
) -> None:
    """R27: no less than nothing."""
    running = (vm(), vmi(phase="Running", node="gpu-1"), pinned_launcher(units=asked, node="gpu-1"))
    live = claims(order("o", ordered, node="gpu-1", vm_uid="vm-vm1"))
    assert look_at(state(node("gpu-1", 9), gpu_class(), *running), live).books.raw == raw
