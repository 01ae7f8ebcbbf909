"""What was promised is kept: refusals, restarts, failing nodes; real control plane, KubeVirt played."""

from __future__ import annotations

import asyncio
import time

import pytest

from kube.port import Json, ObjectKey
from model.resources import GPU_CLAIMS, NAMESPACES, NODES, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES
from simulator.actors.kubelet import REFUSE
from simulator.objects import gpu_vm
from tests.stories.binder_process import gpubinder_up
from tests.stories.conftest import Stage
from tests.stories.test_placing import runs, waits

pytestmark = [
    pytest.mark.envtest,
    pytest.mark.allow_hosts(["127.0.0.1"]),
    pytest.mark.timeout(180),
    pytest.mark.usefixtures("actors"),
]


async def claim_of(stage: Stage, vm: str) -> Json:
    """The claim that the VM's VMI owns, or an empty object."""
    for claim in await stage.claims():
        if (claim["metadata"].get("ownerReferences") or [{"name": ""}])[0]["name"] == vm:
            return claim
    return {}


async def node_of(stage: Stage, vm: str) -> str:
    return str(((await claim_of(stage, vm)).get("status") or {}).get("nodeName", ""))


async def restart(stage: Stage, vm: str) -> None:
    """As `virtctl restart` does: the VMI is deleted, the VM makes a new one."""
    key = stage.key(VIRTUAL_MACHINE_INSTANCES, vm)
    old = (await stage.client.get(key))["metadata"]["uid"]
    await stage.client.delete(key)

    async def is_new() -> bool:
        return (await claim_of(stage, vm)).get("metadata", {}).get("ownerReferences", [{}])[0].get(
            "uid"
        ) not in (None, old) and await runs(stage, vm)

    await stage.until(f"{vm} runs again", is_new)


async def test_launcher_that_the_kubelet_refused_goes_to_another_node(stage: Stage) -> None:
    """R13, R14, case 001: the first choice refuses it; the next launcher of the VM is pinned elsewhere."""
    refusing = await stage.add_node("a", 1)
    other = await stage.add_node("b", 2)
    knob = {"metadata": {"annotations": {REFUSE: "UnexpectedAdmissionError"}}}
    await stage.client.patch(ObjectKey(NODES, refusing), knob)
    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "up.log"):
        await stage.start_vm("vm")
        await stage.until("the VM runs", lambda: runs(stage, "vm"))
        assert await node_of(stage, "vm") == other


async def test_restart_keeps_the_gpu_from_a_vm_that_waits(stage: Stage) -> None:
    """R39, case 067: also when the binder is killed and started in between."""
    await stage.add_node("only", 1)
    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "one.log"):
        await stage.start_vm("first")
        await stage.until("first runs", lambda: runs(stage, "first"))
        await stage.start_vm("second")
        await stage.until("second waits", lambda: waits(stage, "second", "NoRoom"))
        await restart(stage, "first")
        assert await node_of(stage, "second") == ""


async def test_running_vm_leaves_a_node_with_a_noexecute_taint(stage: Stage) -> None:
    """R20, R21: its VMI is deleted once a node with room is found, and its claims follow."""
    first = await stage.add_node("a", 1)
    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "up.log"):
        await stage.start_vm("vm")
        await stage.until("the VM runs", lambda: runs(stage, "vm"))
        others = [await stage.add_node(name, 2) for name in ("b", "c", "d")]
        taint = {"key": "example.com/broken", "value": "yes", "effect": "NoExecute"}
        await stage.client.patch(ObjectKey(NODES, first), {"spec": {"taints": [taint]}})

        async def has_moved() -> bool:
            return await node_of(stage, "vm") in others and await runs(stage, "vm")

        await stage.until("the VM runs elsewhere", has_moved)


async def test_order_of_a_deleted_node_is_lost_and_found_again(stage: Stage) -> None:
    """R20, R22, R23."""
    nodes = [await stage.add_node(name, 1) for name in ("a", "b", "c", "d")]
    spec = {"className": stage.class_name, "units": 1}
    body = {"metadata": {"name": "order", "namespace": stage.namespace}, "spec": spec}

    async def phase() -> str:
        return str(
            ((await stage.client.get(stage.key(GPU_CLAIMS, "order"))).get("status") or {}).get("phase")
        )

    async def is_phase(wanted: str) -> bool:
        return await phase() == wanted

    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "up.log"):
        await stage.client.create(GPU_CLAIMS, body)
        await stage.until("the order is held", lambda: is_phase("Bound"))
        for name in ("x", "y", "z"):
            await stage.start_vm(name)
            await stage.until(f"{name} runs", lambda name=name: runs(stage, name))
        home = (await stage.client.get(stage.key(GPU_CLAIMS, "order")))["status"]["nodeName"]
        assert home in nodes
        await stage.client.delete(ObjectKey(NODES, home))
        await stage.until("the order is Lost", lambda: is_phase("Lost"))
        lost = (await stage.client.get(stage.key(GPU_CLAIMS, "order")))["status"]
        assert (lost["lostFrom"], lost.get("nodeName", "")) == (home, "")
        await stage.client.patch(stage.key(VIRTUAL_MACHINES, "x"), {"spec": {"runStrategy": "Halted"}})
        await stage.until("the order is held again", lambda: is_phase("Bound"))


async def test_namespace_with_claims_in_use_goes_when_its_vms_have_ended(stage: Stage) -> None:
    """R30: our finalizer holds a claim while its launcher runs, and never hangs the namespace."""
    await stage.add_node("only", 1)
    own = f"{stage.namespace}-own"
    await stage.client.create(NAMESPACES, {"metadata": {"name": own}})
    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "up.log"):
        await stage.client.create(VIRTUAL_MACHINES, gpu_vm("vm", {stage.resource: 1}, own))

        async def is_running() -> bool:
            body = await stage.client.get(ObjectKey(VIRTUAL_MACHINES, "vm", own))
            return (body.get("status") or {}).get("printableStatus") == "Running"

        await stage.until("the VM runs", is_running)
        await stage.client.delete(ObjectKey(NAMESPACES, own))
        deadline = time.monotonic() + 90
        while own in [one["metadata"]["name"] for one in await _namespaces(stage)]:
            assert time.monotonic() < deadline, "the namespace hangs"
            await asyncio.sleep(0.2)


async def _namespaces(stage: Stage) -> list[Json]:
    return list((await stage.client.list_page(NAMESPACES)).items)
