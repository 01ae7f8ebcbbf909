"""Orders, classes and who may use them: R7, R16, R18, R23, R30."""

from __future__ import annotations

import pytest

from binder.core.claims import MAX_NAMED
from binder.core.policy import Policy
from binder.core.run_pass import run_pass
from binder.core.world import look_at
from model.claims import GPUClaim
from model.decisions import (
    BindClaim,
    CreateClaim,
    Keep,
    LetGo,
)
from model.nodes import Node
from model.reasons import Reason
from projections.folds.memory import Memory
from tests.binder.deciding import decide, placed_on, reason_of
from tests.builders import (
    NOW_MS,
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


def test_named_orders_cover_first_and_the_rest_becomes_a_template_claim() -> None:
    """R7."""
    cluster = state(node(units=4), gpu_class(), vm(), vmi(claims="order-1"), launcher("vm1", 3))
    result = decide(cluster, order("order-1", 2))
    assert [d.units for d in result.decisions if isinstance(d, CreateClaim)] == [1]
    assert [d.claim.name for d in result.decisions if isinstance(d, BindClaim)] == [
        "order-1",
        "vm1-h100-vmi-vm1",
    ]


def test_vm_that_names_more_orders_than_any_node_has_units_waits_and_costs_no_time() -> None:
    """R7, R8: an annotation has room for 100,000 names, and every tenant writes one."""
    most = ",".join(f"o{number}" for number in range(MAX_NAMED))
    orders = [order(f"o{number}", 1) for number in range(MAX_NAMED)]
    there = (node(units=999), gpu_class(), vm())
    fits = decide(state(*there, vmi(claims=most), launcher("vm1", MAX_NAMED)), *orders)
    assert placed_on(fits) == {"default/vm1": "gpu-1"}
    world = look_at(state(*there, vmi(claims=f"{most},{'x,' * 50_000}"), launcher("vm1")), {})
    result = run_pass(world, Memory(), Policy(), NOW_MS)
    assert reason_of(result) is Reason.TOO_LARGE
    assert "more than 256 orders" in result.waiting[0].message
    assert len(world.relations.names_of(("default", "vm1"))) == MAX_NAMED


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
    assert [type(d) for d in decide(state(fresh)).decisions] == [Keep]
    going = gpu_class().metadata.model_copy(update={"deletion_timestamp": "2026-12-01T00:00:00Z"})
    leaving = gpu_class().model_copy(update={"metadata": going})
    assert decide(state(leaving, node()), order("o", node="gpu-1")).decisions == ()
    assert [type(d) for d in decide(state(leaving)).decisions] == [LetGo]
