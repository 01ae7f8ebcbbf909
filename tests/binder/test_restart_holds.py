"""What is held for a VM that restarts: as a whole, beside what its own pods and claims have (R39)."""

from __future__ import annotations

import pytest

from model.claims import GPUClaim
from model.decisions import DeleteClaim
from model.meta import Lean
from model.nodes import Node
from tests.binder.deciding import Binder, kinds_of, placed_on
from tests.binder.restarting import HELD, ONE, RIVAL, next_run, ran
from tests.builders import (
    T4,
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

RECORDED = order("o", node="gpu-1", vm_uid="vm-vm1")


def is_held(binder: Binder, *objects: Lean, live: tuple[GPUClaim, ...] = (), after_s: float = 0) -> bool:
    """Whether the rival gets nothing of what is there."""
    there = state(gpu_class(), gpu_class("t4", T4), vm(), *objects, *RIVAL)
    return "default/rival" not in placed_on(binder.passes(there, *live, after_s=after_s))


def after_run(at: Node, *live: GPUClaim) -> Binder:
    """vm1 has run there with these claims."""
    binder = Binder()
    assert binder.passes(state(at, gpu_class(), gpu_class("t4", T4), *running_vm()), *live).decisions == ()
    return binder


def test_unit_waits_while_the_next_run_has_no_launcher_yet() -> None:
    """R39: virt-controller makes the VMI, then its pod."""
    assert is_held(after_run(ONE, HELD), ONE, vmi(uid="run-2", pods=[]))


def test_next_run_of_which_one_launcher_is_placed_has_its_place() -> None:
    """R39: a temporary launcher is on the node already when the real one is made."""
    two = node("gpu-1", 2)
    runs = vmi(uid="run-2", pods=["pod-temporary", "pod-real"], claims="o")
    temporary = pinned_launcher(vmi_uid="run-2", uid="pod-temporary", node="gpu-1")
    real = launcher(vmi_uid="run-2", uid="pod-real", pod="real")
    held = order("o", node="gpu-1", vm_uid="vm-vm1")
    assert not is_held(after_run(two, HELD), two, runs, temporary, real, live=(held,))


def test_unit_that_the_last_launcher_still_has_is_not_held_twice() -> None:
    """R26, R39: its claims have gone, so its pod counts in full until it ends."""
    two = node("gpu-1", 2)
    binder = after_run(two, HELD)
    ended = vmi(phase="Failed", seen=["Running"])
    assert not is_held(binder, two, ended, pinned_launcher(node="gpu-1", phase="Running"))
    assert is_held(binder, ONE, ended, pinned_launcher(node="gpu-1", phase="Failed"))


def test_hold_is_beside_what_an_order_holds_there_and_no_more_than_it_is() -> None:
    """R8e, R39: one unit of each kind is enough for two, and one unit that was held is no two."""
    two = node("gpu-1", 2)
    uses_both = (RECORDED, HELD)
    binder, named = Binder(), running_vm(units=2, claims="o")
    binder.passes(state(two, gpu_class(), *named), *uses_both)
    run, pod = vmi(uid="run-2", pods=["pod-2"], claims="o"), launcher("vm1", 2, vmi_uid="run-2", uid="pod-2")
    again = state(two, gpu_class(), named[0], run, pod)
    assert placed_on(binder.passes(again, RECORDED)) == {"default/vm1": "gpu-1"}
    binder = after_run(ONE, HELD)
    grown = (vmi(uid="run-2", pods=["pod-2"]), launcher("vm1", 2, vmi_uid="run-2", uid="pod-2"))
    assert placed_on(binder.passes(state(ONE, gpu_class(), vm(), *grown))) == {}


def test_hold_of_nothing_wakes_nobody() -> None:
    """R39: claims of the run that do not go have its units still."""
    binder, there = after_run(ONE, HELD), state(ONE, gpu_class(), vm(), vmi(phase="Failed", seen=["Running"]))
    binder.passes(there, HELD)
    assert binder.passes(there, HELD, after_s=10).wake_at_ms is None


def test_run_that_ended_last_is_the_one_that_is_held_for() -> None:
    """R39: whatever the uids of the two are, also for a binder that has just begun."""
    binder = Binder()
    for uid, name in (("z-first", "gpu-1"), ("a-second", "gpu-2")):
        there = state(
            ONE, node("gpu-2", 1), gpu_class(), vm(), vmi(uid=uid, phase="Running", node=name),
            pinned_launcher(pin=name, vmi_uid=uid, node=name, phase="Running"),
        )  # fmt: skip
        binder.passes(there, template_claim("vm1", node=name, vmi_uid=uid), after_s=1)
    free = (ONE, node("gpu-2", 1), gpu_class(), vm())
    binder.passes(state(*free), after_s=1)
    assert placed_on(binder.passes(state(*free, *RIVAL))) == {"default/rival": "gpu-1"}


@pytest.mark.parametrize(("after_s", "is_known"), [(7200, True), (7200.001, False)])
def test_run_is_remembered_for_as_long_as_its_units_may_be_held(after_s: float, is_known: bool) -> None:
    """R14, R39: a hold longer than an hour."""
    binder, hold_s = after_run(ONE, HELD), 7200
    binder.passes(state(ONE, gpu_class(), vm()), restart_hold_s=hold_s)
    binder.passes(state(ONE, gpu_class(), vm()), after_s=after_s, restart_hold_s=hold_s)
    assert bool(binder.memory.runs) is is_known


def test_units_of_two_claims_of_one_class_are_not_held_besides_what_both_still_hold() -> None:
    """R26, R39: somebody gave the VMI a claim of its own."""
    second = template_claim("vm1", node="gpu-1")
    meta = second.metadata.model_copy(update={"name": "by-hand", "uid": "claim-by-hand"})
    live = (HELD, second.model_copy(update={"metadata": meta}))
    three, binder = node("gpu-1", 3), after_run(node("gpu-1", 3), *live)
    assert not is_held(binder, three, live=live)
    assert is_held(binder, node("gpu-1", 2)), "both, once their claims have gone"


@pytest.mark.parametrize(
    ("now", "others", "want"),
    [
        (node("gpu-1", 1, more={T4: "1"}), (), True),
        (node("gpu-1", 1), (), True),
        (node("gpu-1", 1, more={T4: "1"}), (order("o", class_name="t4", node="gpu-1"),), False),
    ],
    ids=["all there", "the node lacks one", "others have one"],
)
def test_units_of_two_resources_wait_together_unless_others_have_some(
    now: Node, others: tuple[GPUClaim, ...], want: bool
) -> None:
    """R39: what the node lacks may come back, e.g. with its device plugin; what others have does not."""
    live = (HELD, template_claim("vm1", class_name="t4", node="gpu-1"))
    assert is_held(after_run(node("gpu-1", 1, more={T4: "1"}), *live), now, live=others) is want


@pytest.mark.parametrize(("units", "want"), [(3, True), (2, False)])
def test_units_are_held_beyond_the_grace_only_where_the_node_offers_all_of_them(
    units: int, want: bool
) -> None:
    """R20, R39: of two classes of one resource together, as for sets that are held."""
    both = (gpu_class(default=True), gpu_class("other"))
    live = (template_claim("vm1", node="gpu-1"), template_claim("vm1", 2, class_name="other", node="gpu-1"))
    binder = Binder()
    binder.passes(state(node("gpu-1", 3), *both, *running_vm(units=3)), *live)
    for after_s, is_still_held in ((0, True), (59.999, True), (0.001, want)):
        there = state(node("gpu-1", units), *both, vm(), *RIVAL)
        placed = placed_on(binder.passes(there, after_s=after_s, keep_grace_s=60))
        assert (placed == {}) is is_still_held


def test_what_is_not_there_as_a_whole_is_not_held() -> None:
    """R39: of the two units of the last run others have got one; the other one is for whoever can use it."""
    binder, two = Binder(), node("gpu-1", 2)
    binder.passes(state(two, gpu_class(), *running_vm(units=2)), template_claim("vm1", 2, node="gpu-1"))
    taken = order("o", node="gpu-1")
    between = state(two, gpu_class(), vm(), *RIVAL)
    assert placed_on(binder.passes(between, taken)) == {"default/rival": "gpu-1"}
    assert placed_on(binder.passes(between)) == {}


def test_hold_of_two_classes_of_one_resource_is_their_sum() -> None:
    """R39: units are held by resource."""
    both = (gpu_class(default=True), gpu_class("other"))
    live = (
        template_claim("vm1", 1, node="gpu-1"),
        template_claim("vm1", 2, class_name="other", node="gpu-1"),
    )
    binder, four = Binder(), node("gpu-1", 4)
    binder.passes(state(four, *both, *running_vm(units=3)), *live)
    assert placed_on(binder.passes(state(four, *both, vm(), *started_vm("two", 2)))) == {}
    assert placed_on(binder.passes(state(four, *both, vm(), *started_vm("one", 1)))) == {
        "default/one": "gpu-1"
    }


def test_what_claims_still_hold_is_not_held_twice() -> None:
    """R26, R39: the VMI has ended, its template claim is still to go."""
    binder, two = Binder(), node("gpu-1", 2)
    ran(binder)
    ended = (vm(), vmi(phase="Failed", seen=["Running"], pods=[]))
    result = binder.passes(state(two, gpu_class(), *ended, *RIVAL), HELD)
    assert placed_on(result) == {"default/rival": "gpu-1"}
    assert DeleteClaim in kinds_of(result)
    going = template_claim("vm1", node="gpu-1", deleting=True)
    assert placed_on(binder.passes(state(two, gpu_class(), vm(), *RIVAL), going)) == {
        "default/rival": "gpu-1"
    }


def test_what_the_next_run_has_got_is_not_held_any_more() -> None:
    """R39: bound, then pinned, then with orders instead of template claims."""
    two, claim = node("gpu-1", 2), template_claim("vm1", node="gpu-1", vmi_uid="run-2")
    binder = Binder()
    ran(binder)
    binder.passes(state(two, gpu_class(), vm()))
    bound = state(two, gpu_class(), vm(), *next_run(), *RIVAL)
    assert placed_on(binder.passes(bound, claim)) == {"default/vm1": "gpu-1", "default/rival": "gpu-1"}
    binder = Binder()
    ran(binder)
    binder.passes(state(two, gpu_class(), vm()))
    with_order = vmi("vm1", uid="run-2", pods=["pod-run-2"], claims="o")
    pinned = pinned_launcher(vmi_uid="run-2", uid="pod-run-2", node="gpu-1")
    there = state(two, gpu_class(), vm(), with_order, pinned, *RIVAL)
    held = order("o", node="gpu-1", vm_uid="vm-vm1")
    assert placed_on(binder.passes(there, held)) == {"default/rival": "gpu-1"}
