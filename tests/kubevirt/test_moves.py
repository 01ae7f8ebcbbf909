"""Moves, restarts, orders and a killed binder, with KubeVirt's own virt-controller."""

from __future__ import annotations

import asyncio

import pytest

from kube.port import MERGE_STATUS, Json, ObjectKey
from model.resources import GPU_CLAIMS, NODES, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES
from simulator.actors.kubelet import DEAD
from tests.kubevirt.lives import (
    UNTIL_QUIET_S,
    add_node,
    change_node,
    halt,
    held_by,
    is_gated,
    is_still,
    runs_anew,
    runs_on,
    start_running,
    start_vm,
    vm_of,
    vmi_of,
)
from tests.stories.binder_process import gpubinder_up
from tests.stories.conftest import Stage
from tests.stories.test_placing import runs, waits

pytestmark = [pytest.mark.kubevirt, pytest.mark.allow_hosts(["127.0.0.1"]), pytest.mark.timeout(400)]

TAINT = {"key": "example.com/broken", "value": "yes", "effect": "NoExecute"}
# The VM tolerates it, so that no taint manager ends its launcher; the class does not: we move it (R20).
TOLERANT = {"tolerations": [{"key": "example.com/broken", "operator": "Exists"}]}


async def break_node(stage: Stage, node: str) -> list[str]:
    """Three more nodes with room, then the taint; returns the three."""
    others = [await add_node(stage, name, 2) for name in ("b", "c", "d")]
    await change_node(stage, node, {"spec": {"taints": [TAINT]}})
    return others


async def test_running_vm_is_moved_off_a_node_by_deleting_its_vmi(stage: Stage) -> None:
    """R20, R21 under Always: the VM starts elsewhere at once, without a start back-off."""
    node = await add_node(stage, "a", 1)
    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "up.log"):
        vmi = await start_running(stage, "vm", spec=TOLERANT)
        await runs_on(stage, "vm", node)
        others = await break_node(stage, node)
        await stage.until("the VM runs elsewhere", lambda: runs_anew(stage, "vm", vmi))
        ((new_node, _),) = await held_by(stage, "vm")
        assert new_node in others
        await runs_on(stage, "vm", new_node)
        assert "startFailure" not in (await vm_of(stage, "vm"))["status"]


@pytest.mark.parametrize("strategy", ["RerunOnFailure", "Manual", "Once"])
async def test_running_vm_that_its_deletion_would_stop_is_left_alone(stage: Stage, strategy: str) -> None:
    """R21: only under Always is a VMI deleted."""
    node = await add_node(stage, "a", 1)
    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "up.log"):
        await start_vm(stage, "vm", spec=TOLERANT | {"runStrategy": strategy})
        if strategy == "Manual":
            await ask_to_start(stage, "vm")
        await stage.until("the VM runs", lambda: runs(stage, "vm"))
        vmi = await vmi_of(stage, "vm")
        await break_node(stage, node)
        await asyncio.sleep(UNTIL_QUIET_S)
        await is_still(stage, "vm", vmi)


async def test_vm_of_a_node_that_died_starts_elsewhere_once_the_node_is_deleted(stage: Stage) -> None:
    """R20, R21, R26: its VMI is deleted, but ends only with its pod; until then it holds the dead node."""
    node = await add_node(stage, "a", 1)
    others = [await add_node(stage, name, 2) for name in ("b", "c", "d")]
    soon = ("--keep-grace", "5")
    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "up.log", options=soon):
        vmi = await start_running(stage, "vm")
        await change_node(stage, node, {"metadata": {"annotations": {DEAD: "yes"}}})

        async def is_going() -> bool:
            return bool((await vmi_of(stage, "vm"))["metadata"].get("deletionTimestamp"))

        await stage.until("its VMI is deleted", is_going)
        await asyncio.sleep(UNTIL_QUIET_S)
        assert (await vmi_of(stage, "vm"))["metadata"]["uid"] == vmi["metadata"]["uid"]
        assert await held_by(stage, "vm") == [(node, 1)]
        await stage.client.delete(ObjectKey(NODES, node))
        await stage.until("the VM runs elsewhere", lambda: runs_anew(stage, "vm", vmi))
        ((new_node, _),) = await held_by(stage, "vm")
        assert new_node in others
        await runs_on(stage, "vm", new_node)


async def test_rerun_on_failure_stops_for_good_when_its_vmi_is_deleted(stage: Stage) -> None:
    """Why R21 leaves it alone: what virt-controller does when somebody deletes the VMI all the same."""
    await add_node(stage, "a", 1)
    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "up.log"):
        await start_running(stage, "vm", spec={"runStrategy": "RerunOnFailure"})
        await stage.client.delete(stage.key(VIRTUAL_MACHINE_INSTANCES, "vm"))

        async def is_stopped() -> bool:
            return (await vm_of(stage, "vm"))["status"]["printableStatus"] == "Stopped"

        await stage.until("the VM is stopped", is_stopped)
        await asyncio.sleep(UNTIL_QUIET_S)
        assert await vmi_of(stage, "vm") == {}
        assert await stage.claims() == []


async def test_restart_keeps_the_gpu_from_a_vm_that_waits(stage: Stage) -> None:
    """R39: three restarts in a row, and the one that waits for the unit never has it."""
    node = await add_node(stage, "only", 1)
    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "up.log"):
        await start_running(stage, "first")
        await start_vm(stage, "second")
        await stage.until("the second waits", lambda: waits(stage, "second", "NoRoom"))
        for _ in range(3):
            vmi = await vmi_of(stage, "first")
            await stage.client.delete(stage.key(VIRTUAL_MACHINE_INSTANCES, "first"))
            await stage.until("the first runs again", lambda vmi=vmi: runs_anew(stage, "first", vmi))
            await runs_on(stage, "first", node)
            assert await is_gated(stage, "second")
        await halt(stage, "first")
        await stage.until("the second runs", lambda: runs(stage, "second"))


async def test_order_that_a_vm_names_outlives_its_runs(stage: Stage) -> None:
    """R7, R16, R18: units of the order while stopped, on the same node when started again."""
    for name in ("a", "b"):
        await add_node(stage, name, 2)
    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "up.log"):
        await order(stage, "mine", 2)
        await start_running(stage, "vm", 2, claims="mine")
        (claim,) = await stage.claims()
        assert (claim["metadata"]["name"], claim["status"]["vm"]["name"]) == ("mine", "vm")
        node = claim["status"]["nodeName"]
        await runs_on(stage, "vm", node, 2)
        await start_vm(stage, "thief", 2, claims="mine")
        await halt(stage, "vm")

        async def is_stopped() -> bool:
            return await vmi_of(stage, "vm") == {}

        await stage.until("the VM is stopped", is_stopped)
        await asyncio.sleep(2)
        assert await held_by(stage, "vm") == [(node, 2)]
        assert await is_gated(stage, "thief")
        await stage.client.patch(stage.key(VIRTUAL_MACHINES, "vm"), {"spec": {"runStrategy": "Always"}})
        await stage.until("the VM runs again", lambda: runs(stage, "vm"))
        await runs_on(stage, "vm", node, 2)


async def test_binder_killed_between_claim_and_pin_goes_on_from_the_claim(stage: Stage) -> None:
    """R3, R10: SIGKILL at the worst moment, a second start from the same log; two VMs, two units."""
    nodes = [await add_node(stage, "a", 1), await add_node(stage, "b", 1)]
    log = stage.folder / "killed.log"
    with gpubinder_up(stage.kubeconfig, stage.redis, log, "tests.stories.crash_before_pin") as doomed:
        await start_vm(stage, "one")
        await asyncio.to_thread(doomed.wait_killed, 120.0)
    ((node, _),) = await held_by(stage, "one")
    assert await is_gated(stage, "one")
    await start_vm(stage, "two")
    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "again.log"):
        for name in ("one", "two"):
            await stage.until(f"{name} runs", lambda name=name: runs(stage, name))
        await runs_on(stage, "one", node)
        await runs_on(stage, "two", next(other for other in nodes if other != node))


async def test_binder_killed_at_each_vm_books_no_unit_twice(stage: Stage) -> None:
    """R3: SIGKILL as soon as a VM's claim is there, with a restart under way; then everybody runs."""
    for name in ("a", "b"):
        await add_node(stage, name, 2)
    names = ["one", "two", "three", "four"]
    for name in names:
        with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / f"{name}.log") as process:
            await start_vm(stage, name)
            await stage.until(f"{name} has a claim", lambda name=name: has_claim(stage, name))
            process.kill()
        await stage.client.delete(stage.key(VIRTUAL_MACHINE_INSTANCES, name))
    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "last.log"):
        for name in names:
            await stage.until(f"{name} runs", lambda name=name: runs(stage, name))
    held = [await held_by(stage, name) for name in names]
    assert sorted(node for ((node, _),) in held) == sorted(2 * [f"{stage.namespace}-{n}" for n in "ab"])


async def has_claim(stage: Stage, vm: str) -> bool:
    return any(claim["metadata"]["ownerReferences"][0]["name"] == vm for claim in await stage.claims())


async def order(stage: Stage, name: str, units: int) -> None:
    spec = {"className": stage.class_name, "units": units}
    body: Json = {"metadata": {"name": name, "namespace": stage.namespace}, "spec": spec}
    await stage.client.create(GPU_CLAIMS, body)


async def ask_to_start(stage: Stage, vm: str) -> None:
    """As virt-api does it for `virtctl start`."""
    change = {"status": {"stateChangeRequests": [{"action": "Start"}]}}
    await stage.client.patch(stage.key(VIRTUAL_MACHINES, vm), change, MERGE_STATUS)
