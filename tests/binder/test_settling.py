"""Sets are whole: gathered, lost and rebound together, and where their launcher is (R16-R19, R28)."""

from __future__ import annotations

from typing import Any

import pytest

from binder.core.policy import Policy
from binder.core.run_pass import run_pass
from binder.core.world import look_at
from model.claims import GPUClaim
from model.decisions import BindClaim, CreateClaim, DeleteClaim, LoseClaim, PinLauncher, UngateLauncher
from model.meta import Lean
from model.reasons import Reason
from projections.folds.memory import Memory
from tests.binder.deciding import Binder, bound_to, decide, kinds_of, placed_on, reason_of
from tests.builders import (
    NOW_MS,
    T4,
    claims,
    gpu_class,
    launcher,
    node,
    order,
    pinned_launcher,
    pinned_to,
    running_vm,
    started_vm,
    state,
    template_claim,
    vm,
    vmi,
)

MIGRATION = {"kubevirt.io/migrationJobUID": "mig-1"}
TARGET = "pod-target"


def lost(name: str, units: int = 1, **more: Any) -> GPUClaim:
    """An order that had a node."""
    return order(name, units, phase="Lost", lostFrom="x", lostAt="2026-12-01T05:00:00Z", **more)


def of_vm1(name: str, units: int = 1, node_name: str = "a") -> GPUClaim:
    return order(name, units, node=node_name, vm_uid="vm-vm1")


def test_partly_lost_set_is_gathered_onto_one_node() -> None:
    """R17: a write failed half way; the node that holds most of it is asked first."""
    cluster = state(node("a", 3), node("b", 3), gpu_class(), vm(claims="o1,o2"))
    result = decide(cluster, of_vm1("o1"), lost("o2", 2, vm_uid="vm-vm1"))
    assert bound_to(result) == {"o2": "a"}


def test_partly_lost_set_moves_where_there_is_room_for_all_of_it() -> None:
    """R17."""
    cluster = state(node("a", 2), node("b", 3), gpu_class(), vm(claims="o1,o2"))
    assert bound_to(decide(cluster, of_vm1("o1"), lost("o2", 2, vm_uid="vm-vm1"))) == {"o1": "b", "o2": "b"}


@pytest.mark.parametrize(
    "objects",
    [
        (vm(claims="o1,o2"),),
        (vm(claims="o1,o2"), vmi(claims="o1,o2", pods=[])),
        (vm(claims="o1,o2"), vmi(claims="o1,o2"), launcher(units=3)),
        running_vm(node="elsewhere", units=3, claims="o1,o2"),
        (vm(claims="o1,o2"), vmi(claims="o1,o2", deleting=True), pinned_launcher(units=3)),
        (vm(claims="o1,o2"), vmi(claims="o1,o2"), launcher(units=3, gates=[])),
    ],
    ids=["no VMI", "no launcher", "gated", "running elsewhere", "ending", "ungated without a pin"],
)
def test_partly_lost_set_without_a_node_for_all_is_lost_whole(objects: tuple[Lean, ...]) -> None:
    """R17: in whatever stage its VM is."""
    result = decide(state(node("a", 2), gpu_class(), *objects), of_vm1("o1"), lost("o2", 2, vm_uid="vm-vm1"))
    (lose,) = (one for one in result.decisions if isinstance(one, LoseClaim))
    assert (lose.claim.name, lose.lost_from) == ("o1", "a")
    assert bound_to(result) == {}


def test_set_that_was_lost_half_way_is_rebound_whole_later() -> None:
    """R16, R17, R23: what was lost together comes back together."""
    both = [lost("o1", vm_uid="vm-vm1"), lost("o2", 2, vm_uid="vm-vm1")]
    there = (gpu_class(), vm(claims="o1,o2"))
    assert bound_to(decide(state(node("a", 2), *there), *both)) == {}
    assert bound_to(decide(state(node("a", 3), *there), *both)) == {"o1": "a", "o2": "a"}


def test_split_set_that_no_node_takes_stays_where_it_is() -> None:
    """R17 is about Lost; nothing is lost for being split."""
    cluster = state(node("a", 2), node("b", 2), gpu_class(), vm(claims="o1,o2"))
    assert decide(cluster, of_vm1("o1", 2), of_vm1("o2", 2, "b")).decisions == ()


def test_split_set_is_gathered_before_its_vm_starts() -> None:
    """R16, R17."""
    cluster = state(node("a", 2), node("b", 4), gpu_class(), vm(claims="o1,o2"))
    assert bound_to(decide(cluster, of_vm1("o1", 2), of_vm1("o2", 2, "b"))) == {"o1": "b"}


def test_vms_template_counts_before_the_first_vmi_and_the_live_annotation_wins_after() -> None:
    """R16."""
    there = (node("a", 1), node("b", 4), gpu_class())
    orders = (order("o1"), order("o2", 2))
    assert set(bound_to(decide(state(*there, vm(claims="o1,o2")), *orders)).values()) == {"b"}
    live = (vm(claims="o1,o2"), vmi(claims="o2"), launcher(units=2))
    result = decide(state(*there, *live), *orders)
    assert bound_to(result) == {"o2": "b", "o1": "a"}
    assert {one.set for one in result.decisions if isinstance(one, BindClaim)} > {"default/vm1"}


def test_template_of_the_vm_counts_again_when_its_vmi_has_ended() -> None:
    """R16: an annotation of a VMI that has ended is no live one."""
    ended = (vm(claims="o1"), vmi(phase="Succeeded", claims="o2", pods=[]))
    result = decide(state(node("a", 4), gpu_class(), *ended), order("o1"), order("o2"))
    assert {o.claim.name: o.vm and o.vm.name for o in result.decisions if isinstance(o, BindClaim)} == {
        "o1": "vm1",
        "o2": None,
    }


def test_annotation_that_changes_while_it_waits_changes_the_set() -> None:
    """R16, R7: the launcher goes where the order that it names now is."""
    there = (node("a", 2), node("b", 2), gpu_class(), vm(), launcher())
    orders = (order("o1", node="a", vm_uid="vm-vm1"), order("o2", node="b"))
    assert placed_on(decide(state(*there, vmi(claims="o1")), *orders)) == {"default/vm1": "a"}
    assert placed_on(decide(state(*there, vmi(claims="o2")), *orders)) == {"default/vm1": "b"}


def test_template_claim_that_an_order_has_made_needless_stays_of_the_set_until_it_is_deleted() -> None:
    """R7, R16: a set is what the VM names *and* has templated; the annotation came while it waited."""
    there = (node("a", 2), gpu_class(), vm(), vmi(claims="o"), launcher(units=2))
    assert reason_of(decide(state(*there), template_claim(units=2), order("o", 2))) is Reason.TOO_LARGE
    result = decide(state(*there), template_claim(units=2, deleting=True), order("o", 2))
    assert bound_to(result) == {"o": "a"}
    assert placed_on(result) == {"default/vm1": "a"}


def test_oldest_vm_that_names_an_order_gets_it_and_the_other_is_told() -> None:
    """R18."""
    old, young = (vm(n, claims="o", created=f"2026-12-0{d}T00:00:00Z") for n, d in (("z-old", 1), ("a", 2)))
    both = [o for n in ("z-old", "a") for o in (vmi(n, claims="o"), launcher(n))]
    result = decide(state(node("n", 4), gpu_class(), old, young, *both), order("o"))
    assert placed_on(result) == {"default/z-old": "n"}
    assert reason_of(result) is Reason.CLAIM_IN_USE
    assert "VM z-old" in result.waiting[0].message


def test_recorded_vm_keeps_its_order_while_it_exists_also_if_it_stopped_naming_it() -> None:
    """R18: the VM recorded in its status while that VM exists."""
    live = order("o", node="n", vm_uid="vm-first")
    second = (vm("second", claims="o"), vmi("second", claims="o"), launcher("second"))
    there = state(node("n", 4), gpu_class(), vm("first"), *second)
    assert reason_of(decide(there, live)) is Reason.CLAIM_IN_USE
    again = state(node("n", 4), gpu_class(), vm("first", uid="vm-other"), *second)
    assert placed_on(decide(again, live)) == {"default/second": "n"}


def test_vm_that_is_deleted_while_its_vmi_runs_still_holds_its_order() -> None:
    """R18: the VMI refers to it; the order is in use until it ends."""
    orphan = running_vm("vm1", "n", claims="o")[1:]
    second = (vm("second", claims="o"), vmi("second", claims="o"), launcher("second"))
    held = order("o", node="n", vm_uid="vm-vm1")
    assert reason_of(decide(state(node("n", 4), gpu_class(), *orphan, *second), held)) is Reason.CLAIM_IN_USE


@pytest.mark.parametrize("phase", ["Running", "Scheduled"])
def test_claims_follow_their_launcher_whatever_the_room_there(phase: str) -> None:
    """R19: reality wins."""
    objects = (
        vm(claims="o"),
        vmi(phase=phase, claims="o", node="b"),
        pinned_launcher(pin="b", node="b", units=2),
    )
    result = decide(state(node("a", 2), node("b", 1), gpu_class(), *objects), of_vm1("o", 2))
    assert bound_to(result) == {"o": "b"}


def test_claims_do_not_follow_a_launcher_that_ends() -> None:
    """R19: a *running* launcher; what comes next is seen when it has gone."""
    ending = (
        vm(claims="o"),
        vmi(phase="Running", claims="o", node="b", deleting=True),
        pinned_launcher(pin="b", node="b", phase="Running"),
    )
    assert decide(state(node("a"), node("b"), gpu_class(), *ending), of_vm1("o")).decisions == ()


def migrating(where: str, *, source: str = "Running", target: str | None = "Running") -> tuple[Lean, ...]:
    """vm1 moves from node a to node b; `where` is what its VMI calls its node."""
    pods = [pinned_launcher(pin="a", node="a", phase=source)]
    if target is not None:
        pods.append(
            pinned_launcher(pin="b", node="b", phase=target, uid=TARGET, pod="target", labels=MIGRATION)
        )
    run = vmi(phase="Running", node=where, pods=["pod-vm1", TARGET])
    return (vm(), run, *pods)


def test_migration_source_and_target_both_count_while_both_run() -> None:
    """R26, R28, case 050: the claim covers the source; the target is counted as a raw pod."""
    there = (node("a", 2), node("b", 2), gpu_class(), *migrating("a"))
    held = template_claim(node="a")
    assert decide(state(*there), held).decisions == ()
    result = decide(state(*there, *started_vm("x", 2)), held)
    assert reason_of(result) is Reason.NO_ROOM
    both = decide(state(*there, *started_vm("x"), *started_vm("y")), held)
    assert sorted(placed_on(both).values()) == ["a", "b"]


def test_claims_follow_a_migration_that_succeeded_and_the_source_holds_nothing() -> None:
    """R19, R28, case 050: also while the source still lingers."""
    held = template_claim(node="a")
    for source in ("Running", "Succeeded"):
        there = state(node("a", 1), node("b", 1), gpu_class(), *migrating("b", source=source))
        assert bound_to(decide(there, held)) == {"vm1-h100-vmi-vm1": "b"}
    moved = template_claim(node="b")
    done = (node("a", 1), node("b", 1), gpu_class(), *migrating("b", source="Succeeded"))
    assert placed_on(decide(state(*done, *started_vm("x")), moved)) == {"default/x": "a"}


def test_node_that_claims_leave_is_free_when_they_have_left_and_no_launcher_of_the_vmi_is_there() -> None:
    """R3, R26: not in the pass in which they leave; the source of a migration, or a temporary launcher."""
    rival = tuple(started_vm("x", created="2030-01-01T00:00:00Z"))
    there = (node("a", 1), node("b", 1, labels={"z": "1"}), gpu_class())
    held = template_claim(node="a")
    result = decide(state(*there, *migrating("b"), *rival), held)
    assert bound_to(result) == {"vm1-h100-vmi-vm1": "b"}
    temporary = pinned_launcher(pin="a", node="a", phase="Running")
    real = launcher(uid="pod-real", pod="real", node_selector={"z": "1"})
    two = (vm(), vmi(pods=["pod-vm1", "pod-real"]), temporary, real)
    assert placed_on(decide(state(*there, *two, *rival), held)) == {"default/vm1": "b"}
    ended = (vm(), vmi(pods=["pod-vm1", "pod-real"]), real)
    assert placed_on(decide(state(*there, *ended, *rival), held)) == {"default/vm1": "b"}
    left = decide(state(*there, *ended, *rival), template_claim(node="b"))
    assert placed_on(left) == {"default/vm1": "b", "default/x": "a"}


@pytest.mark.parametrize("target", ["Failed", "Succeeded", None])
def test_end_of_the_target_releases_nothing(target: str | None) -> None:
    """R28, case 050: the claim stays on a, and b is free."""
    there = (node("a", 1), node("b", 1), gpu_class(), *migrating("a", target=target))
    held = template_claim(node="a")
    binder = Binder()
    assert binder.passes(state(*there), held).decisions == ()
    assert placed_on(binder.passes(state(*there, *started_vm("x")), held)) == {"default/x": "b"}
    assert binder.memory.rejections == {}


def test_refused_target_is_not_held_against_its_node_and_is_not_ours_to_delete() -> None:
    """R15, R28: the VM runs; KubeVirt ends the migration."""
    pod = pinned_launcher(
        pin="b", node="b", uid=TARGET, labels=MIGRATION, status={"phase": "Failed", "reason": "OutOfcpu"}
    )
    objects = (*migrating("a", target=None), pod)
    assert (
        decide(state(node("a"), node("b"), gpu_class(), *objects), template_claim(node="a")).decisions == ()
    )


def test_unit_of_a_target_is_not_sold_again_before_the_log_shows_its_pin() -> None:
    """R3: nor after a crash; no claim says that it is taken, so memory does."""
    held = template_claim(node="a")
    gated = launcher(uid=TARGET, pod="target", labels=MIGRATION)
    there = (node("a", 1), node("b", 1), gpu_class(), *migrating("a", target=None), gated)
    binder = Binder()
    assert placed_on(binder.passes(state(*there), held)) == {"default/vm1": "b"}
    rival = tuple(started_vm("x", priority=9, created="2020-01-01T00:00:00Z"))
    again = binder.passes(state(*there, *rival), held)
    assert placed_on(again) == {"default/vm1": "b"}
    assert binder.memory.targets == {TARGET: "b"}
    shown = migrating("a")
    pinned = pinned_launcher(pin="b", uid=TARGET, pod="target", labels=MIGRATION)
    here = (node("a", 1), node("b", 1), gpu_class(), *shown[:3], pinned)
    assert placed_on(binder.passes(state(*here, *rival), held)) == {}
    assert binder.memory.targets == {}
    ended = (node("a", 1), node("b", 1), gpu_class(), *migrating("a", target=None))
    assert placed_on(binder.passes(state(*ended, *rival), held)) == {"default/x": "b"}


def test_target_that_ends_before_its_pin_is_seen_gives_its_unit_back() -> None:
    """R3: what is remembered of it goes with it."""
    held = template_claim(node="a")
    gated = launcher(uid=TARGET, pod="target", labels=MIGRATION)
    there = (node("a", 1), node("b", 1), gpu_class(), *migrating("a", target=None))
    binder = Binder()
    binder.passes(state(*there, gated), held)
    assert placed_on(binder.passes(state(*there, *started_vm("x")), held)) == {"default/x": "b"}
    assert binder.memory.targets == {}


def test_switched_off_the_gate_of_a_target_goes_too() -> None:
    """R30."""
    gated = launcher(uid=TARGET, pod="target", labels=MIGRATION)
    there = (node("a", 1), node("b", 1), gpu_class(), *migrating("a", target=None), gated)
    result = decide(state(*there), template_claim(node="a"), is_enabled=False)
    assert kinds_of(result) == [UngateLauncher]


def test_temporary_launcher_of_a_waiting_volume_is_pinned_like_the_real_one() -> None:
    """R39: gated, pinned and held; the set stays on its node until the real launcher comes."""
    there = (node("a", 2), node("b", 2), gpu_class(), vm())
    pods = ["pod-vm1", "pod-real"]
    temporary = launcher(pod="temporary")
    assert kinds_of(decide(state(*there, vmi(pods=pods), temporary))) == [CreateClaim, BindClaim, PinLauncher]
    held = template_claim(node="b")
    stages: list[tuple[Lean, ...]] = [
        (pinned_launcher(pin="b", node="b", phase="Running"),),
        (pinned_launcher(pin="b", node="b", phase="Succeeded"),),
        (),
    ]
    for stage in stages:
        assert decide(state(*there, vmi(pods=pods), *stage), held).decisions == ()
    real = launcher(uid="pod-real", pod="real", created="2026-12-02T00:00:00Z")
    for stage in stages:
        result = decide(state(*there, vmi(pods=pods), *stage, real), held)
        assert placed_on(result) == {"default/vm1": "b"}
        assert kinds_of(result) == [PinLauncher]


def test_set_of_two_classes_of_one_resource_needs_the_sum() -> None:
    """R8e, R16."""
    classes = (gpu_class("dear"), gpu_class("cheap"))
    objects = (vm(claims="d,c"), vmi(claims="d,c"), launcher(units=4))
    live = (order("d", 2, class_name="dear"), order("c", 2, class_name="cheap"))
    there = (node("small", 3), node("large", 4), *classes, *objects)
    assert bound_to(decide(state(*there), *live)) == {"d": "large", "c": "large"}


def test_set_of_an_order_and_a_template_claim_moves_together() -> None:
    """R7, R16: two resources, one named and one not."""
    both: dict[str, Any] = {"more": {T4: "1"}}
    there = (node("a", 1, **both), node("b", 1, **both), gpu_class(), gpu_class("t4", T4))
    objects = (vm(claims="o"), vmi(claims="o"), launcher(requests={T4: "1"}))
    result = decide(state(*there, *objects), order("o"))
    assert bound_to(result) == {"o": "a", "vm1-t4-vmi-vm1": "a"}
    held = (order("o", node="a", vm_uid="vm-vm1"), template_claim(class_name="t4", node="b"))
    assert set(bound_to(decide(state(*there, *objects), *held)).items()) == {("vm1-t4-vmi-vm1", "a")}


def test_order_that_a_running_vm_names_is_recorded_as_its_so_that_nothing_counts_twice() -> None:
    """R18, R26: the VM was started while the feature was off; the order was held before, by nobody."""
    since = "2026-11-01T00:00:00Z"
    live = order("o", 2, node="a", boundAt=since)
    there = (node("a", 2), gpu_class(), *running_vm(node="a", units=2, claims="o"))
    (bind,) = decide(state(*there), live).decisions
    assert isinstance(bind, BindClaim)
    assert (bind.node, bind.vm and bind.vm.uid, bind.bound_at) == ("a", "vm-vm1", since)
    recorded = order("o", 2, node="a", vm_uid="vm-vm1")
    assert decide(state(*there), recorded).decisions == ()
    wide = (node("a", 3), gpu_class(), *running_vm(node="a", units=2, claims="o"), *started_vm("x"))
    assert placed_on(decide(state(*wide), live)) == {"default/x": "a"}


def test_vmi_that_ended_next_to_held_members_is_cleared_before_its_orders_are_gathered() -> None:
    """R17: template claims on their way out take no part."""
    ended = (vm(claims="o"), vmi(phase="Failed", claims="o", pods=[]))
    live = (order("o", node="a", vm_uid="vm-vm1"), template_claim(node="b"))
    result = decide(state(node("a", 1), node("b", 2), gpu_class(), *ended), *live)
    assert kinds_of(result) == [DeleteClaim]


def test_pin_that_the_user_wrote_is_no_pin_of_ours() -> None:
    """R8b: a required name is a constraint, before and after."""
    objects = (vm(), vmi(), launcher(terms=pinned_to("b")))
    assert placed_on(decide(state(node("a"), node("b"), gpu_class(), *objects))) == {"default/vm1": "b"}


def test_sets_are_made_whole_by_name_whatever_came_first() -> None:
    """R4, R17: there is room for one of two, in a world that is kept up as in one built from nothing."""
    there = state(node("a", 3), gpu_class(), *(vm(name, claims=f"{name}1,{name}2") for name in "yz"))
    live = [
        (order(f"{name}1", node="a", vm_uid=f"vm-{name}"), lost(f"{name}2", vm_uid=f"vm-{name}"))
        for name in "zy"
    ]
    world = look_at(there, claims(*live[0]))
    world.update(claims(*live[0], *live[1]))
    assert bound_to(run_pass(world, Memory(), Policy(), NOW_MS)) == {"y2": "a"}
