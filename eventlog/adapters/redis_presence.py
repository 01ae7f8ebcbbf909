"""Presence in Redis: one hash, one script, the server's clock."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

from redis.asyncio import Redis

from eventlog.adapters.redis_connection import address_of, open_redis, translated
from eventlog.keys import Keys

FORGET_MS = 60 * 60 * 1000
"""A name that was not shown for an hour leaves the hash: restarts make new ones."""


def connect(url: str, cluster: str) -> RedisPresence:
    """The presence of one cluster's replicas; makes no request. Raises LogRefused for a URL that is none."""
    return RedisPresence(open_redis(url), address_of(url), Keys(cluster).watchers)


@dataclass(slots=True)
class RedisPresence:
    """`key` is the hash of one cluster's replicas."""

    redis: Redis
    address: str
    key: str

    async def close(self) -> None:
        """Close every connection."""
        await self.redis.aclose()

    async def show(self, name: str) -> None:
        """See Presence."""
        await self._evaluate(name, 0)

    async def present(self, within_ms: int) -> list[str]:
        """See Presence."""
        return sorted(await self._evaluate("", within_ms))

    async def _evaluate(self, name: str, within_ms: int) -> list[str]:
        script = files("eventlog.adapters").joinpath("presence.lua").read_text(encoding="utf-8")
        with translated(self.address):
            names = await self.redis.eval(script, 1, self.key, name, str(within_ms), str(FORGET_MS))
        return [one.decode() if isinstance(one, bytes) else str(one) for one in names]
