"""What goes from the streams in Redis, and whether something went that was still needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from redis import exceptions as redis_errors
from redis.asyncio import Redis

from eventlog.adapters.redis_connection import text_of, translated
from eventlog.entries import id_order
from eventlog.keys import GROUP, Keys
from eventlog.port import Retention

SURPLUS = 10_000
"""Entries beyond the limit that one trim looks at: the next trim takes the rest."""


@dataclass(slots=True)
class RedisTrimmer:
    """The trimming of one cluster's streams."""

    redis: Redis
    address: str
    keys: Keys

    async def trim(self, retention: Retention, now_ms: int) -> int:
        """See Snapshots."""
        with translated(self.address):
            kept_from = await self._kept_from()
            removed = 0
            if kept_from is not None:
                removed = await self._trim_stream(self.keys.events, retention, now_ms, kept_from)
            await self._trim_stream(self.keys.passes, retention, now_ms, None)
        return removed

    async def has_lost(self, after_id: str) -> bool:
        """See Snapshots."""
        with translated(self.address):
            if id_order(after_id) > (0, 0):
                return not await self.redis.xrange(self.keys.events, after_id, after_id)
            if not await self.redis.exists(self.keys.events):
                return False
            info: Any = await self.redis.xinfo_stream(self.keys.events)
            return int(info["entries-added"]) != int(info["length"])

    async def _kept_from(self) -> tuple[int, int] | None:
        """The first place that must stay: the snapshot's, or the oldest entry that is not acknowledged."""
        position = await self.redis.hget(self.keys.snapshot, "position")
        if not position:
            return None
        try:
            pending: Any = await self.redis.xpending(self.keys.events, GROUP)
        except redis_errors.ResponseError as error:
            if not str(error).startswith("NOGROUP"):
                raise
            return None
        oldest = pending["min"] if pending["pending"] else position
        return min(id_order(text_of(position)), id_order(text_of(oldest)))

    async def _trim_stream(
        self, key: str, retention: Retention, now_ms: int, kept_from: tuple[int, int] | None
    ) -> int:
        cut = (max(0, now_ms - retention.retain_ms), 0)
        surplus = min(SURPLUS, await self.redis.xlen(key) - max(1, retention.max_entries))
        if surplus > 0:
            oldest: Any = await self.redis.xrange(key, "-", "+", count=surplus + 1)
            cut = max(cut, id_order(text_of(oldest[-1][0])))
        if kept_from is not None:
            cut = min(cut, kept_from)
        return int(await self.redis.xtrim(key, minid=f"{cut[0]}-{cut[1]}", approximate=False))
