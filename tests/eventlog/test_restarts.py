"""Servers that are killed, restarted, or come back with an older copy of the log."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import pytest

from eventlog.adapters.redis_streams import RedisLog, connect
from eventlog.entries import Entry, EntryType, StoredEntry
from eventlog.errors import LogReplaced, LogUnavailable
from eventlog.port import START
from tests.eventlog.conftest import SERVERS, Server, now_ms

ANSWERS_S = 10.0
MANY = 20_000
KINDS = ("Pod", "Node", "VirtualMachineInstance")


class Make(Protocol):
    def __call__(self, folder: Path, fsync: str = "everysec") -> Server: ...


@pytest.fixture(params=sorted(SERVERS))
def make(request: pytest.FixtureRequest) -> Make:
    """A server in a folder that outlives it."""
    return SERVERS[request.param]


def change(number: int) -> Entry:
    """Of kinds by turns: a batch becomes many script calls in one pipeline."""
    kind = KINDS[number // 10 % len(KINDS)]
    return Entry(EntryType.ADDED, kind, "ns", str(number), f"u{number}", "1", object=b"%0500d" % number)


async def numbers(log: RedisLog) -> list[int]:
    stored = await log.read_range(START, 2 * MANY)
    return [int(one.entry.name) for one in stored if isinstance(one, StoredEntry)]


async def answering(log: RedisLog) -> str:
    """The log's identity, as soon as its server answers."""
    async with asyncio.timeout(ANSWERS_S):
        while True:
            try:
                return await log.identity()
            except LogUnavailable:
                await asyncio.sleep(0.02)


def killing(server: Server, after_s: float) -> threading.Timer:
    timer = threading.Timer(after_s, os.kill, (server.pid, signal.SIGKILL))
    timer.start()
    return timer


async def append_while_it_lives(log: RedisLog, identity: str) -> int:
    for number in itertools.count():
        try:
            await log.append_once([change(number)], identity)
        except LogUnavailable:
            return number
    raise AssertionError


@pytest.mark.parametrize("fsync", ["always", "everysec"])
async def test_server_killed_while_writing_has_kept_all_that_it_acknowledged(
    make: Make, tmp_path: Path, fsync: str
) -> None:
    """A killed process loses nothing that it wrote to its file; `everysec` is about power cuts."""
    server = make(tmp_path, fsync=fsync)
    server.start()
    log = await connect(server.url, "c", "one", now_ms)
    identity = await log.identity()
    timer = killing(server, 0.1)
    acknowledged = await append_while_it_lives(log, identity)
    timer.join()
    server.stop()
    server = make(tmp_path)
    server.start()
    assert await answering(log) == identity
    assert acknowledged > 0
    assert (await numbers(log))[:acknowledged] == list(range(acknowledged))
    await log.close()
    server.stop()


async def append_all(log: RedisLog, entries: Sequence[Entry], identity: str) -> int:
    """As a watcher does: what failed is told again. Returns how often it failed."""
    for failed in itertools.count():
        try:
            await log.append_once(entries, identity)
        except LogUnavailable:
            await answering(log)
        else:
            return failed
    raise AssertionError


async def test_server_killed_in_the_middle_of_a_pipeline_gets_each_change_once(
    make: Make, tmp_path: Path
) -> None:
    server = make(tmp_path)
    server.start()
    log = await connect(server.url, "c", "one", now_ms)
    identity = await log.identity()
    appending = asyncio.create_task(append_all(log, [change(number) for number in range(MANY)], identity))
    while (await log.info()).entries < MANY // 10:
        await asyncio.sleep(0)
    os.kill(server.pid, signal.SIGKILL)
    server.stop()
    server = make(tmp_path)
    await asyncio.to_thread(server.start)
    assert await appending >= 1
    assert await numbers(log) == list(range(MANY))
    await log.close()
    server.stop()


async def test_replica_that_lagged_behind_is_noticed_by_all_and_the_log_begins_anew(
    make: Make, tmp_path: Path
) -> None:
    """A failover: the same log, its identity too, without the last second that was acknowledged."""
    replica, primary = tmp_path / "replica", tmp_path / "primary"
    primary.mkdir()
    server = make(primary)
    server.start()
    told, second, binder = [await connect(server.url, "c", name, now_ms) for name in ("w1", "w2", "b")]
    identity = await told.identity()
    await binder.take_over()
    await told.append_once([change(1), change(2)], identity)
    server.stop()
    shutil.copytree(primary, replica)
    server = make(primary)
    server.start()
    await told.append_once([change(3)], await answering(told))
    assert await second.append_once([change(3)], await answering(second)) == [False]
    last = (await binder.read_new(10, 1, await answering(binder)))[-1]
    os.kill(server.pid, signal.SIGKILL)
    server.stop()
    shutil.rmtree(primary)
    shutil.copytree(replica, primary)
    server = make(primary)
    server.start()
    assert await answering(binder) == identity
    assert await binder.has_lost(last.id)
    for attempt in (
        binder.read_new(10, 1, identity),
        told.append_once([change(4)], identity),
        second.append_once([change(3)], identity),
    ):
        with pytest.raises(LogReplaced):
            await attempt
    begun = await told.identity()
    assert begun != identity
    assert await told.append_once([change(number) for number in range(1, 4)], begun) == [True] * 3
    for log in (told, second, binder):
        await log.close()
    server.stop()
