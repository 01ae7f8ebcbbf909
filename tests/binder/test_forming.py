"""How sets are formed: members, classes, names and shapes (R7, R16, R18, R28, R29)."""

from __future__ import annotations

from typing import Any

import pytest

from binder.core.forming import template_claim_name
from binder.core.relations import SetId
from binder.core.sets import ClaimSet
from binder.core.world import look_at
from model.claims import GPUClaim, GPUClass
from model.decisions import CreateClaim, DeletePod, VmRef
from model.meta import Lean
from model.names import LABEL_MIGRATION_JOB
from model.reasons import Reason
from tests.binder.deciding import Binder, decide, kinds_of, placed_on
from tests.binder.refusing import HELD, UNSCHEDULABLE, two_nodes
from tests.builders import (
    AT,
    H100,
    T4,
    claims,
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

BOTH = (node(more={T4: "2"}), gpu_class(), gpu_class("t4", T4))


def set_of(
    name: str, *objects: Lean, live: tuple[GPUClaim, ...] = (), is_order: bool = False
) -> ClaimSet | None:
    """The set of that VM, or order."""
    return look_at(state(*objects), claims(*live)).sets.get(SetId(is_order=is_order, key=("default", name)))


def going(one: GPUClass) -> GPUClass:
    return one.model_copy(update={"metadata": one.metadata.model_copy(update={"deletion_timestamp": AT})})


@pytest.mark.parametrize("running", [True, False])
def test_vm_with_the_deprecated_field_comes_back_if_it_is_to_run(running: bool) -> None:
    """R13 (ii): `running` in today's words."""
    old = vm(strategy="")
    machine = old.model_copy(update={"spec": old.spec.model_copy(update={"running": running})})
    assert is_deleted(machine) is running


def test_strategy_of_a_vm_whose_run_it_is_not_says_nothing() -> None:
    """R13 (ii), R18: it has the name of the VMI's VM, and another uid."""
    assert is_deleted(vm())
    assert not is_deleted(vm(uid="vm-other"))


def is_deleted(machine: Lean) -> bool:
    """Whether its launcher, which the scheduler has not placed for two minutes, is deleted."""
    binder, there = Binder(), two_nodes(machine, vmi(), pinned_launcher(status=UNSCHEDULABLE))
    binder.passes(there, HELD)
    return DeletePod in kinds_of(binder.passes(there, HELD, after_s=121))


def test_live_vmi_that_is_no_run_of_the_vm_of_its_name_stands_for_itself() -> None:
    """R18."""
    found = set_of("vm1", *BOTH, vm(uid="vm-other"), *running_vm()[1:], live=(template_claim(node="gpu-1"),))
    assert found is not None
    assert found.vm == VmRef("vm1", "vmi-vm1")


def test_vm_without_claims_has_no_set() -> None:
    """R16: it has no part here."""
    assert set_of("vm1", *BOTH, vm()) is None


def test_vm_has_no_part_in_orders_that_serve_another_nor_in_claims_of_runs() -> None:
    """R7, R18: naming is not having."""
    recorded = order("o", node="gpu-1", vm_uid="vm-vm1")
    assert set_of("vm2", *BOTH, vm(claims="o"), vm("vm2", claims="o"), live=(recorded,)) is None
    of_a_run = template_claim("vm1")
    named = vm("vm2", claims=of_a_run.metadata.name)
    assert set_of("vm2", *BOTH, named, live=(of_a_run,)) is None


def test_order_that_its_vm_does_not_name_is_that_vms_all_the_same() -> None:
    """R18: its status says so."""
    found = set_of("o", *BOTH, vm(), live=(order("o", node="gpu-1", vm_uid="vm-vm1"),), is_order=True)
    assert found is not None
    assert found.vm == VmRef("vm1", "vm-vm1")


def test_template_claims_are_made_by_resource_and_none_for_what_is_asked_none_of() -> None:
    """R4, R7."""
    pod = launcher(units=1, resource=T4, requests={H100: "1"})
    made = [one for one in decide(state(*BOTH, vm(), vmi(), pod)).decisions if isinstance(one, CreateClaim)]
    assert [one.class_name for one in made] == ["h100", "t4"]
    none = launcher(requests={T4: "0"})
    made = [one for one in decide(state(*BOTH, vm(), vmi(), none)).decisions if isinstance(one, CreateClaim)]
    assert [one.class_name for one in made] == ["h100"]


def test_launcher_that_asks_for_more_than_a_claim_can_be_of_is_told_so() -> None:
    """R7, R12."""
    (waiting,) = decide(state(*BOTH, *started_vm("vm1", 1025))).waiting
    assert waiting.reason is Reason.TOO_LARGE
    assert waiting.message == f"the VM asks for 1025 of {H100}: a claim is of 1024 units at most"


def test_classes_of_a_resource_that_are_all_going_away_are_named() -> None:
    """R30."""
    classes = (going(gpu_class("a")), going(gpu_class("b")))
    (waiting,) = decide(state(node(), *classes, *started_vm("vm1"))).waiting
    assert waiting.message == "GPUClass a, b is going away: it serves what it has, and nothing new"


@pytest.mark.parametrize(("length", "is_cut"), [(253, False), (254, True)])
def test_name_of_a_template_claim_is_cut_where_it_would_be_too_long(length: int, is_cut: bool) -> None:
    """R7."""
    guest = vmi("v" * (length - len("-h100-vmi-vvvv")), uid="vmi-vvvv")
    name = template_claim_name(guest, "h100")
    assert len(name) == 253
    assert (name != f"{guest.metadata.name}-h100-vmi-vvvv") is is_cut


def test_members_nodes_and_shapes_are_in_one_order() -> None:
    """R4: however the orders are named and the selectors written; equal wishes are one shape."""
    names = [f"o{number}" for number in range(7)]
    orders = tuple(order(name, node=f"n-{name}") for name in names)
    found = set_of("vm1", *BOTH, vm(claims=",".join(reversed(names))), live=orders)
    assert found is not None
    assert found.nodes == tuple(f"n-{name}" for name in names)
    live = (template_claim("vm1", class_name="t4"), template_claim("vm1"))
    templates = set_of("vm1", *BOTH, *running_vm(), live=live)
    assert templates is not None
    assert [one.gpu_class.metadata.name for one in templates.members] == ["h100", "t4"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"node_selector": {"a": "1", "b": "2"}}, {"node_selector": {"b": "2", "a": "1"}}),
        ({"claims": "h1,t1"}, {"claims": "t2,h2"}),
    ],
    ids=["selectors", "orders"],
)
def test_equal_wishes_are_one_shape(one: dict[str, Any], other: dict[str, Any]) -> None:
    """R9: they share the order of the nodes, however they are written."""
    live = [order(f"h{n}") for n in (1, 2)] + [order(f"t{n}", class_name="t4") for n in (1, 2)]
    there: list[Lean] = []
    for name, look in (("vm1", one), ("vm2", other)):
        named, pod = str(look.get("claims", "")), {k: v for k, v in look.items() if k != "claims"}
        asked = {T4: "1"} if named else {}
        there += [vm(name, claims=named), vmi(name, claims=named), launcher(name, requests=asked, **pod)]
    world = look_at(state(*BOTH, *there), claims(*live))
    shapes = {id(world.sets[SetId(is_order=False, key=("default", name))].shape) for name in ("vm1", "vm2")}
    assert len(shapes) == 1


def test_what_a_launcher_asks_for_besides_is_looked_at_by_name_down_to_one() -> None:
    """R8e, R12: equal states give equal text."""
    pod = launcher(requests={"example.com/z": "1", "example.com/a": "1"})
    (waiting,) = decide(state(*BOTH, vm(), vmi(), pod)).waiting
    assert waiting.reason is Reason.OTHER_RESOURCES
    assert waiting.message.endswith("nearest is gpu-1, short of example.com/a")


def test_launcher_of_a_vmi_that_is_nowhere_yet_is_the_newest_wherever_it_is() -> None:
    """R28: a temporary one that has no node, and the real one that has."""
    pods = ["pod-old", "pod-new"]
    old = pinned_launcher(uid="pod-old", pod="old", created="2026-01-01T00:00:00Z")
    new = pinned_launcher(uid="pod-new", pod="new", created="2026-01-02T00:00:00Z", node="gpu-1")
    found = set_of("vm1", *BOTH, vm(), vmi(pods=pods), old, new, live=(template_claim(node="gpu-1"),))
    assert found is not None
    assert found.launcher is not None
    assert found.launcher.pod.metadata.uid == "pod-new"


@pytest.mark.parametrize(
    ("labels", "vmi_node"), [({}, "gpu-2"), ({LABEL_MIGRATION_JOB: "job"}, "")], ids=["label", "node"]
)
def test_pod_is_for_a_migration_only_with_the_label_and_of_a_vmi_that_is_somewhere(
    labels: dict[str, str], vmi_node: str
) -> None:
    """R28: else it is the launcher, wherever it is."""
    pod = pinned_launcher(node="gpu-1", labels=labels)
    found = set_of("vm1", *BOTH, vm(), vmi(node=vmi_node), pod, live=(template_claim(node="gpu-1"),))
    assert found is not None
    assert found.launcher is not None


def test_label_of_a_migration_that_a_tenant_wrote_keeps_no_launcher_from_its_place() -> None:
    """R28: a VMI's labels are copied."""
    there = started_vm("vm1", labels={LABEL_MIGRATION_JOB: "job"})
    assert placed_on(decide(state(*BOTH, *there))) == {"default/vm1": "gpu-1"}
