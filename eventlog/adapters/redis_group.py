"""Reading through the consumer group in Redis, so that no entry is passed over unseen.

The group hands each entry out once. When an answer gets lost with its connection, or another reader, deposed
and not aware of it, takes entries, the group stands further on than what we have read; the next read would go
on behind the gap. So each read first compares where the group stands with where we left it.
"""

from __future__ import annotations

from typing import Any

from eventlog.adapters.redis_connection import Link, text_of
from eventlog.adapters.redis_scripts import Arguments, Script
from eventlog.entries import Fields, Stored, decode_entry
from eventlog.errors import EntriesMissed, LogReplaced
from eventlog.keys import GROUP, Keys

CLAIMED = 1000
"""Ids per XAUTOCLAIM."""
DEAD_MS = 60 * 60 * 1000
"""A reader asks every few seconds."""


class RedisGroup:
    """One reader of the group, which is known there as `consumer`."""

    def __init__(self, link: Link, keys: Keys, consumer: str) -> None:
        self._link = link
        self._keys = keys
        self._consumer = consumer
        self._script = Script(link, "read_new.lua")
        self._forget_script = Script(link, "forget_consumers.lua")
        self._stands_at = ""
        """The last entry that the group has handed out, as far as we know."""
        self._identity = ""
        """Of the log in which it stands there."""

    async def read_new(self, limit: int, block_ms: int, identity: str) -> list[Stored]:
        """See EventReader."""
        async with self._link.asked() as redis:
            if not self._stands_at or identity != self._identity:
                self._stands_at, self._identity = await self._place(), identity
            if block_ms > 0:
                await redis.xread({self._keys.events: self._stands_at}, count=1, block=block_ms)
        arguments: Arguments = [identity, GROUP, self._consumer, limit, self._stands_at]
        try:
            last_id, found = await self._script.run([self._keys.events, self._keys.identity], arguments)
        except EntriesMissed as error:
            raise EntriesMissed(self._stands_at, error.theirs) from None
        self._stands_at = text_of(last_id)
        return [decode_entry(text_of(entry_id), _pairs(flat)) for entry_id, flat in found]

    async def take_over(self, identity: str) -> list[str]:
        """See EventReader."""
        ids: list[str] = []
        cursor = "0-0"
        async with self._link.asked() as redis:
            while True:
                # Not only ids: a server tells which entries are gone only when it looks at them.
                answer: Any = await redis.xautoclaim(
                    self._keys.events, GROUP, self._consumer, min_idle_time=0, start_id=cursor, count=CLAIMED
                )
                cursor, claimed, gone = text_of(answer[0]), answer[1], answer[2]
                ids += [text_of(entry_id) for entry_id, _ in claimed] + [text_of(one) for one in gone]
                if cursor == "0-0":
                    break
            self._stands_at, self._identity = await self._place(), identity
        await self._forget_script.run([self._keys.events], [GROUP, self._consumer, DEAD_MS])
        return ids

    async def _place(self) -> str:
        """Where the group stands."""
        groups: Any = await self._link.redis.xinfo_groups(self._keys.events)
        for group in groups:
            if text_of(group["name"]) == GROUP:
                return text_of(group["last-delivered-id"])
        raise LogReplaced


def _pairs(flat: list[bytes]) -> Fields:
    return dict(zip(flat[::2], flat[1::2], strict=True))
