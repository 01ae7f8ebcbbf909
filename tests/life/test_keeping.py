"""Whole lives in virtual time: nodes fail and refuse, VMs restart, what was promised is kept or moved."""

from __future__ import annotations

import asyncio

from kube.port import MERGE_STATUS, ObjectKey
from model.resources import GPU_CLAIMS, NODES, PODS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES
from simulator.actors.kubelet import REFUSE
from tests.life.system import H100, Life, live, stop

THREE = ("gpu-1", "gpu-2", "gpu-3")


async def nodes(life: Life, *names: str, units: int = 1) -> None:
    for name in names:
        await life.add_node(name, units)


async def run_vm(life: Life, name: str) -> str:
    """Start a VM and wait until it runs; its node."""
    await life.start_vm(name)
    await life.until(lambda: life.vm_status(name) == "Running")
    return life.node_of(name)


async def patch_node(life: Life, name: str, change: dict[str, object]) -> None:
    await life.server.patch(ObjectKey(NODES, name), change)


def test_vm_of_a_tainted_node_is_restarted_on_another_one() -> None:
    """R20, R21: a NoExecute taint counts at once; the claims follow when the VMI is gone."""

    async def story(life: Life) -> None:
        await nodes(life, *THREE)
        async with life.process():
            home = await run_vm(life, "vm")
            taint = {"key": "broken", "value": "yes", "effect": "NoExecute"}
            await patch_node(life, home, {"spec": {"taints": [taint]}})
            await life.until(lambda: life.node_of("vm") not in ("", home))
            await life.until(lambda: life.vm_status("vm") == "Running")
            life.check()

    live(story)


def test_node_that_is_away_for_a_minute_loses_nothing() -> None:
    """R20: `keep_grace`; allocatable goes to zero and comes back, nothing is moved (case 006)."""

    async def story(life: Life) -> None:
        await nodes(life, *THREE)
        async with life.process():
            home = await run_vm(life, "vm")
            before = life.claims()["vm"]["metadata"]["uid"]
            key = ObjectKey(NODES, home)
            await life.server.patch(key, {"status": {"allocatable": {H100: "0"}}}, MERGE_STATUS)
            await asyncio.sleep(60)
            await life.server.patch(key, {"status": {"allocatable": {H100: "1"}}}, MERGE_STATUS)
            await asyncio.sleep(400)
            assert life.node_of("vm") == home
            assert life.claims()["vm"]["metadata"]["uid"] == before

    live(story)


def test_restarting_vm_comes_back_to_its_node_although_another_has_room() -> None:
    """R39: its next launcher is there before the claims of its last run have gone."""

    async def story(life: Life) -> None:
        await life.add_node("gpu-1", 1)
        await life.add_node("gpu-2", 4)
        async with life.process():
            assert await run_vm(life, "vm") == "gpu-1"
            for _ in range(3):
                await asyncio.sleep(5)
                await life.server.delete(ObjectKey(VIRTUAL_MACHINE_INSTANCES, "vm", "default"))
                await asyncio.sleep(5)
                assert (life.vm_status("vm"), life.node_of("vm")) == ("Running", "gpu-1")

    live(story)


def test_restarting_vm_keeps_its_gpu_from_one_that_waits() -> None:
    """R39, case 067: a restart does not lose the GPU, a stop on purpose does."""

    async def story(life: Life) -> None:
        await nodes(life, "gpu-1")
        async with life.process():
            await run_vm(life, "first")
            await life.start_vm("second")
            await asyncio.sleep(5)
            for _ in range(3):
                await life.server.delete(ObjectKey(VIRTUAL_MACHINE_INSTANCES, "first", "default"))
                await asyncio.sleep(1)
                await life.until(lambda: life.vm_status("first") == "Running")
                assert life.node_of("second") == ""
            await life.halt_vm("first")
            await life.until(lambda: life.vm_status("second") == "Running")

    live(story)


def test_memory_of_a_restart_survives_the_binder() -> None:
    """R14, R39: the binder dies while the VMI is gone; the next one still holds the units for its VM."""

    async def story(life: Life) -> None:
        await nodes(life, "gpu-1")
        tasks = life.start("one")
        await run_vm(life, "first")
        await life.start_vm("second")
        await asyncio.sleep(5)
        await life.server.delete(ObjectKey(VIRTUAL_MACHINE_INSTANCES, "first", "default"))
        await life.until(lambda: "first" not in life.claims() or life.node_of("first") == "")
        await stop(tasks)
        async with life.process("two"):
            await life.until(lambda: life.vm_status("first") == "Running")
            assert life.node_of("second") == ""

    live(story)


def test_refused_launcher_goes_elsewhere_and_the_memory_ends() -> None:
    """R13, R14, case 001: the node that refused is skipped for this VM, for ten minutes."""

    async def story(life: Life) -> None:
        await nodes(life, "gpu-1")
        await life.add_node("gpu-2", 2)
        await patch_node(life, "gpu-1", {"metadata": {"annotations": {REFUSE: "UnexpectedAdmissionError"}}})
        async with life.process():
            await life.start_vm("vm")
            await life.until(lambda: life.vm_status("vm") == "Running", limit_s=900)
            assert life.node_of("vm") == "gpu-2"

    live(story)


def test_order_of_a_node_that_is_gone_moves_or_is_lost_and_found() -> None:
    """R20, R22, R23: an idle order follows room; without any it is Lost, and rebound when there is some."""

    async def story(life: Life) -> None:
        await nodes(life, "gpu-1", "gpu-2", "gpu-3", "gpu-4")
        order = {
            "metadata": {"name": "order", "namespace": "default"},
            "spec": {"className": "h100", "units": 1},
        }
        async with life.process():
            await life.server.create(GPU_CLAIMS, order)
            await life.until(lambda: life.node_of("order") != "")
            others = [name for name in (*THREE, "gpu-4") if name != life.node_of("order")]
            for number, _ in enumerate(others):
                await run_vm(life, f"vm-{number}")
            await life.server.delete(ObjectKey(NODES, life.node_of("order")))
            await life.until(lambda: life.claims()["order"]["status"]["phase"] == "Lost")
            await life.halt_vm("vm-0")
            await life.until(lambda: life.claims()["order"]["status"]["phase"] == "Bound")

    live(story)


def test_claim_of_a_running_vm_stays_until_its_launcher_has_ended() -> None:
    """R30: an order that is deleted while a VM runs with it goes when the VM stops."""

    async def story(life: Life) -> None:
        await nodes(life, "gpu-1")
        async with life.process():
            await run_vm(life, "vm")
            name = life.claims()["vm"]["metadata"]["name"]
            await life.server.delete(ObjectKey(GPU_CLAIMS, name, "default"))
            await asyncio.sleep(30)
            assert life.node_of("vm") == "gpu-1"
            await life.server.delete(ObjectKey(VIRTUAL_MACHINES, "vm", "default"))
            await life.until(lambda: not list(life.server.store.scan(PODS)) and not life.claims())

    live(story)
