"""What goes from the streams in Redis, and whether something went that was still needed."""

from __future__ import annotations

from typing import Any

from eventlog.adapters.redis_connection import Link
from eventlog.adapters.redis_scripts import Script
from eventlog.entries import id_order
from eventlog.keys import GROUP, Keys
from eventlog.port import Retention

STEP = 1000
"""Entries that one call looks at, while the server does nothing else."""
STEPS = 100
"""Calls of one trim: the next trim takes the rest."""


class RedisTrimmer:
    """The trimming of one cluster's streams."""

    def __init__(self, link: Link, keys: Keys) -> None:
        self._link = link
        self._keys = keys
        self._script = Script(link, "trim.lua")

    async def trim(self, retention: Retention, now_ms: int) -> int:
        """See Snapshots."""
        await self._trim(self._keys.passes, retention, now_ms, [])
        return await self._trim(self._keys.events, retention, now_ms, [self._keys.snapshot])

    async def has_lost(self, after_id: str) -> bool:
        """See Snapshots."""
        async with self._link.asked() as redis:
            if id_order(after_id) > (0, 0):
                return not await redis.xrange(self._keys.events, after_id, after_id)
            if not await redis.exists(self._keys.events):
                return False
            info: Any = await redis.xinfo_stream(self._keys.events)
            return int(info["entries-added"]) != int(info["length"])

    async def _trim(self, key: str, retention: Retention, now_ms: int, snapshot: list[str]) -> int:
        removed = 0
        oldest_ms, most = max(0, now_ms - retention.retain_ms), max(1, retention.max_entries)
        for _ in range(STEPS):
            went = int(await self._script.run([key, *snapshot], [GROUP, oldest_ms, most, STEP]))
            removed += went
            if went < STEP:
                break
        return removed
