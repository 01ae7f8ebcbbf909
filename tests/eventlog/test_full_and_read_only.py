"""A server that is full or read-only refuses for a while: the log is unavailable, and goes on afterwards."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from eventlog.adapters.embedded import EmbeddedServer
from eventlog.adapters.redis_streams import connect
from eventlog.entries import Entry, EntryType
from eventlog.errors import LogUnavailable
from tests.eventlog.conftest import now_ms


@pytest.fixture
async def admin() -> AsyncIterator[Redis]:
    """Of a server of its own: others must not be full."""
    server = EmbeddedServer()
    server.start()
    redis = Redis.from_url(server.url)
    redis.url = server.url  # type: ignore[attr-defined]
    yield redis
    await redis.aclose()
    server.stop()


@pytest.mark.parametrize(
    ("trouble", "relief", "named"),
    [
        (("CONFIG", "SET", "maxmemory", "1mb"), ("CONFIG", "SET", "maxmemory", "0"), "maxmemory"),
        (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE"), "read only"),
    ],
    ids=["full", "read-only"],
)
async def test_append_waits_out_a_server_that_refuses(
    admin: Redis, trouble: tuple[str, ...], relief: tuple[str, ...], named: str
) -> None:
    log = await connect(admin.url, "c", "one", now_ms)  # type: ignore[attr-defined]
    identity = await log.identity()
    entry = Entry(EntryType.ADDED, "Pod", "ns", "p", "u", "5", "w", 1, b"x" * 2_000_000)
    await admin.execute_command(*trouble)
    with pytest.raises(LogUnavailable, match=named):
        await log.append_once([entry], identity)
    await admin.execute_command(*relief)
    assert await log.append_once([entry], await log.identity()) == [True]
    await log.close()
