"""Presence in Redis: one hash, one script, the server's clock."""

from __future__ import annotations

from dataclasses import dataclass

from eventlog.adapters.redis_connection import Link, text_of
from eventlog.adapters.redis_scripts import Script
from eventlog.keys import Keys

FORGET_MS = 60 * 60 * 1000
"""A name that was not shown for an hour leaves the hash: restarts make new ones."""


def connect(url: str, cluster: str) -> RedisPresence:
    """The presence of one cluster's replicas; makes no request. Raises LogRefused for a URL that is none."""
    keys = Keys(cluster)
    link = Link(url, keys)
    return RedisPresence(link, Script(link, "presence.lua"), keys.watchers)


@dataclass(slots=True)
class RedisPresence:
    """`key` is the hash of one cluster's replicas."""

    link: Link
    script: Script
    key: str

    async def close(self) -> None:
        """Close every connection."""
        await self.link.close()

    async def show(self, name: str) -> None:
        """See Presence."""
        await self._evaluate(name, 0)

    async def present(self, within_ms: int) -> list[str]:
        """See Presence."""
        return sorted(await self._evaluate("", within_ms))

    async def _evaluate(self, name: str, within_ms: int) -> list[str]:
        names = await self.script.run([self.key], [name, within_ms, FORGET_MS])
        return [text_of(one) for one in names]
