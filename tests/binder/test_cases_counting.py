"""The handed cases about counting, budgets, migration and restarts (docs/cases.md)."""

from __future__ import annotations

import pytest

from model.claims import GPUClaim
from model.decisions import BindClaim
from model.kubevirt import VirtualMachine, VirtualMachineInstance
from model.meta import Lean
from model.nodes import Node
from model.pods import Pod
from model.reasons import Reason
from model.requests import effective_request
from tests.binder.cases_on_disk import (
    claim_of,
    cluster_of,
    load,
    moved,
    objects_of,
    resources_of,
)
from tests.binder.deciding import Binder, decide, placed_on, reason_of
from tests.builders import (
    budget,
    gpu_class,
    launcher,
    namespace,
    node,
    running_vm,
    started_vm,
    state,
    template_claim,
    vm,
    vmi,
)

A10 = "nvidia.com/GA102GL_A10"


def pods_in(objects: list[Lean]) -> list[Pod]:
    return [one for one in objects if isinstance(one, Pod)]


def test_032_ended_pods_use_up_no_budget() -> None:
    """R27."""
    there = (budget(a=2), namespace("tenant-a"), namespace("tenant-b"))
    assert placed_on(decide(cluster_of([*objects_of("032"), *there], [A10]))) == {"tenant-a/vm1": "gpu-a"}


def test_034_sidecar_counts_beside_what_runs_with_it() -> None:
    """R29."""
    used = {pod.metadata.name: effective_request(pod)[A10] for pod in pods_in(objects_of("034"))}
    assert used == load("034", "expected.yaml")["nodeUse"]


def test_038_unit_of_a_pinned_launcher_is_taken_before_it_is_bound() -> None:
    """R3, R26: from the claim, also after a restart; and once, not twice, when the node's name appears."""
    objects = objects_of("038")
    by_name = {pod.metadata.name: pod for pod in pods_in(objects)}
    live = [
        claim_of(by_name["virt-launcher-vm1-aaaaa"], "gpu-a", A10),
        claim_of(by_name["virt-launcher-vm3-aaaaa"], "gpu-b", A10),
    ]
    result = decide(cluster_of(objects, [A10]), *live)
    assert {one.set: one.reason for one in result.waiting} == {
        "tenant-b/vm2": Reason.NO_ROOM,
        "tenant-b/vm4": Reason.NO_ROOM,
    }
    assert placed_on(result).keys() <= {"tenant-a/vm3"}
    gone = [one for one in objects if one is not by_name["virt-launcher-vm1-aaaaa"]]
    assert placed_on(decide(cluster_of(gone, [A10]), live[1]))["tenant-b/vm2"] == "gpu-a"


def test_038_unit_is_taken_by_the_pin_alone_where_no_claim_says_so() -> None:
    """R26: an ungated launcher takes room on its pin."""
    objects = [o for o in objects_of("038") if "vm3" not in o.metadata.name and "vm4" not in o.metadata.name]  # type: ignore[attr-defined]
    only = [one for one in objects if not isinstance(one, Node) or one.metadata.name == "gpu-a"]
    assert reason_of(decide(cluster_of(only, [A10]))) is Reason.NO_ROOM


def test_039_budget_counts_a_vm_once_and_waiting_blocks_nobody() -> None:
    """R27: claims by class, raw pods by resource (decision 0032): of 5, 3 are raw pods' and 2 the class's."""
    objects, expected = objects_of("039"), load("039", "expected.yaml")
    by_name = {pod.metadata.name: pod for pod in pods_in(objects)}
    raw_units = expected["inUse"][A10] - 1
    there = [
        *objects,
        budget(a=expected["budget"][A10] - raw_units),
        namespace("tenant-a"),
        namespace("tenant-b"),
    ]
    held = claim_of(by_name["virt-launcher-vm1-aaaaa"], "gpu-a", A10)
    result = decide(cluster_of(there, [A10]), held)
    assert placed_on(result).keys() == {"tenant-a/vm3"}
    (waiting,) = result.waiting
    assert (waiting.set, waiting.reason) == ("tenant-a/vm2", Reason.BUDGET_EXCEEDED)
    assert "2 of class a: 1 held, 2 more wanted" in waiting.message


@pytest.mark.parametrize("row", [(4, 3, 1, True), (1, 3, 1, False), (1, 0, 1, True)])
def test_040_lowered_budget_refuses_what_is_new_and_evicts_nothing(row: tuple[int, int, int, bool]) -> None:
    """R27."""
    limit, use, ask, is_allowed = row
    running = [one for n in range(use) for one in running_vm(f"r{n}")]
    live = [template_claim(f"r{n}", node="gpu-1") for n in range(use)]
    there = (node(units=8), gpu_class(), namespace(), budget(h100=limit), *running, *started_vm("new", ask))
    result = decide(state(*there), *live)
    assert (placed_on(result) != {}) is is_allowed
    assert {one.set for one in result.decisions} == {"default/new"}


def migration(where: str, **phases: str | None) -> tuple[list[Lean], GPUClaim]:
    """Case 050 with the VMI on a node, and its pods in phases (None: gone); the claim is on gpu-a."""
    nodes = [one for one in objects_of("050") if isinstance(one, Node)]
    source, target = pods_in(objects_of("050"))
    raw = target.model_dump(by_alias=True)
    raw["spec"] |= {"nodeName": "gpu-b", "schedulingGates": []}
    pods = []
    for pod, phase in ((source, phases["source"]), (Pod.model_validate(raw), phases["target"])):
        if phase is not None:
            pods.append(pod.model_copy(update={"status": pod.status.model_copy(update={"phase": phase})}))
    run = vmi(uid="vmi-vm1-1", phase="Running", node=where, pods=["pod-vm1-aaaaa", "pod-vm1-bbbbb"])
    resource = resources_of("050")[0]
    there = [*nodes, *pods, moved(vm(), "tenant-a"), moved(run, "tenant-a"), gpu_class("a", resource)]
    return there, claim_of(source, "gpu-a", resource)


def test_050_both_pods_of_a_migration_count_and_the_end_of_one_frees_its_node() -> None:
    """R19, R26, R28: the claims follow when the VMI is there; the target's end releases nothing."""
    resource = resources_of("050")[0]

    def free_on(where: str, claim_on: str, **phases: str | None) -> dict[str, int]:
        there, held = migration(where, **phases)
        live = held.model_copy(update={"status": held.status.model_copy(update={"node_name": claim_on})})
        free = {}
        for name, offered in (("gpu-a", 2), ("gpu-b", 1)):
            for units in range(offered, 0, -1):
                pod = moved(
                    launcher("x", units, resource=resource, node_selector={"kubernetes.io/hostname": name}),
                    "x",
                )
                asks = [moved(vm("x"), "x"), moved(vmi("x"), "x"), pod]
                if placed_on(decide(state(*there, *asks), live)).get("x/x") == name:
                    free[name] = units
                    break
        return {"gpu-a": 2 - free.get("gpu-a", 0), "gpu-b": 1 - free.get("gpu-b", 0)}

    expected = load("050", "expected.yaml")
    assert free_on("gpu-a", "gpu-a", source="Running", target="Running") == expected["use"]
    assert free_on("gpu-b", "gpu-b", source="Succeeded", target="Running") == expected["afterSuccess"]
    assert free_on("gpu-a", "gpu-a", source="Running", target="Failed") == expected["afterFailure"]
    assert free_on("gpu-a", "gpu-a", source="Running", target=None) == expected["afterFailure"]
    there, held = migration("gpu-b", source="Running", target="Running")
    (bind,) = decide(state(*there), held).decisions
    assert isinstance(bind, BindClaim)
    assert bind.node == "gpu-b"


def test_067_restart_keeps_the_unit_and_a_stop_gives_it_back() -> None:
    """R39: (a) for a VM that is stopped, and no loss to a later VM for one that restarts."""
    one, second = node("gpu-a", 1), tuple(started_vm("vm2"))
    held = template_claim(node="gpu-a")
    stopped, restarting = Binder(), Binder()
    for binder in (stopped, restarting):
        waiting = binder.passes(state(one, gpu_class(), *running_vm(node="gpu-a"), *second), held)
        assert reason_of(waiting) is Reason.NO_ROOM
    halted = stopped.passes(state(one, gpu_class(), vm(strategy="Halted"), *second))
    assert placed_on(halted) == {"default/vm2": "gpu-a"}
    again: list[VirtualMachine | VirtualMachineInstance | Pod] = [
        vm(),
        vmi(uid="run-2", pods=["pod-2"]),
        launcher(vmi_uid="run-2", uid="pod-2"),
    ]
    assert placed_on(restarting.passes(state(one, gpu_class(), vm(), *second), after_s=1)) == {}
    back = restarting.passes(state(one, gpu_class(), *again, *second), after_s=30)
    assert placed_on(back) == {"default/vm1": "gpu-a"}
    taken = stopped.passes(
        state(one, gpu_class(), *again, *running_vm("vm2", "gpu-a")), template_claim("vm2", node="gpu-a")
    )
    assert reason_of(taken) is Reason.NO_ROOM
