"""A long life of the log: what its server and a watcher's process hold while changes go on and on."""

from __future__ import annotations

import asyncio
import os
import resource
from pathlib import Path

from bench.figures import Figure
from eventlog.adapters.embedded import EmbeddedServer
from eventlog.adapters.redis_streams import RedisLog, connect
from eventlog.entries import Entry, EntryType
from eventlog.port import START, TOMBSTONE_MS, Retention, Snapshot

OBJECTS = 5_000
ROUND = 10_000
"""Changes between two snapshots."""
ROUNDS = 30
KEEP = Retention(max_entries=50_000)
"""A log is full after five rounds, and has to stay as it is from then on."""
FULL = ROUNDS // 3


class Life:
    """Objects by turns change, go, and come again under new uids; a round takes half a tombstone's life."""

    def __init__(self) -> None:
        self.now_ms = 0
        self._version = 0
        self._uids = list(range(OBJECTS))

    def round(self) -> list[Entry]:
        """The changes of one round."""
        self.now_ms += TOMBSTONE_MS // 2
        return [entry for number in range(ROUND // 2) for entry in self._pair(number % OBJECTS)]

    def _pair(self, slot: int) -> list[Entry]:
        """One in ten objects goes and comes again, the others change twice."""
        if slot % 10:
            return [self._entry(EntryType.MODIFIED, slot), self._entry(EntryType.MODIFIED, slot)]
        gone = self._entry(EntryType.DELETED, slot)
        self._uids[slot] += OBJECTS
        return [gone, self._entry(EntryType.ADDED, slot)]

    def _entry(self, change: EntryType, slot: int) -> Entry:
        self._version += 1
        body = b"" if change is EntryType.DELETED else b'{"v":%d,"x":"%s"}' % (self._version, b"y" * 400)
        uid = f"u{self._uids[slot]}"
        return Entry(change, "Pod", "ns", f"pod-{slot}", uid, str(self._version), "w", 1, body)


def figures() -> list[Figure]:
    """Memory when the log is first full, and at the end."""
    server = EmbeddedServer()
    server.start()
    try:
        return asyncio.run(_measure(server))
    finally:
        server.stop()


async def _measure(server: EmbeddedServer) -> list[Figure]:
    life = Life()
    log = await connect(server.url, "bench", "long", lambda: life.now_ms)
    identity, position = await log.identity(), START
    held: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        await log.append_once(life.round(), identity)
        while batch := await log.read_new(ROUND, 1, identity):
            position = batch[-1].id
            await log.conclude(0, b"{}", [one.id for one in batch])
        await log.save_snapshot(0, Snapshot(position, b""))
        await log.trim(KEEP, 0)
        held.append((_resident_mb(server.pid), _resident_mb(os.getpid())))
    rows = await _rows(log, held)
    await log.close()
    return rows


async def _rows(log: RedisLog, held: list[tuple[float, float]]) -> list[Figure]:
    (server_mb, ours_mb), (server_then_mb, ours_then_mb) = held[FULL], held[-1]
    changes, full = ROUND * ROUNDS, ROUND * (FULL + 1)
    remembered = len(await log.seen("Pod"))
    return [
        Figure(f"Redis after {full:,} changes", server_mb, "MB"),
        Figure(f"Redis after {changes:,} changes", server_then_mb, "MB"),
        Figure(f"its reader and writer after {full:,} changes", ours_mb, "MB"),
        Figure(f"its reader and writer after {changes:,} changes", ours_then_mb, "MB"),
        Figure("entries kept of them", (await log.info()).entries, f"({KEEP.max_entries:,} wanted at most)"),
        Figure("objects remembered for append-once", remembered, f"({OBJECTS:,} live)"),
    ]


def _resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6
