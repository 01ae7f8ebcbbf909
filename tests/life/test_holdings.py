"""What classes, budgets and the ledger say of a living cluster; and that they then say nothing more."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from admission.ledger import POSITION, read_ledger
from binder.consumer import SNAPSHOT_S
from kube.port import MERGE, PLAIN_DELETE, DeleteOptions, Json, ObjectKey, PatchOptions
from model.resources import GPU_BUDGETS, GPU_CLASSES, LEASES, NAMESPACES, Resource
from projections.folds import ledger
from simulator.apiserver.server import ApiServer
from tests.life.system import Life, live

CLASS = ObjectKey(GPU_CLASSES, "h100")
TEAM = ObjectKey(GPU_BUDGETS, "team")


class Counting:
    """A client that remembers what our process writes, the Lease aside."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self.writes: list[str] = []
        self.get = server.get
        self.list_page = server.list_page
        self.watch = server.watch

    async def create(self, resource: Resource, body: Json) -> Json:
        self._note("create", resource)
        return await self._server.create(resource, body)

    async def replace(self, key: ObjectKey, body: Json, subresource: str = "") -> Json:
        self._note("replace", key.resource)
        return await self._server.replace(key, body, subresource)

    async def patch(
        self,
        key: ObjectKey,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        options: PatchOptions = MERGE,
    ) -> Json:
        self._note("patch", key.resource)
        return await self._server.patch(key, patch, options)

    async def delete(self, key: ObjectKey, options: DeleteOptions = PLAIN_DELETE) -> None:
        self._note("delete", key.resource)
        await self._server.delete(key, options)

    def _note(self, verb: str, resource: Resource) -> None:
        if resource != LEASES:
            self.writes.append(f"{verb} {resource.kind}")


async def add_budget(life: Life, name: str, parent: str = "", **classes: int) -> None:
    selector = {"matchLabels": {"kubernetes.io/metadata.name": "default"}}
    spec = {"parent": parent, "namespaceSelector": selector, "classes": classes}
    await life.server.create(GPU_BUDGETS, {"metadata": {"name": name}, "spec": spec})


async def status_of(life: Life, key: ObjectKey) -> Json:
    return dict((await life.server.get(key)).get("status") or {})


async def a_running_vm(life: Life) -> None:
    await life.server.patch(
        ObjectKey(NAMESPACES, "default"),
        {"metadata": {"labels": {"kubernetes.io/metadata.name": "default"}}},
    )
    await add_budget(life, "root", h100=10)
    await add_budget(life, "team", parent="root", h100=3)
    await life.add_node("gpu-1", 4)
    await life.start_vm("a", 2)
    await life.until(lambda: life.vm_status("a") == "Running")


def test_statuses_follow_within_seconds_and_then_nothing_is_written() -> None:
    """Steady state: 0 writes in five quiet minutes, and no pass that nobody needs."""

    async def story(life: Life) -> None:
        client: Any = Counting(life.server)
        tasks = life.start("one", client)
        await a_running_vm(life)
        await asyncio.sleep(30)
        status = await status_of(life, CLASS)
        numbers = {name: status[name] for name in ("nodes", "allocatable", "bound", "raw", "pending", "free")}
        assert numbers == {"nodes": 1, "allocatable": 4, "bound": 2, "raw": 0, "pending": 0, "free": 2}
        assert (await status_of(life, TEAM))["used"]["classes"] == {"h100": 2}
        before, passes = len(client.writes), len(life.told.passes)
        await asyncio.sleep(300)
        assert client.writes[before:] == []
        assert len(life.told.passes) == passes
        for task in tasks:
            task.cancel()

    live(story)


def test_a_status_write_wakes_one_pass_that_decides_nothing() -> None:
    async def story(life: Life) -> None:
        async with life.process():
            await a_running_vm(life)
            await asyncio.sleep(60)
            passes = len(life.told.passes)
            await life.server.patch(TEAM, {"spec": {"classes": {"h100": 2}}})
            await asyncio.sleep(60)
            decided = [[type(d).__name__ for d in one.result.decisions] for one in life.told.passes[passes:]]
            assert decided == [["WriteBudgetStatus"], []]

    live(story)


def test_ledger_stands_where_the_last_pass_stood() -> None:
    """R1: admission trusts it only while nothing has happened after its place."""

    async def story(life: Life) -> None:
        async with life.process():
            await a_running_vm(life)
            await asyncio.sleep(30)
            table = await life.log.recall(ledger.NAME)
            read = read_ledger(table)
            assert (read.classes["h100"].bound, read.classes["h100"].largest) == (2, 4)
            assert [name for name, _ in read.over("default")] == ["root", "team"]
            assert read.budgets["team"].class_units == {"h100": 2}
            newer = await life.log.read_range(table[POSITION].decode(), 1000)
            assert {str(one.entry.type) for one in newer} <= {"HEARTBEAT"}  # type: ignore[union-attr]
            await life.server.patch(TEAM, {"metadata": {"annotations": {"gpu.cozystack.io/claims": "x"}}})
            await asyncio.sleep(30)
            moved = await life.log.recall(ledger.NAME)
            assert moved[POSITION] != table[POSITION], "a pass that learns nothing of it has counted, too"
            assert moved | {POSITION: b""} == table | {POSITION: b""}

    live(story)


def test_budgets_in_a_circle_say_so_and_say_when_it_is_over() -> None:
    async def story(life: Life) -> None:
        async with life.process():
            await a_running_vm(life)
            await life.server.patch(ObjectKey(GPU_BUDGETS, "root"), {"spec": {"parent": "team"}})
            await asyncio.sleep(30)
            (valid,) = (await status_of(life, TEAM))["conditions"]
            assert (valid["type"], valid["status"], valid["reason"]) == ("Valid", "False", "Cycle")
            await life.server.patch(ObjectKey(GPU_BUDGETS, "root"), {"spec": {"parent": ""}})
            await asyncio.sleep(30)
            (valid,) = (await status_of(life, TEAM))["conditions"]
            assert (valid["status"], valid["observedGeneration"]) == ("True", 1)

    live(story)


def test_books_are_counted_anew_when_a_snapshot_is_due_and_agree() -> None:
    async def story(life: Life) -> None:
        async with life.process():
            await a_running_vm(life)
            await asyncio.sleep(SNAPSHOT_S)
            await life.start_vm("b", 1)
            await life.until(lambda: life.vm_status("b") == "Running")
        counted = [one.drift_units for one in life.told.passes if one.drift_units is not None]
        assert counted == [0]

    live(story)


def test_successor_writes_nothing_that_stands_already() -> None:
    """Its ledger, its statuses and its memory are those of the one before."""

    async def story(life: Life) -> None:
        async with life.process():
            await a_running_vm(life)
            await asyncio.sleep(30)
        client: Any = Counting(life.server)
        tasks = life.start("two", client)
        before = await life.log.recall(ledger.NAME)
        await asyncio.sleep(60)
        assert client.writes == []
        assert await life.log.recall(ledger.NAME) | {POSITION: b""} == before | {POSITION: b""}
        for task in tasks:
            task.cancel()

    live(story)
