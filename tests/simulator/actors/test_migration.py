"""Live migrations as the simulator plays them."""

from __future__ import annotations

import asyncio

from kube.port import ObjectKey
from model.resources import NODES, PODS, VIRTUAL_MACHINE_INSTANCES
from simulator.actors.kubelet import REFUSE
from simulator.actors.migration import JOB_LABEL
from simulator.apiserver.served import MIGRATIONS
from tests.life.system import Life, live


async def migrate(life: Life) -> None:
    meta = {"name": "m", "namespace": "default"}
    await life.server.create(MIGRATIONS, {"metadata": meta, "spec": {"vmiName": "vm"}})


def phase(life: Life) -> str:
    return str(next(life.server.store.scan(MIGRATIONS)).get("status", {}).get("phase"))


def test_vm_that_migrates_is_followed_by_its_claims_and_its_source_ends() -> None:
    """R19, case 050: the target counts beside the claims until the VMI has arrived."""

    async def story(life: Life) -> None:
        await life.add_node("gpu-1", 1)
        await life.add_node("gpu-2", 1)
        async with life.process():
            await life.start_vm("vm")
            await life.until(lambda: life.vm_status("vm") == "Running")
            home = life.node_of("vm")
            await migrate(life)
            await life.until(lambda: phase(life) == "Succeeded")
            await life.until(lambda: life.node_of("vm") not in ("", home))
            vmi = next(life.server.store.scan(VIRTUAL_MACHINE_INSTANCES))
            assert vmi["status"]["nodeName"] == life.node_of("vm")
            ends = sorted(pod["status"]["phase"] for pod in life.server.store.scan(PODS))
            assert ends == ["Running", "Succeeded"]

    live(story)


def test_target_that_is_refused_ends_the_migration_alone() -> None:
    async def story(life: Life) -> None:
        await life.add_node("gpu-1", 1)
        async with life.process():
            await life.start_vm("vm")
            await life.until(lambda: life.vm_status("vm") == "Running")
            await life.add_node("gpu-2", 1)
            refuse = {"metadata": {"annotations": {REFUSE: "UnexpectedAdmissionError"}}}
            await life.server.patch(ObjectKey(NODES, "gpu-2"), refuse)
            await migrate(life)
            await life.until(lambda: phase(life) == "Failed")
            await asyncio.sleep(60)
            assert (life.node_of("vm"), life.vm_status("vm")) == ("gpu-1", "Running")
            targets = [p for p in life.server.store.scan(PODS) if JOB_LABEL in p["metadata"]["labels"]]
            assert targets == []

    live(story)
