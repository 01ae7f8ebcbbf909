"""The least rights that gpubinder's Redis user needs: docs/redis.md names them, and each is needed."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis
from redis.cluster import key_slot

from eventlog.adapters import redis_group
from eventlog.adapters.embedded import EmbeddedServer
from eventlog.adapters.redis_presence import connect as connect_presence
from eventlog.adapters.redis_streams import connect
from eventlog.entries import Entry, EntryType
from eventlog.errors import LogError, LogRefused
from eventlog.keys import Keys
from eventlog.port import TOMBSTONE_MS, Quarantined, Retention, Snapshot
from tests.eventlog.conftest import RIGHTS, now_ms, url_as

COMMANDS = [word for word in RIGHTS if word.startswith("+")]


@pytest.fixture(autouse=True)
def _dead_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_group, "DEAD_MS", -1)


@pytest.fixture
async def admin(server: EmbeddedServer) -> AsyncIterator[Redis]:
    redis = Redis.from_url(server.url)
    yield redis
    await redis.acl_deluser("trial")
    await redis.aclose()


async def live_with(admin: Redis, server: EmbeddedServer, cluster: str, rights: list[str]) -> None:
    """Everything that gpubinder does with its log, as that user."""
    await admin.execute_command("ACL", "SETUSER", "trial", "reset", *rights)
    url = url_as("trial", server)
    late = [0]
    log = await connect(url, cluster, "one", lambda: now_ms() + late[0])
    successor = await connect(url, cluster, "two", now_ms)
    presence = connect_presence(url, cluster)
    try:
        identity = await log.identity()
        await log.cluster_of("uid")
        await log.take_over()
        entry = Entry(EntryType.ADDED, "Pod", "ns", "p", "u", "5", "w", 1, b"{}")
        gone = Entry(EntryType.DELETED, "Pod", "ns", "p", "u", "6", "w", 1)
        await log.append_once([entry, gone, Entry(EntryType.SYNCED, "Pod")], identity)
        late[0] = 2 * TOMBSTONE_MS
        await log.append_once([Entry(EntryType.SYNCED, "Pod")], identity)
        await log.seen("Pod")
        await log.read_range("0-0", 10)
        ids = [stored.id for stored in await log.read_new(10, 1, identity)]
        await log.take_over()
        await log.commit(1, b"{}", {"rejections": {"a": b"b"}})
        await log.conclude(1, b"{}", ids)
        await log.read_passes("0-0", 10)
        await log.save_snapshot(1, Snapshot(ids[-1], b""))
        await log.load_snapshot()
        await log.trim(Retention(0, 0), now_ms() + 10_000)
        await log.has_lost(ids[-1])
        await log.has_lost("0-0")
        await log.quarantine(Quarantined("x", "y"))
        await log.quarantined(1)
        await log.info()
        await presence.show("one")
        await presence.present(1000)
        await successor.take_over()
        await log.begin_anew(identity)
        await log.hand_over("other")
    finally:
        await presence.close()
        await successor.close()
        await log.close()


async def test_documented_rights_are_enough(admin: Redis, server: EmbeddedServer, cluster: str) -> None:
    await live_with(admin, server, cluster, RIGHTS)


@pytest.mark.parametrize("command", COMMANDS)
async def test_each_documented_right_is_needed(
    admin: Redis, server: EmbeddedServer, cluster: str, command: str
) -> None:
    rest = [word for word in RIGHTS if word != command]
    await admin.script_flush()
    with pytest.raises(LogError) as refused:
        await live_with(admin, server, cluster, rest)
    assert isinstance(refused.value, LogRefused), refused.value


async def test_keys_of_others_are_out_of_reach(admin: Redis, server: EmbeddedServer) -> None:
    await admin.execute_command("ACL", "SETUSER", "trial", "reset", *RIGHTS)
    found = await admin.execute_command("ACL", "DRYRUN", "trial", "GET", "someone-elses-key")
    assert b"no permissions" in found


def test_all_keys_of_a_cluster_are_in_one_slot() -> None:
    """Redis Cluster: one transaction must hold them."""
    for cluster in ("default", "a}b", "ü {x} y", ""):
        keys = Keys(cluster)
        names = [keys.events, keys.identity, keys.cluster_uid, keys.passes, keys.epoch, keys.snapshot]
        names += [keys.seen("Pod"), keys.tombs("Pod"), keys.projection("x"), keys.watchers, keys.quarantine]
        assert len({key_slot(name.encode()) for name in names}) == 1
