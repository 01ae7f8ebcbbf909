"""Connecting to Redis or Valkey, and staying connected to the node that has the log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from redis import exceptions as errors
from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from eventlog.adapters.redis_answers import ForeignValue, LogMoved, translated
from eventlog.adapters.redis_foreign import foreign_keys
from eventlog.errors import LogRefused, LogUnavailable
from eventlog.keys import Keys

OLDEST = (7, 0)
"""Redis 7.0: XAUTOCLAIM reports deleted entries."""
TIMEOUT_S = 10.0
"""How long a connection or an answer may take."""
MOVES = 5
"""Nodes of a Redis Cluster that are asked for the log in turn; a settled one needs two."""

_UNCLEAR = "the given URL"
"""What is said of a URL that cannot be shown without the risk of a password."""


def address_of(url: str) -> str:
    """The URL without user, password and options; nothing of one in which a password may be elsewhere.

    A password with a bare `/`, `#` or `?` cuts a URL in the wrong places: an `@` behind the host tells.
    """
    try:
        parts = urlsplit(url)
        host = f"{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}"
    except ValueError:
        return _UNCLEAR
    is_socket = parts.scheme == "unix" and not parts.netloc
    if "@" in parts.path + parts.query + parts.fragment and not is_socket:
        return _UNCLEAR
    return f"{parts.scheme}://{host}{parts.path}" if parts.scheme else parts.path


def open_redis(url: str) -> Redis:
    """A client; makes no request. Raises LogRefused for a URL that is none.

    It repeats nothing by itself: an intent would be written twice, and entries whose delivery got lost would
    be passed over by the next read. Who calls knows what to do about LogUnavailable.
    """
    if address_of(url) == _UNCLEAR:
        raise _no_such_url(url)
    try:
        redis = Redis.from_url(
            url,
            socket_timeout=TIMEOUT_S + 10,
            socket_connect_timeout=TIMEOUT_S,
            retry=Retry(NoBackoff(), 0),
        )
        # Makes no request, and tells the options behind the URL's `?` that no connection takes.
        redis.connection_pool.make_connection()  # type: ignore[no-untyped-call]
    except (ValueError, TypeError, errors.RedisError):  # its text may quote a piece of the password
        raise _no_such_url(url) from None
    return redis


def _no_such_url(url: str) -> LogRefused:
    return LogRefused(
        f"--redis {address_of(url)} is no such URL; write redis://USER:PASSWORD@HOST:PORT, rediss:// for "
        "TLS, or unix://PATH, with options of redis-py alone behind a ?; in a password write / as %2F, "
        "# as %23, ? as %3F and @ as %40"
    )


class Link:
    """A client of the server at a URL, or of that node of its Redis Cluster which has the log.

    One log's keys are in one slot, so that one node has all. Nodes say where a slot has gone; when the one
    followed to is away, the URL is asked again. Makes no request by itself. Raises LogRefused for a URL that
    is none. Who names the log's keys is told which of them holds another program's value.
    """

    def __init__(self, url: str, keys: Keys | None = None) -> None:
        self.redis = open_redis(url)
        self.address = address_of(url)
        self._keys = keys
        self._first = self.redis.connection_pool

    async def close(self) -> None:
        """Close every connection."""
        await self.redis.aclose()

    @asynccontextmanager
    async def asked(self) -> AsyncIterator[Redis]:
        """The client, for requests whose errors become the log's; after LogMoved it has gone elsewhere."""
        pool = self.redis.connection_pool
        try:
            with translated(self.address):
                yield self.redis
        except LogMoved as moved:
            await self._leave(pool, moved.host, moved.port)
            raise
        except ForeignValue as error:
            raise await self._named(error) from None
        except LogUnavailable:
            if pool is not self._first:
                await self._leave(pool)
            raise

    async def check(self, key: str) -> None:
        """Go to the node that has a key, and look at it.

        Raises LogUnavailable, and LogRefused for a server that is too old or evicts keys.
        """
        for attempt in range(MOVES):
            async with self.asked() as redis:
                info = await redis.info()
            _check_server(info, self.address)
            try:
                async with self.asked() as redis:
                    await redis.exists(key)
            except LogMoved:
                if attempt == MOVES - 1:
                    raise
            else:
                return

    async def _named(self, error: ForeignValue) -> ForeignValue:
        if error.names or self._keys is None:
            return error
        with translated(self.address):
            return ForeignValue(self.address, await foreign_keys(self.redis, self._keys))

    async def _leave(self, pool: ConnectionPool, host: str = "", port: int = 0) -> None:
        """Go to another node, or back to that of the URL; who is still asking at the old one fails, too."""
        if self.redis.connection_pool is not pool or "path" in pool.connection_kwargs:
            return  # another request was quicker; or the URL is a socket, which leads nowhere else
        self.redis.connection_pool = self._first
        if port:
            place = {"host": host or pool.connection_kwargs["host"], "port": port}
            self.redis.connection_pool = ConnectionPool(
                pool.connection_class, pool.max_connections, **(pool.connection_kwargs | place)
            )
        await pool.disconnect()


def _check_server(info: Mapping[str, Any], address: str) -> None:
    version = str(info.get("redis_version", "0"))
    if tuple(int(part) for part in version.split(".")[:2] if part.isdigit()) < OLDEST:
        raise LogRefused(f"Redis at {address} is version {version}; gpubinder needs 7.0 or newer: upgrade it")
    policy = str(info.get("maxmemory_policy", "noeviction"))
    if policy != "noeviction":
        raise LogRefused(
            f"Redis at {address} has maxmemory-policy {policy} and would drop the log when it is full; "
            "set maxmemory-policy noeviction"
        )


def text_of(value: Any) -> str:
    """An answer as text; empty for none."""
    return value.decode() if isinstance(value, bytes) else str(value or "")
