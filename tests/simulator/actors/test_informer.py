"""The cache of an actor: as the server has it, through compaction, outages and own writes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from kube.errors import Unreachable
from kube.port import ALL, Json, ObjectKey, Page, Selection, WatchEvent
from model import resources as r
from model.resources import Resource
from simulator.actors.informer import GONE_LIMIT, RETRY_LIMIT_S, Informer
from simulator.apiserver.server import ApiServer
from simulator.cluster import api_server
from simulator.virtual_time import Clock, run_virtual


def pod(name: str) -> Json:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "none"}]},
    }


def key(name: str) -> ObjectKey:
    return ObjectKey(r.PODS, name, "default")


def names(cache: Informer) -> list[str]:
    return [obj["metadata"]["name"] for obj in cache.of(r.PODS)]


@asynccontextmanager
async def running(cache: Informer) -> AsyncIterator[None]:
    task = asyncio.create_task(cache.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@dataclass(slots=True)
class ServerAway(ApiServer):
    """An API server whose lists fail while it is away, and whose streams end at once if they are short."""

    is_away: bool = False
    are_streams_short: bool = False
    asked_at_s: list[float] = field(default_factory=list)

    async def list_page(
        self, resource: Resource, selection: Selection = ALL, *, limit: int = 500, continue_token: str = ""
    ) -> Page:
        self.asked_at_s.append(asyncio.get_running_loop().time())
        if self.is_away:
            raise Unreachable(resource.full_name, "connection refused")
        return await ApiServer.list_page(
            self, resource, selection, limit=limit, continue_token=continue_token
        )

    async def watch(
        self, resource: Resource, selection: Selection = ALL, *, resource_version: str, timeout_s: int = 300
    ) -> AsyncGenerator[WatchEvent, None]:
        self.asked_at_s.append(asyncio.get_running_loop().time())
        if self.are_streams_short:
            return
        async for event in ApiServer.watch(
            self, resource, selection, resource_version=resource_version, timeout_s=timeout_s
        ):
            yield event


def test_cache_follows_what_is_created_changed_and_deleted() -> None:
    async def main(clock: Clock) -> list[object]:
        server = await api_server(clock)
        await server.create(r.PODS, pod("before"))
        cache, seen = Informer(server, (r.PODS,)), []
        async with running(cache):
            await asyncio.sleep(1)
            seen.append(names(cache))
            await server.create(r.PODS, pod("after"))
            await server.patch(key("before"), {"metadata": {"labels": {"is": "changed"}}})
            await asyncio.sleep(1)
            known = cache.get(r.PODS, "before", "default")
            seen.append((names(cache), known and known["metadata"]["labels"]))
            await server.delete(key("before"))
            await asyncio.sleep(1)
            seen.append(names(cache))
        return seen

    assert run_virtual(main) == [["before"], (["after", "before"], {"is": "changed"}), ["after"]]


def test_deletion_missed_in_a_compacted_history_is_found_by_the_new_list() -> None:
    """054, 055: 410 means list again."""

    async def main(clock: Clock) -> list[str]:
        server = await api_server(clock)
        for name in ("stays", "goes"):
            await server.create(r.PODS, pod(name))
        cache = Informer(server, (r.PODS,))
        async with running(cache):
            await asyncio.sleep(1)
            await server.delete(key("goes"))
            await server.create(r.PODS, pod("comes"))
            server.store.compact()
            await asyncio.sleep(1)
        return names(cache)

    assert run_virtual(main) == ["comes", "stays"]


def test_server_that_is_away_is_asked_ever_less_often_and_found_again() -> None:
    async def main(clock: Clock) -> tuple[list[float], list[str]]:
        server = ServerAway(clock, is_away=True)
        cache = Informer(server, (r.PODS,))
        async with running(cache):
            await asyncio.sleep(60)
            asked_at_s = list(server.asked_at_s)
            server.is_away = False
            await server.create(r.PODS, pod("new"))
            await asyncio.sleep(RETRY_LIMIT_S)
            return asked_at_s, names(cache)

    asked_at_s, found = run_virtual(main)
    assert asked_at_s == [0, 0.5, 1.5, 3.5, 7.5, 15.5, 23.5, 31.5, 39.5, 47.5, 55.5]
    assert found == ["new"]


def test_server_that_ends_every_stream_at_once_is_not_asked_without_pause() -> None:
    async def main(clock: Clock) -> int:
        server = ServerAway(clock, are_streams_short=True)
        async with running(Informer(server, (r.PODS,))):
            await asyncio.sleep(60)
        return len(server.asked_at_s)

    assert run_virtual(main) <= 122


@dataclass(slots=True)
class SlowLists(ApiServer):
    """An API server whose answer to a list is overtaken by a write."""

    write: Callable[[], Awaitable[None]] | None = None

    async def list_page(
        self, resource: Resource, selection: Selection = ALL, *, limit: int = 500, continue_token: str = ""
    ) -> Page:
        page = await ApiServer.list_page(
            self, resource, selection, limit=limit, continue_token=continue_token
        )
        if self.write is not None:
            await self.write()
        return page


def test_own_write_is_known_at_once_and_survives_a_list_from_before_it() -> None:
    async def main(clock: Clock) -> list[list[str]]:
        server = SlowLists(clock)
        cache = Informer(server, (r.PODS,))
        seen = []

        async def write() -> None:
            server.write = None
            cache.put(r.PODS, await server.create(r.PODS, pod("own")))
            seen.append(names(cache))

        server.write = write
        async with running(cache):
            await asyncio.sleep(1)
            seen.append(names(cache))
        return seen

    assert run_virtual(main) == [["own"], ["own"]]


def test_answer_to_a_write_does_not_bring_back_what_has_gone() -> None:
    async def main(clock: Clock) -> list[str]:
        server = await api_server(clock)
        cache = Informer(server, (r.PODS,))
        async with running(cache):
            late = await server.create(r.PODS, pod("short-lived"))
            await asyncio.sleep(1)
            await server.delete(key("short-lived"))
            await asyncio.sleep(1)
            cache.put(r.PODS, late)
        return names(cache)

    assert run_virtual(main) == []


def test_memory_of_what_has_gone_is_bounded() -> None:
    async def main(clock: Clock) -> int:
        server = await api_server(clock)
        cache = Informer(server, (r.PODS,))
        async with running(cache):
            await asyncio.sleep(1)
            for number in range(GONE_LIMIT + 50):
                await server.create(r.PODS, pod(f"p{number}"))
                await server.delete(key(f"p{number}"))
                if number % 1_000 == 0:
                    await asyncio.sleep(1)
            await asyncio.sleep(1)
        return len(cache._gone)

    assert run_virtual(main) == GONE_LIMIT


def test_object_that_is_no_object_is_not_taken_in() -> None:
    async def main(clock: Clock) -> list[Json]:
        server = await api_server(clock)
        broken = {"metadata": {"name": "broken", "namespace": "default"}, "spec": [], "status": "text"}
        await server.create(r.VIRTUAL_MACHINE_INSTANCES, broken)
        cache = Informer(server, (r.VIRTUAL_MACHINE_INSTANCES,))
        async with running(cache):
            await asyncio.sleep(1)
        return cache.of(r.VIRTUAL_MACHINE_INSTANCES)

    assert run_virtual(main) == []
