"""What one pass decides for gated launchers and orders: R4, R7, R8, R9, R10, R11, R12, R18, R26, R28, R33."""

from __future__ import annotations

import pytest

from binder.core.policy import Policy
from binder.core.run_pass import run_pass
from binder.core.world import look_at
from model.decisions import (
    BindClaim,
    CreateClaim,
    DeleteClaim,
    MarkWaiting,
    PinLauncher,
    WarnVmi,
)
from model.reasons import Reason
from projections.folds.memory import Memory
from tests.binder.deciding import decide, placed_on, reason_of, told
from tests.builders import (
    H100,
    NOW,
    NOW_MS,
    T4,
    gpu_class,
    launcher,
    node,
    order,
    raw_pod,
    started_vm,
    state,
    template_claim,
    vm,
    vmi,
)


def test_gated_launcher_gets_a_template_claim_bound_and_is_pinned_last() -> None:
    """R7, R10: create, bind, pin, in this order and on one node."""
    result = decide(state(node(), gpu_class(), *started_vm("vm1", 2)))
    create, bind, pin = result.decisions
    assert isinstance(create, CreateClaim)
    assert (create.claim.name, create.units, create.class_name) == ("vm1-h100-vmi-vm1", 2, "h100")
    assert (create.owner.uid, create.owner.controller) == ("vmi-vm1", True)
    assert isinstance(bind, BindClaim)
    assert (bind.node, bind.vm and bind.vm.uid) == ("gpu-1", "vm-vm1")
    assert isinstance(pin, PinLauncher)
    assert (pin.node, pin.pod.uid) == ("gpu-1", "pod-vm1")


def test_same_inputs_give_the_same_decisions() -> None:
    """R4."""
    cluster = state(node("a"), node("b"), gpu_class(), *started_vm("vm1"), *started_vm("vm2"))
    assert decide(cluster) == decide(cluster)


def test_crash_between_bind_and_pin_ends_with_the_pin_alone() -> None:
    """R3, R9: a set already whole on an acceptable node stays; nothing is booked again."""
    cluster = state(node("a", 1), node("b", 1), gpu_class(), *started_vm("vm1"))
    result = decide(cluster, template_claim("vm1", node="b"))
    assert [type(d) for d in result.decisions] == [PinLauncher]
    assert placed_on(result) == {"default/vm1": "b"}


def test_fullest_node_with_room_is_taken_then_the_name() -> None:
    """R9."""
    nodes = (node("big", 8), node("small-b", 2), node("small-a", 2))
    assert placed_on(decide(state(*nodes, gpu_class(), *started_vm("vm1", 2)))) == {"default/vm1": "small-a"}


def test_two_launchers_of_one_pass_never_share_the_last_unit() -> None:
    """R3, R11: what one set takes, the next one does not see; the older launcher goes first."""
    cluster = state(
        node(units=1),
        gpu_class(),
        *started_vm("young", created="2026-12-01T06:00:00Z"),
        *started_vm("old", created="2026-12-01T05:00:00Z"),
    )
    result = decide(cluster)
    assert placed_on(result) == {"default/old": "gpu-1"}
    assert reason_of(result) is Reason.NO_ROOM


def test_priority_goes_before_age_and_a_set_that_does_not_fit_stops_nobody() -> None:
    """R11."""
    cluster = state(
        node(units=4),
        gpu_class(),
        *started_vm("old", 1, created="2026-12-01T05:00:00Z"),
        *started_vm("huge", 3, priority=5, created="2026-12-01T05:30:00Z"),
        *started_vm("high", 3, priority=9, created="2026-12-01T06:00:00Z"),
    )
    assert set(placed_on(decide(cluster))) == {"default/high", "default/old"}


@pytest.mark.parametrize(
    "changes",
    [
        {"ready": "False"},
        {"ready": "Unknown"},
        {"unschedulable": True},
        {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]},
        {"taints": [{"key": "gpu", "effect": "NoExecute"}]},
    ],
)
def test_node_that_the_class_does_not_accept_is_left_out(changes: dict[str, object]) -> None:
    """R8a."""
    result = decide(state(node(**changes), gpu_class(), *started_vm("vm1")))  # type: ignore[arg-type]
    assert placed_on(result) == {}
    assert reason_of(result) is Reason.CLASS_CONSTRAINTS


def test_class_tolerations_reach_the_launcher_with_the_pin() -> None:
    """R10: the launcher is given what its class tolerates, once."""
    toleration = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}
    tainted = node(taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}])
    cluster = state(tainted, gpu_class(tolerations=[toleration]), *started_vm("vm1"))
    pin = decide(cluster).decisions[-1]
    assert isinstance(pin, PinLauncher)
    assert [t.key for t in pin.tolerations] == ["gpu"]
    already = state(
        tainted, gpu_class(tolerations=[toleration]), *started_vm("vm1", tolerations=[toleration])
    )
    pin = decide(already).decisions[-1]
    assert isinstance(pin, PinLauncher)
    assert pin.tolerations == ()


def test_class_node_selector_and_pod_selector_must_both_accept() -> None:
    """R8a, R8b."""
    cluster = state(
        node("a", labels={"pool": "x"}),
        node("b", labels={"pool": "x", "zone": "1"}),
        node("c", labels={"zone": "1"}),
        gpu_class(nodeSelector={"pool": "x"}),
        *started_vm("vm1", node_selector={"zone": "1"}),
    )
    assert placed_on(decide(cluster)) == {"default/vm1": "b"}


def test_memory_that_does_not_fit_keeps_the_launcher_waiting() -> None:
    """R8e, case 037."""
    result = decide(state(node(), gpu_class(), *started_vm("vm1", requests={"memory": "513Gi"})))
    assert reason_of(result) is Reason.OTHER_RESOURCES


def test_claims_raw_pods_and_terminating_pods_take_units() -> None:
    """R26: a claim where it is Bound, a raw pod until it has ended."""
    cluster = state(
        node(units=4),
        gpu_class(),
        raw_pod("running", "gpu-1"),
        raw_pod("done", "gpu-1", 4, phase="Succeeded"),
        *started_vm("vm1", 2),
    )
    assert placed_on(decide(cluster, order("held", 1, node="gpu-1"))) == {"default/vm1": "gpu-1"}
    assert reason_of(decide(cluster, order("held", 2, node="gpu-1"))) is Reason.NO_ROOM


def test_running_launcher_is_counted_once() -> None:
    """R26: its claim covers its request."""
    running = (
        vm("vm0"),
        vmi("vm0", phase="Running"),
        launcher("vm0", 1, gates=[], node="gpu-1", phase="Running"),
    )
    cluster = state(node(units=2), gpu_class(), *running, *started_vm("vm1", 1))
    assert placed_on(decide(cluster, template_claim("vm0", node="gpu-1"))) == {"default/vm1": "gpu-1"}


def test_pinned_launcher_takes_its_node_before_the_scheduler_binds_it() -> None:
    """R26: cpu and memory of a launcher that is pinned and not yet bound count on its pin."""
    pin = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gpu-1"]}]}]
    pinned = launcher("vm0", 1, gates=[], terms=pin, requests={"memory": "500Gi"})
    cluster = state(
        node(units=2),
        gpu_class(),
        vm("vm0"),
        vmi("vm0"),
        pinned,
        *started_vm("vm1", requests={"memory": "20Gi"}),
    )
    assert reason_of(decide(cluster, template_claim("vm0", node="gpu-1"))) is Reason.OTHER_RESOURCES


def test_waiting_set_creates_its_claim_says_why_and_warns_once_per_reason() -> None:
    """R12."""
    cluster = state(
        node(units=1), node("gpu-2", 4), gpu_class(), raw_pod("r", "gpu-2", 3), *started_vm("vm1", 2)
    )
    create, mark, warn = decide(cluster).decisions
    assert isinstance(create, CreateClaim)
    assert isinstance(mark, MarkWaiting)
    assert isinstance(warn, WarnVmi)
    assert mark.message == (
        f"no room for 2 of {H100} on 2 nodes: 2 without enough free units; nearest is gpu-1 with 1 free"
    )
    told_before = decide(cluster, memory=told("vmi-vm1", Reason.NO_ROOM))
    assert [type(d) for d in told_before.decisions] == [CreateClaim, MarkWaiting]


def test_more_than_any_node_offers_is_too_large() -> None:
    """Reasons: no node could hold it even when empty."""
    result = decide(state(node("a", 2), node("b", 4), gpu_class(), *started_vm("vm1", 5)))
    assert reason_of(result) is Reason.TOO_LARGE


def test_two_resources_of_one_launcher_go_onto_one_node() -> None:
    """R7, R8: one template claim per resource, the whole set on one node."""
    both = node("both", 1, more={T4: "2"})
    cluster = state(
        node("h", 1),
        node("t", 4, resource=T4),
        both,
        gpu_class(),
        gpu_class("t4", T4),
        *started_vm("vm1", 1, requests={T4: "2"}),
    )
    result = decide(cluster)
    assert {d.class_name: d.units for d in result.decisions if isinstance(d, CreateClaim)} == {
        "h100": 1,
        "t4": 2,
    }
    assert {d.node for d in result.decisions if isinstance(d, BindClaim)} == {"both"}


def test_set_prefers_the_node_that_already_holds_most_of_it() -> None:
    """R9."""
    cluster = state(node("a", 3), node("b", 8), gpu_class(), vm(), vmi(claims="order-1"), launcher("vm1", 3))
    assert placed_on(decide(cluster, order("order-1", 2, node="b", vm_uid="vm-vm1"))) == {"default/vm1": "b"}


def test_pod_that_its_vmi_does_not_list_is_neither_placed_nor_refused() -> None:
    """R28: not listed yet means wait; a forged owner reference proves nothing."""
    forged = launcher("evil", vmi_uid="vmi-vm1", created=NOW)
    result = decide(state(node(), gpu_class(), vm(), vmi("vm1"), forged))
    assert result.decisions == ()
    assert result.waiting == ()


def test_template_claim_of_an_ended_vmi_gives_its_units_back_once_the_launcher_has_ended() -> None:
    """A VMI that stays as Failed (runStrategy Manual) keeps no units."""
    ended = state(
        node(),
        gpu_class(),
        vmi("vm1", phase="Failed"),
        launcher("vm1", node="gpu-1", gates=[], phase="Failed"),
    )
    assert [type(d) for d in decide(ended, template_claim("vm1", node="gpu-1")).decisions] == [DeleteClaim]
    ending = state(
        node(),
        gpu_class(),
        vmi("vm1", phase="Failed"),
        launcher("vm1", node="gpu-1", gates=[], phase="Running"),
    )
    assert decide(ending, template_claim("vm1", node="gpu-1")).decisions == ()


def test_nothing_is_decided_before_every_kind_was_listed_or_when_the_log_is_silent() -> None:
    """R33."""
    cluster = state(node(), gpu_class(), *started_vm("vm1"))
    cluster.complete.discard("Node")
    result = decide(cluster)
    assert (result.decisions, "Node" in result.blocked) == ((), True)
    stale = state(node(), gpu_class(), *started_vm("vm1"))
    result = run_pass(look_at(stale, {}), Memory(), Policy(), NOW_MS + 61_000)
    assert (result.decisions, "StaleLog" in result.blocked) == ((), True)
