"""A quota of others that has no room for a VM's claim: one reason, and nobody else waits for it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from binder.effects.patience import COMPLAIN_AFTER, RETRY_LIMIT_S
from kube.errors import Conflict, Forbidden
from kube.port import Json, ObjectKey
from model.resources import EVENTS, GPU_CLAIMS, NAMESPACES, NODES, VIRTUAL_MACHINES, Resource
from projections.folds import refused_claims
from simulator.apiserver.server import ApiServer
from simulator.objects import gpu_node, gpu_vm
from tests.life.system import H100, Life, live

WORDS = (
    "exceeded quota: few, requested: count/gpuclaims.gpu.cozystack.io=1, used: 0, limited: 0",
    "exceeded quota: few, requested: count/gpuclaims.gpu.cozystack.io=1, used: 1, limited: 1",
)


@dataclass
class Quota:
    """A client whose creates of claims in one namespace are refused while its quota is full."""

    server: ApiServer
    namespace: str = "poor"
    is_full: bool = True
    times_s: list[float] = field(default_factory=list)
    """When it was asked in vain."""

    def __post_init__(self) -> None:
        server: Any = self.server
        self.get, self.list_page, self.watch = server.get, server.list_page, server.watch
        self.patch, self.replace, self.delete = server.patch, server.replace, server.delete

    async def create(self, resource: Resource, body: Json) -> Json:
        if resource == GPU_CLAIMS and body["metadata"]["namespace"] == self.namespace and self.is_full:
            self.times_s.append(asyncio.get_running_loop().time())
            raise Forbidden(body["metadata"]["name"], WORDS[len(self.times_s) % 2])
        return await self.server.create(resource, body)


async def a_refused_vm(life: Life) -> Quota:
    for name in ("poor", "rich"):
        await life.server.create(NAMESPACES, {"metadata": {"name": name}})
    await life.add_node("only", 1)
    await life.server.create(VIRTUAL_MACHINES, gpu_vm("poor", {H100: 1}, "poor"))
    return Quota(life.server)


def events(life: Life, vmi: str) -> list[tuple[str, str]]:
    found = [one for one in life.server.store.scan(EVENTS) if one["regarding"]["name"] == vmi]
    return [(one["reason"], one["note"]) for one in found]


def test_vm_whose_claim_a_quota_refuses_keeps_no_unit_from_others_and_starts_when_it_may() -> None:
    """R12, decision 0096: the last unit goes to who can have it; the other is told once, and tried on."""

    async def story(life: Life) -> None:
        quota: Any = await a_refused_vm(life)
        async with life.process(client=quota):
            await asyncio.sleep(1)
            await life.server.create(VIRTUAL_MACHINES, gpu_vm("rich", {H100: 1}, "rich"))
            await life.until(lambda: life.vm_status("rich") == "Running", 15)
            await asyncio.sleep(120)
            assert len(quota.times_s) < COMPLAIN_AFTER + 8
            ((reason, note),) = events(life, "poor")
            assert reason == "WriteRefused"
            assert "cannot be created" in note
            assert "exceeded quota: few" in note
            assert "poor" not in life.claims()
            (waiting,) = life.told.passes[-1].result.waiting
            assert (waiting.set, str(waiting.reason)) == ("poor/poor", "WriteRefused")
            assert life.told.passes[-1].failing.keys() == {"poor/poor"}
            await life.add_node("more", 1)
            quota.is_full = False
            await life.until(lambda: life.vm_status("poor") == "Running", RETRY_LIMIT_S + 15)
            assert life.node_of("poor") == "more"
            assert await remembered(life) == set()

    live(story)


def test_successor_knows_what_was_refused_and_says_nothing_twice() -> None:
    """R14's way with memory: it is as old as the last pass, also after a crash."""

    async def story(life: Life) -> None:
        quota: Any = await a_refused_vm(life)
        async with life.process(client=quota):
            await asyncio.sleep(30)
        assert len(await remembered(life)) == 1
        async with life.process("two", client=quota):
            await life.server.create(VIRTUAL_MACHINES, gpu_vm("rich", {H100: 1}, "rich"))
            await life.until(lambda: life.vm_status("rich") == "Running", 45)
            await asyncio.sleep(60)
            assert len(events(life, "poor")) == 1
            halted = {"spec": {"runStrategy": "Halted"}}
            await life.server.patch(ObjectKey(VIRTUAL_MACHINES, "poor", "poor"), halted)
            await asyncio.sleep(60)
            assert await remembered(life) == set()

    live(story)


def test_what_a_set_is_to_be_told_while_it_must_wait_is_told_later() -> None:
    """R12: a pass tells each reason once; the loop must not lose it because writes of the set failed."""

    async def story(life: Life) -> None:
        quota: Any = await a_refused_vm(life)
        quota.namespace = "nobody"

        async def changed(resource: Resource, body: Json) -> Json:
            if resource == GPU_CLAIMS and asyncio.get_running_loop().time() < 20:
                raise Conflict(body["metadata"]["name"], "changed")
            return await life.server.create(resource, body)

        quota.create = changed
        async with life.process(client=quota):
            await asyncio.sleep(8)  # it waits some seconds between its tries now
            await life.server.create(NODES, gpu_node("other", {H100: 1}))
            await life.server.delete(ObjectKey(NODES, "only"))
            await life.server.delete(ObjectKey(NODES, "other"))
            await asyncio.sleep(60)
            assert [reason for reason, _ in events(life, "poor")] == ["TooLarge"]

    live(story)


async def remembered(life: Life) -> set[str]:
    table = await life.log.recall(refused_claims.NAME)
    return {name for name, body in table.items() if body and not name.startswith("@")}
