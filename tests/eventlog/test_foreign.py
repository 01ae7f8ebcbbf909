"""A key of ours that another program has written is named, with the ways out, in every use of the log."""

from __future__ import annotations

import pytest
from redis.asyncio import Redis

from eventlog.adapters.redis_presence import connect as connect_presence
from eventlog.adapters.redis_streams import connect
from eventlog.entries import Entry, EntryType
from eventlog.errors import LogUnavailable
from eventlog.keys import Keys
from eventlog.port import Quarantined, Snapshot
from tests.eventlog.conftest import Server, now_ms, url_as

NAMES = [
    "identity",
    "cluster",
    "events",
    "epoch",
    "passes",
    "snapshot",
    "quarantine",
    "watchers",
    "seen:Pod",
    "tombs:Pod",
]


async def live_with(url: str, cluster: str) -> None:
    log, presence = await connect(url, cluster, "one", now_ms), connect_presence(url, cluster)
    try:
        await log.cluster_of("uid")
        await presence.show("one")
        pod = Entry(EntryType.ADDED, "Pod", "ns", "p", "u", "5", "w", 1, b"{}")
        gone = Entry(EntryType.DELETED, "Pod", "ns", "p", "u", "6", "w", 1)
        await log.append_once([pod, gone], await log.identity())
        await log.seen("Pod")
        await log.commit(1, b"{}", {})
        await log.save_snapshot(1, Snapshot("0-1", b""))
        await log.quarantine(Quarantined("x", "y"))
        await log.info()
    finally:
        await presence.close()
        await log.close()


@pytest.mark.parametrize("name", NAMES)
async def test_key_with_another_programs_value_is_named(server: Server, cluster: str, name: str) -> None:
    url, key = url_as("gpubinder", server), f"{Keys(cluster).events.removesuffix('events')}{name}"
    await live_with(url, cluster)
    async with Redis.from_url(server.url) as admin:
        await admin.delete(key)
        await admin.geoadd(key, (0, 0, "x")) if "tombs" not in name else await admin.set(key, "x")
        with pytest.raises(LogUnavailable) as told:
            await live_with(url, cluster)
        assert f"redis-cli DEL '{key}'" in str(told.value)
        assert "--cluster" in str(told.value)
        await admin.delete(key)


async def test_epoch_that_is_no_number_is_named(server: Server, cluster: str) -> None:
    url, key = url_as("gpubinder", server), Keys(cluster).epoch
    await live_with(url, cluster)
    async with Redis.from_url(server.url) as admin:
        await admin.set(key, "abc")
        with pytest.raises(LogUnavailable, match=f"redis-cli DEL '{key}'"):
            await live_with(url, cluster)
