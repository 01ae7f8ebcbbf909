"""Seeded trouble between watchers and API server: at the end the folded log is the cluster, each change once.

Every call may fail, streams break off, history is compacted, replicas pause for minutes; a failing
seed is the bug report.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, Sequence

import pytest

from binder.core.state import ClusterState, fold_entry
from eventlog.adapters.memory import MemoryLog
from eventlog.entries import CHANGES, Entry, StoredEntry
from eventlog.errors import LogUnavailable
from ingest.backoff import Backoff
from ingest.watcher import STREAM_S, KindWatcher
from kube.errors import Gone, ServerFault, TooManyRequests, Unauthorized, Unreachable
from kube.port import ALL, ObjectKey, Page, Selection, WatchEvent
from model.kinds import BY_KIND
from model.lean import lean_object
from model.resources import NODES, Resource
from simulator.apiserver.server import ApiServer
from simulator.objects import gpu_node
from simulator.virtual_time import Clock, run_virtual
from tests.ingest.test_watcher import Seen

REPLICAS = 3
TURNS = 120
FAULTS = (
    Unreachable("nodes", "connection reset"),
    ServerFault("nodes", "etcd leader changed", 500),
    TooManyRequests("nodes", "slow down", 429),
    Unauthorized("nodes", "token expired", 401),
    Gone("nodes", "too old", 410, "Expired"),
)


class Troubled:
    """One replica's way to the server: refuses, breaks off, and stalls, as its seed says."""

    def __init__(self, server: ApiServer, rng: random.Random) -> None:
        self._server = server
        self._rng = rng
        self.is_calm = False
        self.get = server.get

    async def list_page(
        self, resource: Resource, selection: Selection = ALL, *, limit: int = 500, continue_token: str = ""
    ) -> Page:
        await self._trouble(0.3)
        return await self._server.list_page(resource, selection, limit=3, continue_token=continue_token)

    async def watch(
        self, resource: Resource, selection: Selection = ALL, *, resource_version: str, timeout_s: int = 300
    ) -> AsyncGenerator[WatchEvent, None]:
        await self._trouble(0.3)
        async for event in self._server.watch(
            resource, selection, resource_version=resource_version, timeout_s=timeout_s
        ):
            await self._trouble(0.05)
            yield event

    async def _trouble(self, chance: float) -> None:
        if self.is_calm:
            return
        if self._rng.random() < chance / 4:
            await asyncio.sleep(self._rng.uniform(1, 200))  # paused, with what it has just heard
        if self._rng.random() < chance:
            raise self._rng.choice(FAULTS)


@pytest.mark.parametrize("streams_lists", [True, False], ids=["streamed lists", "paged lists"])
@pytest.mark.parametrize("seed", range(25))
def test_folded_log_is_the_cluster_after_any_trouble(seed: int, streams_lists: bool) -> None:
    async def main(clock: Clock) -> None:
        rng = random.Random(seed)
        server = ApiServer(clock, seed, streams_lists=streams_lists)
        log = MemoryLog(clock)
        ways = [Troubled(server, random.Random(f"{seed} {n}")) for n in range(REPLICAS)]
        watchers = [
            KindWatcher(
                way, log, BY_KIND["Node"], f"w{n}", clock, Seen(), Backoff(random.Random(f"{seed} {n} wait"))
            )
            for n, way in enumerate(ways)
        ]
        tasks = [asyncio.create_task(watcher.run()) for watcher in watchers]
        await churn(server, log, rng)
        for way in ways:
            way.is_calm = True
        await asyncio.sleep(600)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await compare(server, log)

    run_virtual(main)


async def churn(server: ApiServer, log: MemoryLog, rng: random.Random) -> None:
    """Nodes come, change and go; etcd forgets; once in a while Redis is emptied."""
    names = [f"n{number}" for number in range(8)]
    for _ in range(TURNS):
        await asyncio.sleep(rng.uniform(0, 4))
        name = rng.choice(names)
        key = ObjectKey(NODES, name)
        if name not in {node["metadata"]["name"] for node in server.store.scan(NODES)}:
            await server.create(NODES, gpu_node(name, {}))
        elif rng.random() < 0.6:
            await server.patch(key, {"metadata": {"labels": {"turn": str(rng.random())}}})
        else:
            await server.delete(key)
        if rng.random() < 0.05:
            server.store.compact()
            server.expire_pages()
        if rng.random() < 0.01:
            log.flush()


async def compare(server: ApiServer, log: MemoryLog) -> None:
    state, counts = ClusterState(), Counter[tuple[str, str]]()
    for stored in await log.read_range("0-0", 100_000):
        assert isinstance(stored, StoredEntry)
        fold_entry(state, stored.entry)
        if stored.entry.type in CHANGES:
            counts[stored.entry.uid, stored.entry.resource_version] += 1
    watched = BY_KIND["Node"]
    listed = {
        ("", node["metadata"]["name"]): lean_object(watched.model, watched.prune, node)
        for node in server.store.scan(NODES)
    }
    assert dict(state.shelves["Node"].bodies()) == listed
    assert set(counts.values()) <= {1}


class Full(MemoryLog):
    """Takes nothing new while it is full, and still answers for what it holds."""

    is_full = False

    async def append_once(self, entries: Sequence[Entry], identity: str) -> list[bool]:
        held = await self.seen("Node")
        if self.is_full and any(entry.uid not in held for entry in entries):
            raise LogUnavailable("it is full")
        return await super().append_once(entries, identity)


def test_full_log_is_tried_less_and_less_often_though_it_answers_for_what_it_holds() -> None:
    """R32: no hot loop: what is told again after each restart is no success."""

    async def main(clock: Clock) -> None:
        server, log, seen = ApiServer(clock), Full(clock), Seen()
        task = asyncio.create_task(KindWatcher(server, log, BY_KIND["Node"], "w", clock, seen).run())
        await asyncio.sleep(
            STREAM_S + 10
        )  # the list and its stream have ended; the next stream has "a" in it
        await server.create(NODES, gpu_node("a", {}))
        await asyncio.sleep(1)
        log.is_full = True
        await server.create(NODES, gpu_node("b", {}))
        await asyncio.sleep(60)
        assert len(seen.restarts) < 50
        log.is_full = False
        await asyncio.sleep(4)
        await compare(server, log)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run_virtual(main)
