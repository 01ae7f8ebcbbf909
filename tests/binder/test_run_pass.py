"""What one pass decides for gated launchers and orders: R4, R7, R8, R9, R10, R11, R12, R18, R26, R28, R33."""

from __future__ import annotations

import pytest

from binder.core.policy import Policy
from binder.core.run_pass import PassResult, run_pass
from binder.core.state import ClusterState
from model.claims import GPUClaim
from model.decisions import (
    BindClaim,
    CreateClaim,
    DeleteClaim,
    KeepClass,
    LetClassGo,
    MarkWaiting,
    PinLauncher,
    WarnVmi,
)
from model.nodes import Node
from model.reasons import Reason
from tests.builders import (
    H100,
    NOW_MS,
    T4,
    claims,
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


def decide(cluster: ClusterState, *live: GPUClaim, told: dict[str, Reason] | None = None) -> PassResult:
    return run_pass(cluster, claims(*live), told or {}, Policy(), NOW_MS)


def placed_on(result: PassResult) -> dict[str, str]:
    return {d.set: d.node for d in result.decisions if isinstance(d, PinLauncher)}


def reason_of(result: PassResult) -> Reason:
    (waiting,) = result.waiting
    return waiting.reason


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
    told_before = decide(cluster, told={"vmi-vm1": Reason.NO_ROOM})
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


def test_named_orders_cover_first_and_the_rest_becomes_a_template_claim() -> None:
    """R7."""
    cluster = state(node(units=4), gpu_class(), vm(), vmi(claims="order-1"), launcher("vm1", 3))
    result = decide(cluster, order("order-1", 2))
    assert [d.units for d in result.decisions if isinstance(d, CreateClaim)] == [1]
    assert [d.claim.name for d in result.decisions if isinstance(d, BindClaim)] == [
        "order-1",
        "vm1-h100-vmi-vm1",
    ]


def test_set_prefers_the_node_that_already_holds_most_of_it() -> None:
    """R9."""
    cluster = state(node("a", 3), node("b", 8), gpu_class(), vm(), vmi(claims="order-1"), launcher("vm1", 3))
    assert placed_on(decide(cluster, order("order-1", 2, node="b", vm_uid="vm-vm1"))) == {"default/vm1": "b"}


@pytest.mark.parametrize(
    ("names", "live", "reason"),
    [
        ("nowhere", [], Reason.CLAIM_NOT_FOUND),
        ("order-1", [order("order-1", 1, node="gpu-1", vm_uid="vm-vm2")], Reason.CLAIM_IN_USE),
        ("order-1", [order("order-1", 1, class_name="gone")], Reason.CLASS_NOT_FOUND),
        ("vm2-h100-vmi-vm2", [template_claim("vm2", node="gpu-1")], Reason.CLAIM_NOT_FOUND),
    ],
)
def test_order_that_cannot_serve_keeps_the_launcher_gated(
    names: str, live: list[GPUClaim], reason: Reason
) -> None:
    """R7, R18: missing, in use by another living VM, of no class, or not an order at all."""
    cluster = state(node(units=4), gpu_class(), vm(), vm("vm2"), vmi("vm1", claims=names), launcher("vm1"))
    result = decide(cluster, *live)
    assert placed_on(result) == {}
    assert reason_of(result) is reason


def test_order_of_a_vm_that_is_gone_serves_the_next() -> None:
    """R18."""
    cluster = state(node(units=4), gpu_class(), vm(), vmi("vm1", claims="order-1"), launcher("vm1"))
    assert placed_on(decide(cluster, order("order-1", 1, node="gpu-1", vm_uid="vm-gone"))) == {
        "default/vm1": "gpu-1"
    }


def test_class_is_the_annotated_one_then_the_only_one_then_the_default() -> None:
    """R7."""
    cheap, dear = gpu_class("cheap"), gpu_class("dear")

    def chosen(*objects: object) -> list[str]:
        result = decide(state(node(), *objects))  # type: ignore[arg-type]
        return [d.class_name for d in result.decisions if isinstance(d, CreateClaim)]

    assert chosen(cheap, dear, vm(), vmi(gpu_class="dear"), launcher()) == ["dear"]
    assert chosen(cheap, *started_vm("vm1")) == ["cheap"]
    assert chosen(cheap, gpu_class("dear", default=True), *started_vm("vm1")) == ["dear"]
    assert chosen(cheap, dear, *started_vm("vm1")) == []
    assert reason_of(decide(state(node(), cheap, dear, *started_vm("vm1")))) is Reason.CLASS_AMBIGUOUS
    unknown = state(node(), cheap, vm(), vmi(gpu_class="nope"), launcher())
    assert reason_of(decide(unknown)) is Reason.CLASS_NOT_FOUND


def test_claim_of_the_templates_name_with_another_owner_is_never_adopted() -> None:
    """R7."""
    result = decide(state(node(), gpu_class(), *started_vm("vm1")), order("vm1-h100-vmi-vm1"))
    assert Reason.NAME_TAKEN in {w.reason for w in result.waiting}
    assert placed_on(result) == {}


def test_pod_that_its_vmi_does_not_list_is_neither_placed_nor_refused() -> None:
    """R28: not listed yet means wait; a forged owner reference proves nothing."""
    forged = launcher("evil", vmi_uid="vmi-vm1")
    result = decide(state(node(), gpu_class(), vm(), vmi("vm1"), forged))
    assert result.decisions == ()
    assert result.waiting == ()


def test_new_orders_go_onto_the_fullest_node_with_room() -> None:
    """R23."""
    result = decide(state(node("a", 8), node("b", 2), gpu_class()), order("o", 2))
    (bind,) = result.decisions
    assert isinstance(bind, BindClaim)
    assert (bind.node, bind.vm) == ("b", None)


def test_orders_that_one_vm_names_are_placed_together_before_it_starts() -> None:
    """R16, R23: the VM's template counts before the first VMI exists."""
    cluster = state(node("a", 1), node("b", 3), gpu_class(), vm(claims="o1,o2"))
    binds = [d for d in decide(cluster, order("o1", 1), order("o2", 2)).decisions if isinstance(d, BindClaim)]
    assert [(b.claim.name, b.node, b.vm and b.vm.uid) for b in binds] == [
        ("o1", "b", "vm-vm1"),
        ("o2", "b", "vm-vm1"),
    ]


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
    result = run_pass(stale, {}, {}, Policy(), NOW_MS + 61_000)
    assert (result.decisions, "StaleLog" in result.blocked) == ((), True)


def test_order_of_a_running_vmi_without_a_vm_is_in_use() -> None:
    """R18: a standalone VMI stands for itself, and nobody else gets its order while it lives."""
    first = vmi("al1", phase="Running", claims="o").model_copy(deep=True)
    alone = first.model_copy(update={"metadata": first.metadata.model_copy(update={"owner_references": ()})})
    cluster = state(node(units=8), gpu_class(), alone, vm("vm1"), vmi("vm1", claims="o"), launcher("vm1"))
    assert reason_of(decide(cluster, order("o", 4, node="gpu-1", vm_uid="vmi-al1"))) is Reason.CLAIM_IN_USE


def test_vmi_that_only_refers_to_a_vm_of_another_name_is_not_that_vms() -> None:
    """R18, R28: a tenant writes references; KubeVirt names a VMI as its VM."""
    forged = vmi("forged", claims="o")
    owner = forged.metadata.owner_references[0].model_copy(update={"name": "owner", "uid": "vm-owner"})
    meta = forged.metadata.model_copy(update={"owner_references": (owner,)})
    cluster = state(
        node(units=8),
        gpu_class(),
        vm("owner"),
        forged.model_copy(update={"metadata": meta}),
        launcher("forged", 2),
    )
    result = decide(cluster, order("o", 2, node="gpu-1", vm_uid="vm-owner"))
    assert reason_of(result) is Reason.CLAIM_IN_USE


def test_new_order_of_a_vm_joins_what_the_vm_holds_or_takes_it_along_or_waits() -> None:
    """R16: the orders of one VM are on one node, also when they come one after the other."""
    held = order("p1", 2, node="a")

    def nodes_of(*nodes: Node, raw: int = 0) -> dict[str, str]:
        pods = [raw_pod("r", "a", raw)] if raw else []
        result = decide(state(*nodes, *pods, gpu_class(), vm("vm1", claims="p1,p2")), held, order("p2", 2))
        return {d.claim.name: d.node for d in result.decisions if isinstance(d, BindClaim)}

    assert nodes_of(node("a", 4), node("b", 2))["p2"] == "a"
    assert nodes_of(node("a", 3), node("b", 4)) == {"p1": "b", "p2": "b"}
    assert nodes_of(node("a", 3), node("b", 3)) == {}


def test_class_is_kept_while_a_claim_names_it_and_let_go_after() -> None:
    """R30: without its class nobody would count a claim's units."""
    fresh = gpu_class().model_copy(
        update={"metadata": gpu_class().metadata.model_copy(update={"finalizers": ()})}
    )
    assert [type(d) for d in decide(state(fresh)).decisions] == [KeepClass]
    going = gpu_class().metadata.model_copy(update={"deletion_timestamp": "2026-12-01T00:00:00Z"})
    leaving = gpu_class().model_copy(update={"metadata": going})
    assert decide(state(leaving, node()), order("o", node="gpu-1")).decisions == ()
    assert [type(d) for d in decide(state(leaving)).decisions] == [LetClassGo]
