"""What is remembered of refused launchers: in which order, of which run, and for how long (R13, R14)."""

from __future__ import annotations

from typing import Any

import pytest

from model.decisions import DeletePod
from model.meta import Lean
from model.reasons import Reason
from tests.binder.deciding import Binder, kinds_of, placed_on, reason_of
from tests.binder.refusing import HELD, REFUSED, next_run, refused_vm, two_nodes
from tests.builders import gpu_class, node, pinned_launcher, starting_vm, state, template_claim, vm, vmi

REFUSED_POD = pinned_launcher("vm1", node="gpu-1", status=REFUSED)


@pytest.mark.parametrize(("after_s", "is_noticed"), [(599.999, True), (600, False)])
def test_refusal_that_is_told_late_is_noticed_for_as_long_as_it_would_be_remembered(
    after_s: float, is_noticed: bool
) -> None:
    """R13: ten minutes after its VMI's end, what its node said of it is over."""
    binder = Binder()
    binder.passes(two_nodes(*starting_vm()), HELD)
    binder.goes_on(two_nodes(vm(), starting_vm()[2]))
    binder.goes_on(two_nodes(vm(), REFUSED_POD), after_s=after_s)
    assert bool(binder.memory.rejections) is is_noticed


@pytest.mark.parametrize("left", [(), (vmi(phase="Failed", pods=[]),)], ids=["has gone", "lists no pods"])
def test_refusal_that_was_told_while_no_binder_was_at_work_is_noticed(left: tuple[Lean, ...]) -> None:
    """R13, R14: the next one knows from memory who was a launcher; its VMI has ended meanwhile."""
    binder = Binder()
    binder.passes(two_nodes(*starting_vm()), HELD)
    binder.passes(two_nodes(vm(), *left, REFUSED_POD), after_s=60)
    assert set(binder.memory.rejections["default/vm-vm1"]) == {"gpu-1"}
    binder.passes(two_nodes(vm(), *left, REFUSED_POD), after_s=600)
    assert binder.memory.rejections == {}


def test_node_that_refuses_now_is_left_alone_in_the_same_pass_as_those_before() -> None:
    """R13: the next run may be there already."""
    binder = Binder()
    binder.passes(two_nodes(*refused_vm("gpu-2")), template_claim("vm1", node="gpu-2"))
    binder.passes(two_nodes(*starting_vm()), HELD)
    result = binder.goes_on(two_nodes(*next_run(), REFUSED_POD))
    assert placed_on(result) == {}
    assert reason_of(result) is Reason.NODES_REFUSED
    assert "2 that have refused this VM" in result.waiting[0].message
    assert list(binder.memory.rejections["default/vm-vm1"]) == ["gpu-1", "gpu-2"], "R4: by name"


@pytest.mark.parametrize(
    ("vms", "phase", "hours"),
    [((), "Scheduling", None), ((vm(),), "Failed", 1)],
    ids=["VMI without a VM that is there", "VMI that has ended before it was seen"],
)
def test_run_that_was_first_seen_refused_is_remembered_until_an_hour_after_its_end(
    vms: tuple[Lean, ...], phase: str, hours: int | None
) -> None:
    """R13, R14: so that a pod that lingers does not renew its rejection, and nothing is kept for ever."""
    one = vmi(phase=phase, vm_uid="vm-vm1" if vms else "", pods=["pod-on-gpu-1"])
    there = two_nodes(*vms, one, refused_vm()[2])
    binder = Binder()
    assert DeletePod in kinds_of(binder.passes(there))
    assert len(binder.memory.rejections) == 1
    (run,) = binder.memory.runs.values()
    assert run.ended_ms == (0 if hours is None else binder.now_ms)
    binder.passes(there, after_s=3600)
    assert binder.memory.rejections == {}
    binder.passes(two_nodes(*vms, *(() if hours else (one,))), after_s=0.001)
    assert set(binder.memory.runs) == (set() if hours else {"vmi-vm1"})


TAINTS = ({"key": "a", "effect": "PreferNoSchedule"}, {"key": "b", "effect": "PreferNoSchedule"})


@pytest.mark.parametrize(
    "changes",
    [{"taints": TAINTS[::-1]}, {"more": {"b": "1", "a": "1"}}],
    ids=["taints", "allocatable"],
)
def test_order_in_which_a_node_lists_what_it_has_ends_no_rejection(changes: dict[str, Any]) -> None:
    """R13: only a change of it does; an API server need not keep the order of a map."""
    same: dict[str, Any] = {"taints": TAINTS, "more": {"a": "1", "b": "1"}}
    binder = Binder()
    binder.passes(state(node("gpu-1", **same), gpu_class(), *refused_vm()), HELD)
    result = binder.passes(state(node("gpu-1", **same | changes), gpu_class(), *next_run()))
    assert reason_of(result) is Reason.NODES_REFUSED


def test_launcher_of_a_vmi_that_ran_hides_no_refusal_of_another() -> None:
    """R13, R15: each suspect is looked at for itself."""
    ran = pinned_launcher("a", node="gpu-1", status=REFUSED, uid="pod-1")
    run = vmi("a", phase="Failed", seen=["Running"], pods=["pod-1"])
    binder = Binder()
    refused = binder.passes(two_nodes(vm("a"), run, ran, *refused_vm()), HELD)
    assert kinds_of(refused) == [DeletePod]
    assert set(binder.memory.rejections) == {"default/vm-vm1"}
