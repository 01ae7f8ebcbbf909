"""What a VM holds while something else than room is in its way is kept and moved as ever (R20-R22)."""

from __future__ import annotations

from typing import Any

import pytest

from model.claims import GPUClaim
from model.decisions import LoseClaim, MarkWaiting, PinLauncher
from model.meta import Lean
from model.reasons import Reason
from tests.binder.deciding import Binder, bound_to, decide, kinds_of, placed_on, reason_of
from tests.builders import (
    budget,
    gpu_class,
    launcher,
    namespace,
    node,
    order,
    started_vm,
    state,
    template_claim,
    vm,
    vmi,
)

DISK: dict[str, Any] = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "missing"}}]}


def naming(claims: str, *, strategy: str = "Always", **changes: object) -> tuple[Lean, ...]:
    """vm1, which names the orders, its VMI and its gated launcher."""
    return (vm(claims=claims, strategy=strategy), vmi(claims=claims), launcher(**changes))  # type: ignore[arg-type]


def of_vm1(name: str, where: str = "gone") -> GPUClaim:
    return order(name, node=where, vm_uid="vm-vm1")


@pytest.mark.parametrize(
    "objects",
    [naming("o,missing"), naming("missing,o"), naming("o", **DISK)],
    ids=["before the missing", "after the missing", "disk missing"],
)
def test_a_gated_sets_order_leaves_a_node_that_is_gone_although_its_launcher_cannot_start(
    objects: tuple[Lean, ...],
) -> None:
    """R20, R21: step 3 gathers it only when the way is free; there is room, so it is not Lost (R22)."""
    result = decide(state(node(), gpu_class(), *objects), of_vm1("o"))
    assert bound_to(result) == {"o": "gpu-1"}
    assert PinLauncher not in kinds_of(result)
    full = decide(state(node(units=0), gpu_class(), *objects), of_vm1("o"))
    assert LoseClaim in kinds_of(full)


def test_a_template_claim_leaves_such_a_node_although_an_order_is_missing() -> None:
    """R20: the annotation was changed after the claim was Bound."""
    result = decide(state(node(), gpu_class(), *naming("missing")), template_claim(node="gone"))
    assert bound_to(result) == {"vm1-h100-vmi-vm1": "gpu-1"}


def test_a_partly_lost_set_is_gathered_although_an_order_is_missing() -> None:
    """R17: onto one node where there is one, else all of it is Lost."""
    lost = order("l", vm_uid="vm-vm1", phase="Lost", lostFrom="x", lostAt="2026-12-01T05:00:00Z")
    there = of_vm1("o", "gpu-1")
    result = decide(state(node(units=2), gpu_class(), *naming("o,l,missing")), there, lost)
    assert (bound_to(result), reason_of(result)) == ({"l": "gpu-1"}, Reason.CLAIM_NOT_FOUND)
    assert (
        kinds_of(decide(state(node(units=1), gpu_class(), *naming("o,l,missing")), there, lost))[0]
        is LoseClaim
    )


def test_what_is_held_for_a_restart_stays_held_while_the_vms_order_moves() -> None:
    """R39: against every later set, also in the pass that moves the order."""
    binder, nodes = Binder(), (node("home", 2), gpu_class(), vm(claims="o"))
    run = (
        vmi(claims="o", phase="Running", node="home"),
        launcher("vm1", 2, gates=[], node="home", phase="Running"),
    )
    held = (of_vm1("o", "home"), template_claim(node="home"))
    binder.passes(state(*nodes, *run), *held)
    result = binder.passes(state(*nodes), of_vm1("o", "gone"), order("p"), order("q"), after_s=1)
    assert bound_to(result) == {"o": "home"}
    assert {one.reason for one in result.waiting} == {Reason.NO_ROOM}


def test_every_pending_order_of_a_vm_that_waits_says_why() -> None:
    """R12: also the one that is named after what is missing."""
    result = decide(state(node(), gpu_class(), *naming("missing,o")), order("o"))
    (mark,) = (one for one in result.decisions if isinstance(one, MarkWaiting))
    assert (mark.claim.name, mark.reason) == ("o", Reason.CLAIM_NOT_FOUND)


def test_what_moves_takes_nothing_along_that_a_budget_refuses() -> None:
    """R27: an order that was never placed is new, whoever it is moved or gathered with."""
    limited = (gpu_class(), namespace(), vm(claims="o1,o2,new", strategy="Halted"))
    live = (of_vm1("o1", "a"), of_vm1("o2", "b"), order("new"))
    split = state(node("a", 1), node("b", 1), node("c", 4), budget(h100=2), *limited)
    assert bound_to(decide(split, *live)) == {"o1": "c", "o2": "c"}
    gone = state(node("c", 4), budget(h100=1), *limited)
    assert bound_to(decide(gone, of_vm1("o1"), order("new"))) == {"o1": "c"}
    roomy = state(node("c", 4), budget(h100=2), *limited)
    assert bound_to(decide(roomy, of_vm1("o1"), order("new"))) == {"o1": "c", "new": "c"}


def test_more_units_than_a_claim_can_have_are_too_large_and_no_claim_is_made() -> None:
    """R12: the API server would refuse the claim, and nothing written after it would be."""
    for units in (1025, 2**63):
        result = decide(state(node(units=4000), gpu_class(), *started_vm("vm1", units)))
        assert reason_of(result) is Reason.TOO_LARGE
        assert len(result.decisions) == 1  # the warning
    assert placed_on(decide(state(node(units=4000), gpu_class(), *started_vm("vm1", 1024))))


def test_a_pinned_launcher_with_a_foreign_gate_takes_its_cpu_there() -> None:
    """R8e, R26: the scheduler will put it there once the other gate is off."""
    there = launcher("vm1", gates=["foreign"], terms=[{"matchFields": [PIN]}], requests={"cpu": "60"})
    cluster = state(
        node(units=4), gpu_class(), vm(), vmi(), there, *started_vm("vm2", requests={"cpu": "60"})
    )
    assert reason_of(decide(cluster, template_claim(node="gpu-1"))) is Reason.OTHER_RESOURCES


PIN = {"key": "metadata.name", "operator": "In", "values": ["gpu-1"]}


def test_what_a_restart_holds_is_let_go_when_its_node_is_short_for_longer_than_the_grace() -> None:
    """R20, R39: by time alone, so the pass says when to wake."""
    binder = Binder()
    run = (
        vm(),
        vmi(phase="Running", node="gpu-1"),
        launcher("vm1", 2, gates=[], node="gpu-1", phase="Running"),
    )
    binder.passes(state(node(), gpu_class(), *run), template_claim(units=2, node="gpu-1"))
    binder.passes(state(node(units=1), gpu_class(), *run), template_claim(units=2, node="gpu-1"))
    ended = state(node(units=1), gpu_class(), vm(), *started_vm("vm2"))
    waiting = binder.passes(ended, after_s=200)
    assert (reason_of(waiting), waiting.wake_at_ms) == (Reason.NO_ROOM, binder.now_ms + 100_000)
    assert placed_on(binder.passes(ended, after_s=100)) == {"default/vm2": "gpu-1"}


def test_node_orders_of_sets_that_want_other_resources_are_not_mixed() -> None:
    """R9: a migration's target wants less than its VM's classes sell; vm1's two orders want all of it."""
    more = "nvidia.com/other"
    nodes = (node("a", 2, more={more: "4"}), node("home", 1, more={more: "1"}))
    moving = vmi("mig", phase="Running", node="home", pods=["pod-mig", "pod-t"])
    source = launcher("mig", gates=[], node="home", phase="Running")
    target = launcher("mig", uid="pod-t", pod="t", labels={"kubevirt.io/migrationJobUID": "j"})
    live = (
        template_claim("mig", node="home"),
        order("m", class_name="other", node="home", vm_uid="vm-mig"),
        order("h"),
        order("t", 3, class_name="other"),
    )
    vms = (vm("mig"), vm(claims="h,t", strategy="Halted"))
    result = decide(state(*nodes, gpu_class(), gpu_class("other", more), *vms, moving, source, target), *live)
    assert placed_on(result) == {"default/mig": "a"}
    assert bound_to(result) == {"h": "a", "t": "a"}
