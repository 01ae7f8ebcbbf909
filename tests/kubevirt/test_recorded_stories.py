"""The recorded stories with KubeVirt's own virt-controller; gpubinder pins where a hand did."""

from __future__ import annotations

import asyncio

import pytest

from kube.port import MERGE_STATUS, ObjectKey
from model.resources import NODES, PODS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES
from simulator.actors.acting import condition
from simulator.actors.kubelet import DEAD, REFUSE
from tests.kubevirt.judge import pins_of
from tests.kubevirt.lives import (
    add_node,
    change_node,
    halt,
    is_gated,
    is_still,
    launchers_of,
    runs_anew,
    runs_on,
    says,
    start_running,
    start_vm,
    vm_of,
    vmi_of,
)
from tests.stories.binder_process import gpubinder_up
from tests.stories.conftest import Stage
from tests.stories.test_placing import runs, waits

pytestmark = [pytest.mark.kubevirt, pytest.mark.allow_hosts(["127.0.0.1"]), pytest.mark.timeout(400)]


async def test_vm_is_gated_pinned_restarted_on_its_node_and_stopped(stage: Stage) -> None:
    """R6, R9, R10, R39, R26: one life, from the gate to the units that come back."""
    small = await add_node(stage, "small", 1)
    await add_node(stage, "large", 4)
    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "up.log"):
        vmi = await start_running(stage, "vm")
        await runs_on(stage, "vm", small)
        for _ in range(3):
            await asyncio.sleep(
                1
            )  # a run shorter than the drain of a batch leaves no trace, and holds nothing
            await stage.client.delete(stage.key(VIRTUAL_MACHINE_INSTANCES, "vm"))
            await stage.until("the VM runs again", lambda vmi=vmi: runs_anew(stage, "vm", vmi))
            await runs_on(stage, "vm", small)
            vmi = await vmi_of(stage, "vm")
        await halt(stage, "vm")

        async def is_over() -> bool:
            return not await stage.claims() and not await launchers_of(stage, "vm")

        await stage.until("its units are free", is_over)


async def test_vm_that_the_kubelet_refuses_starts_elsewhere_after_its_back_off(stage: Stage) -> None:
    """R13 (i), R14: one failed start, and the next launcher is pinned to another node."""
    refusing = await add_node(stage, "a", 1)
    other = await add_node(stage, "b", 2)
    await change_node(stage, refusing, {"metadata": {"annotations": {REFUSE: "UnexpectedAdmissionError"}}})
    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "up.log"):
        await start_vm(stage, "vm")
        await stage.until("the VM backs off", lambda: says(stage, "vm", "CrashLoopBackOff"))
        assert (await vm_of(stage, "vm"))["status"]["startFailure"]["consecutiveFailCount"] == 1
        await stage.until("the VM runs", lambda: runs(stage, "vm"))
        await runs_on(stage, "vm", other)


async def test_vm_that_the_scheduler_cannot_place_on_its_pin_starts_elsewhere(stage: Stage) -> None:
    """R13 (ii): an anti-affinity that nobody models; the pod goes, the node is given up for this VM."""
    first = await add_node(stage, "a", 1)
    other = await add_node(stage, "b", 2)
    await put_pod_on(stage, first, {"app": "blocker"})
    apart = {"labelSelector": {"matchLabels": {"app": "blocker"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    soon = ("--unschedulable-after", "3")
    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "up.log", options=soon):
        await start_vm(stage, "vm", spec={"affinity": affinity})

        async def is_unschedulable() -> bool:
            pods = await launchers_of(stage, "vm")
            told = condition(pods[0]["status"].get("conditions"), "PodScheduled") if pods else None
            return (
                bool(pods) and pins_of(pods[0]) == {first} and (told or {}).get("reason") == "Unschedulable"
            )

        await stage.until("the scheduler refuses", is_unschedulable)
        await stage.until("the VM runs", lambda: runs(stage, "vm"))
        await runs_on(stage, "vm", other)


async def test_third_vm_waits_behind_its_gate_until_one_of_two_stops(stage: Stage) -> None:
    """R12, R26: where the recording's hand pinned three VMs to two units, the third stays gated."""
    node = await add_node(stage, "only", 2)
    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "up.log"):
        for name in ("one", "two"):
            await start_running(stage, name)
        await start_vm(stage, "three")
        await stage.until("the third waits", lambda: waits(stage, "three", "NoRoom"))
        assert await is_gated(stage, "three")
        assert await says(stage, "three", "Starting")
        await halt(stage, "one")
        await stage.until("the third runs", lambda: runs(stage, "three"))
        await runs_on(stage, "three", node)
        await runs_on(stage, "two", node)


async def test_vm_that_is_deleted_while_gated_goes_and_leaves_no_claim(stage: Stage) -> None:
    """R12, R30: two VMs and the last unit."""
    node = await add_node(stage, "only", 1)
    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "up.log"):
        await start_running(stage, "one")
        await start_vm(stage, "two")
        await stage.until("the second waits", lambda: waits(stage, "two", "NoRoom"))
        await stage.client.delete(stage.key(VIRTUAL_MACHINES, "two"))

        async def is_gone() -> bool:
            return not await vmi_of(stage, "two") and len(await stage.claims()) == 1

        await stage.until("it leaves nothing", is_gone)
        await runs_on(stage, "one", node)


async def test_node_that_dies_and_returns_keeps_its_vm(stage: Stage) -> None:
    """R20: not Ready for less than the grace; KubeVirt and we leave the VM alone."""
    node = await add_node(stage, "a", 1)
    for name in ("b", "c", "d"):
        await add_node(stage, name, 2)
    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "up.log"):
        vmi = await start_running(stage, "vm")
        await runs_on(stage, "vm", node)
        await change_node(stage, node, {"metadata": {"annotations": {DEAD: "yes"}}})
        await stage.until("the node is not Ready", lambda: is_ready(stage, node, "Unknown"))
        await asyncio.sleep(10)
        await change_node(stage, node, {"metadata": {"annotations": {DEAD: None}}})
        await stage.until("the node is back", lambda: is_ready(stage, node, "True"))
        await asyncio.sleep(2)
        await is_still(stage, "vm", vmi)


async def test_device_plugin_that_restarts_costs_nothing(stage: Stage) -> None:
    """R20: allocatable 2, 0, 2 within the grace; a VM that comes meanwhile goes to another node."""
    node = await add_node(stage, "a", 2)
    other = await add_node(stage, "b", 4)
    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "up.log"):
        vmi = await start_running(stage, "vm")
        await runs_on(stage, "vm", node)
        await set_units(stage, node, 0)
        await start_running(stage, "second")
        await runs_on(stage, "second", other)
        await set_units(stage, node, 2)
        await start_running(stage, "third")
        await runs_on(stage, "third", node)
        await is_still(stage, "vm", vmi)


async def is_ready(stage: Stage, node: str, status: str) -> bool:
    body = await stage.client.get(ObjectKey(NODES, node))
    return (condition(body["status"].get("conditions"), "Ready") or {}).get("status") == status


async def set_units(stage: Stage, node: str, units: int) -> None:
    change = {"status": {"allocatable": {stage.resource: str(units)}}}
    await stage.client.patch(ObjectKey(NODES, node), change, MERGE_STATUS)


async def put_pod_on(stage: Stage, node: str, labels: dict[str, str]) -> None:
    """A pod that asks for nothing, on a node without the scheduler."""
    spec = {"nodeName": node, "containers": [{"name": "main", "image": "none"}]}
    body = {"metadata": {"name": "blocker", "namespace": stage.namespace, "labels": labels}, "spec": spec}
    await stage.client.create(PODS, body)
