"""A connection that drops at any one request of a log's whole life: nothing lost, nothing twice."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

import pytest

from eventlog.adapters.redis_streams import RedisLog, connect
from eventlog.entries import Entry, EntryType, Stored, StoredEntry, id_order
from eventlog.errors import EntriesMissed, LogUnavailable
from eventlog.port import START, Retention, Snapshot
from tests.eventlog.conftest import Server, now_ms
from tests.eventlog.cutting import cutting

T = TypeVar("T")
ATTEMPTS = 3
_clusters = itertools.count()


def change(kind: str, number: int) -> Entry:
    return Entry(EntryType.ADDED, kind, "ns", f"{kind}-{number}", f"{kind}-{number}", "5", "w", 1, b"{}")


BATCHES = (
    [change("Pod", 1), change("Node", 1), change("Pod", 2)],
    [change("Pod", 2), change("Pod", 3), change("Node", 2)],
)
TOLD = ["Pod-1", "Node-1", "Pod-2", "Pod-3", "Node-2"]


async def persist(step: Callable[[], Awaitable[T]]) -> T:
    """As every loop does."""
    for _ in range(ATTEMPTS):
        try:
            return await step()
        except LogUnavailable:
            continue
    return await step()


@dataclass
class Reader:
    """Folds as the binder does."""

    log: RedisLog
    identity: str = ""
    position: str = START
    folded: list[str] = field(default_factory=list)
    to_acknowledge: list[str] = field(default_factory=list)

    async def begin(self) -> None:
        self.identity = await self.log.identity()
        self.to_acknowledge += await self.log.take_over()
        self.fold(await self.log.read_range(self.position, 100))

    async def read(self) -> None:
        try:
            batch = await self.log.read_new(10, 0, self.identity)
        except EntriesMissed:
            await self.begin()
            return
        self.to_acknowledge += [one.id for one in batch]
        self.fold(batch)

    def fold(self, batch: list[Stored]) -> None:
        for one in batch:
            if isinstance(one, StoredEntry) and id_order(one.id) > id_order(self.position):
                self.position = one.id
                self.folded.append(one.entry.name)


async def live(log: RedisLog) -> None:
    """A watcher and a binder, with all that they ask of the log."""
    reader = Reader(log)
    for epoch, batch in enumerate(BATCHES):
        identity = await persist(log.identity)
        await persist(lambda batch=batch, identity=identity: log.append_once(batch, identity))
        if epoch == 0:
            await persist(reader.begin)
        await persist(reader.read)
        await persist(reader.read)
        await persist(lambda: log.commit(1, b"intent", {"rejections": {"position": b"5-0"}}))
        await persist(lambda: log.conclude(1, b"outcome", reader.to_acknowledge))
        await persist(lambda: log.save_snapshot(1, Snapshot(reader.position, b"state")))
    assert reader.folded == TOLD
    assert set(await persist(lambda: log.seen("Node"))) == {"Node-1", "Node-2"}
    assert await persist(log.load_snapshot) == Snapshot(reader.position, b"state")
    info = await persist(log.info)
    assert (info.entries, info.pending, info.last_id) == (len(TOLD), 0, reader.position)
    await persist(lambda: log.trim(Retention(0, 1), now_ms() + 60_000))
    assert (await persist(log.info)).entries == 1
    assert not await persist(lambda: log.has_lost(reader.position))


@pytest.mark.parametrize("loses_answer", [False, True], ids=["request", "answer"])
async def test_connection_that_drops_at_any_request_costs_nothing(
    server: Server, *, loses_answer: bool
) -> None:
    for cut_at in itertools.count():
        async with cutting(server.url) as proxy:
            proxy.passes, proxy.loses_answer_of_it = cut_at, loses_answer
            log = await persist(lambda: connect(proxy.url, f"cut-{next(_clusters)}", "one", now_ms))
            await live(log)
            await log.close()
            if proxy.passes >= 0:
                break
    assert cut_at > 20
