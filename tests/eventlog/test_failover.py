"""A real failover to a replica that lacks what the primary acknowledged last."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from redis import Redis

from eventlog.adapters.redis_streams import RedisLog, connect
from eventlog.entries import StoredEntry
from eventlog.errors import LogReplaced, LogUnavailable
from eventlog.port import START
from tests.eventlog.conftest import SERVERS, now_ms
from tests.eventlog.installed import InstalledServer
from tests.eventlog.test_restarts import change

pytestmark = [
    pytest.mark.enable_socket,
    pytest.mark.skipif("redis-server" not in SERVERS, reason="needs two of the installed server"),
]
CAUGHT_UP_S = 10.0
KNOWN, LATE = 50, 5


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@dataclass
class Pair:
    """A primary and its replica; clients know the primary's address alone."""

    primary: InstalledServer
    replica: InstalledServer

    def on_replica(self, *command: str) -> object:
        with Redis.from_url(self.replica.url) as admin:
            return admin.execute_command(*command)

    async def caught_up(self) -> None:
        async with asyncio.timeout(CAUGHT_UP_S):
            with Redis.from_url(self.primary.url) as admin:
                while not admin.execute_command("WAIT", "1", "100"):
                    await asyncio.sleep(0.05)

    def fail_over(self) -> None:
        """The primary dies, and its address leads to the replica, as a proxy or a moved name does."""
        os.kill(self.primary.pid, signal.SIGKILL)
        address = Path(self.primary.url.removeprefix("unix://"))
        address.unlink()
        address.symlink_to(self.replica.url.removeprefix("unix://"))


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    folders = [tmp_path / name for name in ("p", "r")]
    for folder in folders:
        folder.mkdir()
    port = free_port()
    primary = InstalledServer(folders[0], more=["--port", str(port)])
    replica = InstalledServer(folders[1], more=["--replicaof", "127.0.0.1", str(port)])
    primary.start()
    replica.start()
    yield Pair(primary, replica)
    for server in (primary, replica):
        server.stop()
    shutil.rmtree(tmp_path, ignore_errors=True)


async def fault_of(log: RedisLog, identity: str) -> str:
    """A passing fault: it is waited out."""
    with pytest.raises(LogUnavailable) as caught:
        await log.append_once([change(999)], identity)
    return str(caught.value)


async def test_replica_that_lacks_the_end_begins_a_new_log_and_nothing_is_skipped(
    pair: Pair, cluster: str
) -> None:
    """The reader must not go on behind entries that are gone, nor a watcher take what it told for known."""
    log = await connect(pair.primary.url, cluster, "one", now_ms)
    old = await log.identity()
    await log.append_once([change(number) for number in range(KNOWN)], old)
    assert len(await log.read_new(1000, 100, old)) == KNOWN
    await pair.caught_up()
    pair.on_replica("REPLICAOF", "127.0.0.1", str(free_port()))  # cut off, and still a replica
    late = [change(number) for number in range(KNOWN, KNOWN + LATE)]
    assert await log.append_once(late, old) == [True] * LATE
    assert len(await log.read_new(1000, 100, old)) == LATE

    pair.fail_over()
    faults = [await fault_of(log, old) for _ in range(3)]  # connections to the dead one end first
    assert "name the primary in --redis" in faults[-1]
    pair.on_replica("REPLICAOF", "NO", "ONE")

    with pytest.raises(LogReplaced):
        await log.append_once([change(KNOWN + LATE)], old)
    with pytest.raises(LogReplaced):
        await log.read_new(1000, 100, old)
    new = await log.identity()
    assert new != old
    everything = [change(number) for number in range(KNOWN + LATE + 1)]
    assert all(await log.append_once(everything, new)), "a watcher's list tells all of it again"
    told = [one.entry.name for one in await log.read_range(START, 1000) if isinstance(one, StoredEntry)]
    assert told == [str(number) for number in range(KNOWN + LATE + 1)]
    assert len(await log.read_new(1000, 100, new)) == KNOWN + LATE + 1
    await log.close()


async def test_replica_that_has_everything_takes_over_in_silence(pair: Pair, cluster: str) -> None:
    log = await connect(pair.primary.url, cluster, "one", now_ms)
    identity = await log.identity()
    await log.append_once([change(number) for number in range(KNOWN)], identity)
    await pair.caught_up()
    pair.on_replica("REPLICAOF", "NO", "ONE")
    pair.fail_over()
    async with asyncio.timeout(CAUGHT_UP_S):
        while True:
            try:
                assert await log.append_once([change(KNOWN)], identity) == [True]
                break
            except LogUnavailable:
                await asyncio.sleep(0.05)
    assert await log.append_once([change(KNOWN)], identity) == [False]
    assert len(await log.read_range(START, 1000)) == KNOWN + 1
    await log.close()
