"""The log in Redis Streams. Keys are in `eventlog.keys`, scripts beside this file."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from eventlog.adapters.redis_answers import EndLost
from eventlog.adapters.redis_connection import Link, text_of
from eventlog.adapters.redis_group import RedisGroup
from eventlog.adapters.redis_scripts import Arguments, Call, Script
from eventlog.adapters.redis_trimmer import RedisTrimmer
from eventlog.entries import CHANGES, Entry, EntryType, Stored, decode_entry, encode_entry, id_order
from eventlog.errors import EntriesMissed, Fenced, LogReplaced
from eventlog.keys import GROUP, Keys
from eventlog.port import (
    QUARANTINE_LIMIT,
    TOMBSTONE_MS,
    LogInfo,
    Quarantined,
    Retention,
    Seen,
    Snapshot,
    lag_between,
)
from model.kinds import BY_KIND

PIPELINE = 200
"""Entries per round trip: enough to hide latency, little to repeat when the connection drops."""
ACKS = 1000
"""Ids per acknowledging call: Lua cannot unpack more than some thousands."""
DIGEST_BYTES = 16
"""Of a lean object: enough that two different ones never share it."""
_SEPARATOR = "\x1f"


class RedisLog:
    """One cluster's log; `consumer` names this process in the consumer group."""

    def __init__(self, link: Link, keys: Keys, consumer: str, now_ms: Callable[[], int]) -> None:
        self._link = link
        self._keys = keys
        self._now_ms = now_ms
        self._append_script = Script(link, "append_once.lua")
        self._commit_script = Script(link, "commit.lua")
        self._begin_script = Script(link, "begin.lua")
        self._snapshot_script = Script(link, "snapshot.lua")
        self._trimmer = RedisTrimmer(link, keys)
        self._group = RedisGroup(link, keys, consumer)
        self._newest: dict[str, str] = {}
        """By identity, the newest entry when we last appended: what we take for told is no newer."""

    async def close(self) -> None:
        """Close every connection."""
        await self._link.close()

    async def identity(self) -> str:
        """See EventAppender."""
        return await self._begin("")

    async def append_once(self, entries: Sequence[Entry], identity: str) -> list[bool]:
        """See EventAppender."""
        appended: list[bool] = []
        for start in range(0, len(entries), PIPELINE):
            by_kind = groupby(entries[start : start + PIPELINE], key=attrgetter("kind"))
            calls = [self._append_call(kind, group, identity) for kind, group in by_kind]
            try:
                answers = await self._append_script.run_all(calls)
            except EndLost:
                await self.begin_anew(identity)
                raise LogReplaced from None
            for *flags, newest in answers:
                appended += [flag == 1 for flag in flags]
                self._newest = {identity: text_of(newest)}
        return appended

    async def seen(self, kind: str) -> Mapping[str, Seen]:
        """See EventAppender."""
        living: dict[str, Seen] = {}
        async with self._link.asked() as redis:
            async for uid, value in redis.hscan_iter(self._keys.seen(kind), count=1000):
                parts = text_of(value).split(_SEPARATOR)
                if len(parts) == len(Seen.__slots__) + 2 and parts[-1] == "L":
                    living[text_of(uid)] = Seen(parts[2], parts[3], parts[0])
        return living

    async def begin_anew(self, identity: str) -> None:
        """See EventAppender."""
        await self._begin(identity)

    async def read_range(self, after_id: str, limit: int) -> list[Stored]:
        """See EventReader."""
        async with self._link.asked() as redis:
            found: Any = await redis.xrange(self._keys.events, f"({after_id}", "+", count=limit)
        return [decode_entry(text_of(entry_id), fields) for entry_id, fields in found]

    async def read_new(self, limit: int, block_ms: int, identity: str) -> list[Stored]:
        """See EventReader."""
        try:
            return await self._group.read_new(limit, block_ms, identity)
        except EntriesMissed as error:
            if id_order(error.theirs) > id_order(error.ours):
                raise
        await self.begin_anew(identity)  # the log has lost its end, with changes that all take for told
        raise LogReplaced

    async def take_over(self) -> list[str]:
        """See EventReader."""
        return await self._group.take_over(await self.identity())

    async def commit(self, epoch: int, intent: bytes, projections: Mapping[str, Mapping[str, bytes]]) -> str:
        """See Journal."""
        arguments: Arguments = [epoch, "intent", intent, GROUP, 0]
        for fields in projections.values():
            arguments.append(len(fields))
            for name, value in fields.items():
                arguments += [name, value]
        names = [self._keys.projection(name) for name in projections]
        return await self._write_pass(epoch, names, arguments)

    async def recall(self, projection: str) -> dict[str, bytes]:
        """See Journal."""
        async with self._link.asked() as redis:
            found: Any = await redis.hgetall(self._keys.projection(projection))
        return {text_of(name): value for name, value in found.items()}

    async def conclude(self, epoch: int, outcome: bytes, done_ids: Sequence[str]) -> str:
        """See Journal."""
        first, rest = done_ids[:ACKS], done_ids[ACKS:]
        entry_id = await self._write_pass(epoch, [], [epoch, "outcome", outcome, GROUP, len(first), *first])
        async with self._link.asked() as redis:
            for start in range(0, len(rest), ACKS):
                await redis.xack(self._keys.events, GROUP, *rest[start : start + ACKS])
        return entry_id

    async def read_passes(self, after_id: str, limit: int) -> list[tuple[str, str, bytes]]:
        """See Journal."""
        async with self._link.asked() as redis:
            found: Any = await redis.xrange(self._keys.passes, f"({after_id}", "+", count=limit)
        return [(text_of(entry_id), text_of(f.get(b"what")), f.get(b"body", b"")) for entry_id, f in found]

    async def save_snapshot(self, epoch: int, snapshot: Snapshot) -> None:
        """See Snapshots."""
        ms, sequence = id_order(snapshot.position)
        names = [self._keys.snapshot, self._keys.epoch]
        arguments: Arguments = [epoch, snapshot.position, ms, sequence, snapshot.body]
        try:
            await self._snapshot_script.run(names, arguments)
        except Fenced as error:
            raise Fenced(epoch, error.theirs) from None

    async def load_snapshot(self) -> Snapshot | None:
        """See Snapshots."""
        async with self._link.asked() as redis:
            found: Any = await redis.hmget(self._keys.snapshot, ["position", "body"])
        position, body = found
        return Snapshot(text_of(position), body) if position and body is not None else None

    async def trim(self, retention: Retention, now_ms: int) -> int:
        """See Snapshots."""
        return await self._trimmer.trim(retention, now_ms)

    async def has_lost(self, after_id: str) -> bool:
        """See Snapshots."""
        return await self._trimmer.has_lost(after_id)

    async def quarantine(self, item: Quarantined) -> None:
        """See Quarantine."""
        fields: Any = {"what": item.what, "why": item.why, "body": item.body}
        async with self._link.asked() as redis:
            await redis.xadd(self._keys.quarantine, fields, maxlen=QUARANTINE_LIMIT, approximate=False)

    async def quarantined(self, limit: int) -> list[Quarantined]:
        """See Quarantine."""
        async with self._link.asked() as redis:
            found: Any = await redis.xrevrange(self._keys.quarantine, count=limit)
        return [Quarantined(text_of(f[b"what"]), text_of(f[b"why"]), f[b"body"]) for _, f in found]

    async def info(self) -> LogInfo:
        """See Log."""
        async with self._link.asked() as redis:
            identity = text_of(await redis.get(self._keys.identity))
            length = await redis.xlen(self._keys.events)
            last: Any = await redis.xrevrange(self._keys.events, count=1)
            groups: Any = await redis.xinfo_groups(self._keys.events) if length else []
        pending = sum(int(group["pending"]) + int(group.get("lag") or 0) for group in groups)
        last_id = text_of(last[0][0]) if last else "0-0"
        given = [text_of(group["last-delivered-id"]) for group in groups]
        return LogInfo(
            identity, length, last_id, pending, lag_between(max(given, key=id_order, default="0-0"), last_id)
        )

    async def cluster_of(self, uid: str) -> str:
        """See Log."""
        async with self._link.asked() as redis:
            await redis.set(self._keys.cluster_uid, uid, nx=True)
            return text_of(await redis.get(self._keys.cluster_uid))

    async def hand_over(self, uid: str) -> None:
        """See Log."""
        async with self._link.asked() as redis:
            await redis.set(self._keys.cluster_uid, uid)
        await self.begin_anew(await self.identity())

    async def _begin(self, old: str) -> str:
        keys = self._keys
        names = [keys.identity, keys.events, keys.snapshot, keys.epoch]
        names += [name(kind) for kind in BY_KIND for name in (keys.seen, keys.tombs)]
        return text_of(await self._begin_script.run(names, [old, secrets.token_hex(8), GROUP]))

    def _append_call(self, kind: str, entries: Iterable[Entry], identity: str) -> Call:
        keys = self._keys
        names = [keys.events, keys.identity, keys.seen(kind), keys.tombs(kind)]
        arguments: Arguments = [identity, self._now_ms(), TOMBSTONE_MS, self._newest.get(identity, "")]
        for entry in entries:
            what = "m" if entry.type not in CHANGES else "d" if entry.type is EntryType.DELETED else "c"
            digest = hashlib.blake2b(entry.object, digest_size=DIGEST_BYTES).digest()
            arguments += (what, digest.hex(), *encode_entry(entry).values())
        return names, arguments

    async def _write_pass(self, epoch: int, projections: list[str], arguments: Arguments) -> str:
        names = [self._keys.passes, self._keys.epoch, self._keys.events, *projections]
        try:
            entry_id = await self._commit_script.run(names, arguments)
        except Fenced as error:
            raise Fenced(epoch, error.theirs) from None
        return text_of(entry_id)


async def connect(url: str, cluster: str, consumer: str, now_ms: Callable[[], int]) -> RedisLog:
    """Open and check the log at a URL. Raises LogRefused, LogUnavailable."""
    keys = Keys(cluster)
    link = Link(url, keys)
    try:
        await link.check(keys.identity)
    except BaseException:
        await link.close()
        raise
    return RedisLog(link, keys, consumer, now_ms)
