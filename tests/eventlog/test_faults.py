"""Faults between a process and its Redis: lost answers, second readers, vanished and shortened logs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from eventlog.adapters import redis_group
from eventlog.adapters.redis_connection import Link
from eventlog.adapters.redis_scripts import Script
from eventlog.adapters.redis_streams import RedisLog, connect
from eventlog.entries import Entry, EntryType, StoredEntry
from eventlog.errors import EntriesMissed, LogRefused, LogReplaced, LogUnavailable
from eventlog.keys import GROUP, Keys
from eventlog.port import START, Retention, Snapshot
from tests.eventlog.conftest import Server, now_ms
from tests.eventlog.cutting import cutting


def pod(number: int, *, version: str = "", name: str = "") -> Entry:
    body = b'{"n":%d}' % number
    return Entry(
        EntryType.ADDED, "Pod", "ns", name or f"p{number}", f"u{number}", version or str(number), "w", 1, body
    )


@pytest.fixture
async def redis(server: Server) -> AsyncIterator[Redis]:
    client = Redis.from_url(server.url)
    yield client
    await client.aclose()


@pytest.fixture
async def log(server: Server, cluster: str) -> AsyncIterator[RedisLog]:
    opened = await connect(server.url, cluster, "binder-1", now_ms)
    yield opened
    await opened.close()


@pytest.fixture
def keys(cluster: str) -> Keys:
    return Keys(cluster)


async def append(log: RedisLog, *entries: Entry) -> list[bool]:
    return await log.append_once(entries, await log.identity())


async def history(log: RedisLog) -> list[str]:
    stored = await log.read_range(START, 1000)
    return [one.entry.name for one in stored if isinstance(one, StoredEntry)]


async def test_entries_whose_delivery_got_lost_are_not_passed_over(server: Server, cluster: str) -> None:
    async with cutting(server.url) as proxy:
        log = await connect(proxy.url, cluster, "binder-1", now_ms)
        identity = await log.identity()
        await log.take_over()
        assert await log.read_new(10, 0, identity) == []
        await append(log, pod(1))
        proxy.loses_answers = True
        with pytest.raises(LogUnavailable):
            await log.read_new(10, 0, identity)
        proxy.loses_answers = False
        await append(log, pod(2))
        with pytest.raises(EntriesMissed):
            await log.read_new(10, 0, identity)
        assert len(await log.take_over()) == 1
        assert await history(log) == ["p1", "p2"]
        assert len(await log.read_new(10, 0, identity)) == 1
        await log.close()


async def test_intent_whose_answer_got_lost_is_not_written_twice(server: Server, cluster: str) -> None:
    async with cutting(server.url) as proxy:
        log = await connect(proxy.url, cluster, "binder-1", now_ms)
        await log.commit(1, b"first", {})
        proxy.loses_answers = True
        with pytest.raises(LogUnavailable):
            await log.commit(1, b"second", {})
        proxy.loses_answers = False
        assert [body for *_, body in await log.read_passes(START, 10)] == [b"first", b"second"]
        await log.close()


async def test_change_whose_answer_got_lost_is_appended_once(server: Server, cluster: str) -> None:
    async with cutting(server.url) as proxy:
        log = await connect(proxy.url, cluster, "watcher-1", now_ms)
        await append(log, pod(1))
        identity = await log.identity()
        proxy.loses_answers = True
        with pytest.raises(LogUnavailable):
            await log.append_once([pod(2)], identity)
        proxy.loses_answers = False
        assert await append(log, pod(2), pod(3)) == [False, True]
        assert await history(log) == ["p1", "p2", "p3"]
        await log.close()


async def test_deposed_reader_that_wakes_once_more_costs_the_next_one_nothing(
    server: Server, log: RedisLog, cluster: str
) -> None:
    deposed = await connect(server.url, cluster, "binder-0", now_ms)
    identity = await log.identity()
    await deposed.take_over()
    await log.take_over()
    await append(log, pod(1))
    assert len(await deposed.read_new(10, 0, identity)) == 1
    await append(log, pod(2))
    with pytest.raises(EntriesMissed):
        await log.read_new(10, 1000, identity)
    assert len(await log.take_over()) == 1
    await deposed.close()


async def test_reading_waits_for_the_next_entry_and_not_longer(log: RedisLog) -> None:
    await log.take_over()
    identity = await log.identity()
    reading = asyncio.create_task(log.read_new(10, 5000, identity))
    await asyncio.sleep(0)
    await append(log, pod(1))
    async with asyncio.timeout(3):
        assert len(await reading) == 1
    assert await log.read_new(10, 1, identity) == []


async def test_every_pending_entry_is_taken_over_also_those_trimmed_away(
    server: Server, log: RedisLog, cluster: str, redis: Redis, keys: Keys
) -> None:
    """Cases 061 and 064: more than one XAUTOCLAIM gives at a time, some without their content."""
    dead = await connect(server.url, cluster, "binder-0", now_ms)
    await dead.take_over()
    await append(dead, *(pod(n) for n in range(2500)))
    ids = [one.id for one in await dead.read_new(5000, 0, await dead.identity())]
    await dead.close()
    await redis.xtrim(keys.events, minid=ids[100], approximate=False)
    assert sorted(await log.take_over()) == sorted(ids)
    assert (await redis.xpending(keys.events, GROUP))["pending"] == 2400


async def test_dead_readers_are_forgotten_and_those_with_pending_entries_are_not(
    server: Server, log: RedisLog, redis: Redis, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 064: removing a consumer drops what it has not acknowledged."""
    await append(log, pod(1), pod(2))
    for name in ("holds-one", "holds-none"):
        (_, (read, *_)), *_ = await redis.xreadgroup(GROUP, name, {keys.events: ">"}, count=1)
    await redis.xack(keys.events, GROUP, read[0])
    link = Link(server.url)
    assert await Script(link, "forget_consumers.lua").run([keys.events], [GROUP, "binder-1", -1]) == 1
    await link.close()
    assert [one["name"] for one in await redis.xinfo_consumers(keys.events, GROUP)] == [b"holds-one"]
    assert len(await log.take_over()) == 1
    monkeypatch.setattr(redis_group, "DEAD_MS", -1)
    await log.take_over()
    assert [one["name"] for one in await redis.xinfo_consumers(keys.events, GROUP)] == [b"binder-1"]


async def test_entry_acknowledged_by_two_is_acknowledged(server: Server, log: RedisLog, cluster: str) -> None:
    """Case 062: taken over while still worked on; neither is told off."""
    await log.take_over()
    await append(log, pod(1))
    (held,) = await log.read_new(10, 1, await log.identity())
    other = await connect(server.url, cluster, "binder-2", now_ms)
    assert await other.take_over() == [held.id]
    for one in (log, other):
        await one.conclude(1, b"", [held.id])
        assert (await one.info()).pending == 0
    await other.close()


async def test_stream_that_was_deleted_makes_the_log_begin_anew(
    log: RedisLog, redis: Redis, keys: Keys
) -> None:
    await append(log, pod(1))
    old = await log.identity()
    await redis.delete(keys.events)
    with pytest.raises(LogReplaced):
        await log.append_once([pod(2)], old)
    with pytest.raises(LogReplaced):
        await log.read_new(10, 1, old)
    assert await log.identity() != old
    assert await append(log, pod(1)) == [True]


async def test_stream_that_was_deleted_and_made_again_is_not_taken_for_whole(
    log: RedisLog, redis: Redis, keys: Keys
) -> None:
    await append(log, pod(1))
    old = await log.identity()
    await redis.delete(keys.events)
    await redis.xadd(keys.events, {"t": "ADDED"})
    with pytest.raises(LogReplaced):
        await log.append_once([pod(2)], old)
    assert await log.identity() != old
    assert await log.read_range(START, 10) == []


async def test_user_who_may_not_look_at_groups_does_not_void_the_log(
    server: Server, log: RedisLog, redis: Redis, keys: Keys, cluster: str
) -> None:
    await append(log, pod(1))
    rights = ["on", "nopass", "~*", "+@all", "-xinfo|groups"]
    await redis.execute_command("ACL", "SETUSER", "blind", "reset", *rights)
    blind = await connect(server.url.replace("unix://", "unix://blind:x@"), cluster, "two", now_ms)
    with pytest.raises(LogRefused, match="forbids"):
        await blind.identity()
    await blind.close()
    await redis.acl_deluser("blind")
    assert await history(log) == ["p1"]


async def test_emptied_server_is_noticed_by_who_appends_and_who_reads(
    log: RedisLog, redis: Redis, keys: Keys
) -> None:
    await log.take_over()
    old = await log.identity()
    await redis.delete(*[key async for key in redis.scan_iter(f"{keys.events.removesuffix('events')}*")])
    for attempt in (log.append_once([pod(1)], old), log.read_new(10, 1, old)):
        with pytest.raises(LogReplaced):
            await attempt


async def test_server_that_lost_what_it_had_acknowledged_makes_everybody_list_again(
    log: RedisLog, redis: Redis, keys: Keys
) -> None:
    """A failover to a replica that lacks the last second: the change would not be told again."""
    await append(log, pod(1), pod(2))
    old = await log.identity()
    (last, _), *_ = await redis.xrevrange(keys.events, count=1)
    await redis.xdel(keys.events, last)
    with pytest.raises(LogReplaced):
        await log.append_once([pod(3)], old)
    assert await log.identity() != old
    assert await append(log, pod(1), pod(2), pod(3)) == [True] * 3


async def test_replica_that_was_second_to_tell_notices_too(
    server: Server, log: RedisLog, cluster: str, redis: Redis, keys: Keys
) -> None:
    """It took the change for told, and the one that told it may have died with the old primary."""
    second = await connect(server.url, cluster, "w2", now_ms)
    await append(log, pod(1), pod(2))
    assert await append(second, pod(2)) == [False]
    (last, _), *_ = await redis.xrevrange(keys.events, count=1)
    await redis.xdel(keys.events, last)
    with pytest.raises(LogReplaced):
        await append(second, pod(2))
    await second.close()


async def test_log_that_lost_every_entry_is_noticed(log: RedisLog, redis: Redis, keys: Keys) -> None:
    await append(log, pod(1))
    await redis.xtrim(keys.events, maxlen=0, approximate=False)
    with pytest.raises(LogReplaced):
        await append(log, pod(1))
    assert await append(log, pod(1)) == [True]


async def test_change_that_could_not_be_told_is_not_taken_for_told(
    server: Server, log: RedisLog, redis: Redis, cluster: str
) -> None:
    identity = await log.identity()
    await redis.execute_command("ACL", "SETUSER", "mute", "reset", "on", "nopass", "~*", "+@all", "-xadd")
    mute = await connect(server.url.replace("unix://", "unix://mute:x@"), cluster, "two", now_ms)
    with pytest.raises(LogRefused, match="forbids"):
        await mute.append_once([pod(1)], identity)
    await mute.close()
    await redis.acl_deluser("mute")
    assert await append(log, pod(1)) == [True]


async def test_own_entries_may_be_trimmed_behind_a_snapshot(log: RedisLog) -> None:
    await log.take_over()
    await append(log, *(pod(n) for n in range(1, 4)))
    ids = [one.id for one in await log.read_new(10, 1, await log.identity())]
    other = Entry(EntryType.SYNCED, "Pod")
    await log.conclude(1, b"", ids)
    await log.save_snapshot(1, Snapshot(ids[-1], b""))
    await log.trim(Retention(0, 0), now_ms() + 60_000)
    assert await append(log, other, pod(9)) == [True, True]


async def test_server_that_forgot_the_scripts_is_given_them_again(log: RedisLog, redis: Redis) -> None:
    await append(log, pod(1))
    await redis.script_flush()
    assert await append(log, pod(1), pod(2)) == [False, True]


async def test_names_that_hold_the_separator_stop_nobody(log: RedisLog) -> None:
    assert await append(log, pod(1, name="odd\x1fname"), pod(2)) == [True, True]
    assert await append(log, pod(3)) == [True]
    assert set(await log.seen("Pod")) == {"u2", "u3"}


@pytest.mark.parametrize("protocol", [2, 3])
async def test_both_protocols_serve(server: Server, cluster: str, protocol: int) -> None:
    log = await connect(f"{server.url}?protocol={protocol}", cluster, "one", now_ms)
    identity = await log.identity()
    await log.take_over()
    await append(log, pod(1), pod(2))
    batch = await log.read_new(10, 1, identity)
    assert batch == await log.read_range(START, 10)
    assert await log.take_over() == [one.id for one in batch]
    assert (await log.info()).pending == 2
    await log.conclude(1, b"done", [one.id for one in batch])
    await log.save_snapshot(1, Snapshot(batch[0].id, b"state"))
    assert await log.load_snapshot() == Snapshot(batch[0].id, b"state")
    assert [what for _, what, _ in await log.read_passes(START, 10)] == ["outcome"]
    assert await log.trim(Retention(0, 1), now_ms() + 60_000) == 0
    assert (await log.info()).pending == 0
    await log.close()


@pytest.mark.enable_socket
async def test_server_that_is_no_redis_is_named() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    with pytest.raises((LogRefused, LogUnavailable), match=f"127.0.0.1:{port}"):
        await connect(f"redis://127.0.0.1:{port}", "c", "one", now_ms)
    listening.close()


@pytest.mark.parametrize("url", ["redis://:hush/word@127.0.0.1:1", "redis://user:hush#word@127.0.0.1:1"])
async def test_password_that_breaks_the_url_is_not_printed(url: str) -> None:
    with pytest.raises((LogRefused, LogUnavailable)) as refused:
        await connect(url, "c", "one", now_ms)
    assert "hush" not in str(refused.value)
