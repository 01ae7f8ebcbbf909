"""The log in Redis Streams. Keys are in `eventlog.keys`, scripts beside this file."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files
from itertools import chain, groupby
from operator import attrgetter
from typing import Any

from redis import exceptions as redis_errors
from redis.asyncio import Redis

from eventlog.adapters.redis_connection import address_of, check_server, open_redis, translated
from eventlog.adapters.redis_trimmer import RedisTrimmer
from eventlog.entries import CHANGES, Entry, EntryType, Stored, decode_entry, encode_entry, id_order
from eventlog.errors import Fenced, LogReplaced
from eventlog.keys import GROUP, Keys
from eventlog.port import QUARANTINE_LIMIT, LogInfo, Quarantined, Retention, Seen, Snapshot
from model.kinds import BY_KIND

PIPELINE = 200
"""Entries per round trip: enough to hide latency, little to repeat when the connection drops."""
ACKS = 1000
"""Ids per acknowledging call: Lua cannot unpack more than some thousands."""
DIGEST_BYTES = 16
"""Of a lean object: enough that two different ones never share it."""
TOMBSTONE_MS = 30 * 60 * 1000
"""How long a deleted uid is remembered: longer than any watcher can lag without listing again."""
_SEPARATOR = b"\x1f"


class RedisLog:
    """One cluster's log; `consumer` names this process in the consumer group."""

    def __init__(
        self, redis: Redis, address: str, keys: Keys, consumer: str, now_ms: Callable[[], int]
    ) -> None:
        self._redis = redis
        self._address = address
        self._keys = keys
        self._consumer = consumer
        self._now_ms = now_ms
        self._append_script = _script("append_once.lua")
        self._commit_script = _script("commit.lua")
        self._anew_script = _script("begin_anew.lua")
        self._snapshot_script = _script("snapshot.lua")
        self._trimmer = RedisTrimmer(redis, address, keys)

    async def close(self) -> None:
        """Close every connection."""
        await self._redis.aclose()

    async def identity(self) -> str:
        """See EventAppender."""
        with translated(self._address):
            await self._redis.set(self._keys.identity, secrets.token_hex(8), nx=True)
            return _text(await self._redis.get(self._keys.identity))

    async def append_once(self, entries: Sequence[Entry], identity: str) -> list[bool]:
        """See EventAppender."""
        appended: list[bool] = []
        for start in range(0, len(entries), PIPELINE):
            by_kind = groupby(entries[start : start + PIPELINE], key=attrgetter("kind"))
            calls = [self._append_call(kind, group, identity) for kind, group in by_kind]
            answers = await self._evaluate(self._append_script, calls)
            appended += [answer == 1 for answer in chain.from_iterable(answers)]
        return appended

    async def seen(self, kind: str) -> Mapping[str, Seen]:
        """See EventAppender."""
        living: dict[str, Seen] = {}
        with translated(self._address):
            async for uid, value in self._redis.hscan_iter(self._keys.seen(kind), count=1000):
                version, _, namespace, name, state = value.split(_SEPARATOR)
                if state == b"L":
                    living[_text(uid)] = Seen(_text(namespace), _text(name), _text(version))
        return living

    async def begin_anew(self, identity: str) -> None:
        """See EventAppender."""
        keys = self._keys
        names = [keys.identity, keys.events, keys.snapshot]
        names += [name(kind) for kind in BY_KIND for name in (keys.seen, keys.tombs)]
        await self._evaluate(self._anew_script, [(names, [identity, secrets.token_hex(8)])])

    async def read_range(self, after_id: str, limit: int) -> list[Stored]:
        """See EventReader."""
        with translated(self._address):
            found: Any = await self._redis.xrange(self._keys.events, f"({after_id}", "+", count=limit)
        return [decode_entry(_text(entry_id), fields) for entry_id, fields in found]

    async def read_new(self, limit: int, block_ms: int, identity: str) -> list[Stored]:
        """See EventReader."""
        streams: Any = {self._keys.events: ">"}
        with translated(self._address):
            answer: Any = await self._redis.xreadgroup(
                GROUP, self._consumer, streams, count=limit, block=block_ms or None
            )
            if _text(await self._redis.get(self._keys.identity)) != identity:
                raise LogReplaced
        return [decode_entry(_text(entry_id), fields) for entry_id, fields in _messages(answer)]

    async def take_over(self) -> list[str]:
        """See EventReader."""
        await self._make_group()
        ids: list[str] = []
        cursor = "0-0"
        with translated(self._address):
            while True:
                cursor, claimed, deleted = await self._redis.xautoclaim(
                    self._keys.events,
                    GROUP,
                    self._consumer,
                    min_idle_time=0,
                    start_id=cursor,
                    count=ACKS,
                    justid=False,
                )
                ids += [_text(entry_id) for entry_id, _ in claimed] + [
                    _text(entry_id) for entry_id in deleted
                ]
                if _text(cursor) == "0-0":
                    return ids

    async def commit(self, epoch: int, intent: bytes, projections: Mapping[str, Mapping[str, bytes]]) -> str:
        """See Journal."""
        arguments: list[str | bytes | int] = [epoch, "intent", intent, GROUP, 0]
        for fields in projections.values():
            arguments.append(len(fields))
            for name, value in fields.items():
                arguments += [name, value]
        names = [self._keys.projection(name) for name in projections]
        return await self._write_pass(epoch, names, arguments)

    async def conclude(self, epoch: int, outcome: bytes, done_ids: Sequence[str]) -> str:
        """See Journal."""
        first, rest = done_ids[:ACKS], done_ids[ACKS:]
        entry_id = await self._write_pass(epoch, [], [epoch, "outcome", outcome, GROUP, len(first), *first])
        with translated(self._address):
            for start in range(0, len(rest), ACKS):
                await self._redis.xack(self._keys.events, GROUP, *rest[start : start + ACKS])
        return entry_id

    async def read_passes(self, after_id: str, limit: int) -> list[tuple[str, str, bytes]]:
        """See Journal."""
        with translated(self._address):
            found: Any = await self._redis.xrange(self._keys.passes, f"({after_id}", "+", count=limit)
        return [(_text(entry_id), _text(f[b"what"]), f[b"body"]) for entry_id, f in found]

    async def save_snapshot(self, epoch: int, snapshot: Snapshot) -> None:
        """See Snapshots."""
        ms, sequence = id_order(snapshot.position)
        names = [self._keys.snapshot, self._keys.epoch]
        arguments: list[str | bytes | int] = [epoch, snapshot.position, ms, sequence, snapshot.body]
        try:
            await self._evaluate(self._snapshot_script, [(names, arguments)])
        except Fenced as error:
            raise Fenced(epoch, error.theirs) from None

    async def load_snapshot(self) -> Snapshot | None:
        """See Snapshots."""
        with translated(self._address):
            found: Any = await self._redis.hmget(self._keys.snapshot, ["position", "body"])
        position, body = found
        return Snapshot(_text(position), body) if position and body is not None else None

    async def trim(self, retention: Retention, now_ms: int) -> int:
        """See Snapshots."""
        return await self._trimmer.trim(retention, now_ms)

    async def has_lost(self, after_id: str) -> bool:
        """See Snapshots."""
        return await self._trimmer.has_lost(after_id)

    async def quarantine(self, item: Quarantined) -> None:
        """See Quarantine."""
        fields: Any = {"what": item.what, "why": item.why, "body": item.body}
        with translated(self._address):
            await self._redis.xadd(self._keys.quarantine, fields, maxlen=QUARANTINE_LIMIT, approximate=False)

    async def quarantined(self, limit: int) -> list[Quarantined]:
        """See Quarantine."""
        with translated(self._address):
            found: Any = await self._redis.xrevrange(self._keys.quarantine, count=limit)
        return [Quarantined(_text(f[b"what"]), _text(f[b"why"]), f[b"body"]) for _, f in found]

    async def info(self) -> LogInfo:
        """See Log."""
        with translated(self._address):
            identity = _text(await self._redis.get(self._keys.identity))
            length = await self._redis.xlen(self._keys.events)
            last: Any = await self._redis.xrevrange(self._keys.events, count=1)
            groups: Any = await self._redis.xinfo_groups(self._keys.events) if length else []
        pending = sum(int(group["pending"]) + int(group.get("lag") or 0) for group in groups)
        return LogInfo(identity, length, _text(last[0][0]) if last else "0-0", pending)

    async def cluster_of(self, uid: str) -> str:
        """See Log."""
        with translated(self._address):
            await self._redis.set(self._keys.cluster_uid, uid, nx=True)
            return _text(await self._redis.get(self._keys.cluster_uid))

    async def _make_group(self) -> None:
        with translated(self._address):
            try:
                await self._redis.xgroup_create(self._keys.events, GROUP, id="0", mkstream=True)
            except redis_errors.ResponseError as error:
                if not str(error).startswith("BUSYGROUP"):
                    raise

    def _append_call(
        self, kind: str, entries: Iterable[Entry], identity: str
    ) -> tuple[list[str], list[str | bytes | int]]:
        keys = self._keys
        names = [keys.events, keys.identity, keys.seen(kind), keys.tombs(kind)]
        arguments: list[str | bytes | int] = [identity, self._now_ms(), TOMBSTONE_MS]
        for entry in entries:
            what = "m" if entry.type not in CHANGES else "d" if entry.type is EntryType.DELETED else "c"
            digest = hashlib.blake2b(entry.object, digest_size=DIGEST_BYTES).digest()
            arguments += (what, digest.hex(), *encode_entry(entry).values())
        return names, arguments

    async def _write_pass(
        self, epoch: int, projections: list[str], arguments: list[str | bytes | int]
    ) -> str:
        names = [self._keys.passes, self._keys.epoch, self._keys.events, *projections]
        try:
            (entry_id,) = await self._evaluate(self._commit_script, [(names, arguments)])
        except Fenced as error:
            raise Fenced(epoch, error.theirs) from None
        return _text(entry_id)

    async def _evaluate(
        self, script: tuple[str, str], calls: Sequence[tuple[list[str], list[str | bytes | int]]]
    ) -> list[Any]:
        """Run a script once per call in one round trip; a server that lost the script is given it again.

        Repeating is safe: what was appended before the answer got lost is not appended again.
        """
        text, digest = script
        with translated(self._address):
            for attempt in (1, 2):
                async with self._redis.pipeline(transaction=False) as pipe:
                    for names, arguments in calls:
                        pipe.evalsha(digest, len(names), *names, *arguments)
                    try:
                        return await pipe.execute()
                    except redis_errors.NoScriptError:
                        if attempt == 2:
                            raise
                await self._redis.script_load(text)
        raise AssertionError  # the second attempt returns or raises


async def connect(url: str, cluster: str, consumer: str, now_ms: Callable[[], int]) -> RedisLog:
    """Open and check the log at a URL. Raises LogRefused, LogUnavailable."""
    redis, address = open_redis(url), address_of(url)
    try:
        await check_server(redis, address)
    except BaseException:
        await redis.aclose()
        raise
    return RedisLog(redis, address, Keys(cluster), consumer, now_ms)


def _script(name: str) -> tuple[str, str]:
    text = files("eventlog.adapters").joinpath(name).read_text(encoding="utf-8")
    return text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def _messages(answer: Any) -> list[tuple[bytes, dict[bytes, bytes]]]:
    """The entries of an XREADGROUP answer: a list of pairs in RESP2, a mapping in RESP3."""
    if not answer:
        return []
    (entries,) = answer.values() if isinstance(answer, dict) else [pair[1] for pair in answer]
    return entries[0] if entries and isinstance(entries[0], list) else entries


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value or "")
