"""Connecting to Redis or Valkey, and what its answers mean. No password is ever printed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from redis import exceptions as errors
from redis.asyncio import Redis

from eventlog.errors import Fenced, LogRefused, LogReplaced, LogUnavailable

OLDEST = (7, 0)
"""Redis 7.0: XAUTOCLAIM reports deleted entries."""
TIMEOUT_S = 10.0
"""How long a connection or an answer may take."""


def address_of(url: str) -> str:
    """The URL without user and password."""
    try:
        parts = urlsplit(url)
        host = f"{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}"
    except ValueError:
        return "the given URL"
    return f"{parts.scheme}://{host}{parts.path}"


def open_redis(url: str) -> Redis:
    """A client; makes no request. Raises LogRefused for a URL that is none."""
    try:
        return Redis.from_url(url, socket_timeout=TIMEOUT_S + 10, socket_connect_timeout=TIMEOUT_S)
    except ValueError as error:
        raise LogRefused(
            f"--redis {address_of(url)}: {error}; write redis://HOST:PORT or unix://PATH"
        ) from None


async def check_server(redis: Redis, address: str) -> None:
    """Raises LogRefused for a server that is too old or evicts keys, with what to do about it."""
    with translated(address):
        info = await redis.info()
    version = str(info.get("redis_version", "0"))
    if tuple(int(part) for part in version.split(".")[:2] if part.isdigit()) < OLDEST:
        raise LogRefused(f"Redis at {address} is version {version}; gpubinder needs 7.0 or newer: upgrade it")
    policy = str(info.get("maxmemory_policy", "noeviction"))
    if policy != "noeviction":
        raise LogRefused(
            f"Redis at {address} has maxmemory-policy {policy} and would drop the log when it is full; "
            "set maxmemory-policy noeviction"
        )


@contextmanager
def translated(address: str) -> Iterator[None]:
    """Turn the library's errors into the log's."""
    try:
        yield
    except (errors.AuthenticationError, errors.AuthorizationError) as error:
        raise LogRefused(
            f"Redis at {address} does not let us in: {error}; give user and password as redis://USER:PASSWORD@HOST"
        ) from None
    except errors.NoPermissionError as error:
        raise LogRefused(f"Redis at {address} forbids a command: {error}; see the ACL in the docs") from None
    except errors.ResponseError as error:
        raise _meaning(error, address) from None
    except (errors.ConnectionError, errors.TimeoutError, OSError) as error:
        raise LogUnavailable(f"Redis at {address} cannot be reached: {error}; is it running?") from None


def _meaning(error: errors.ResponseError, address: str) -> Exception:
    # The library puts the failed command, arguments and all, in front of what a pipeline was answered.
    text = str(error).rpartition("caused error: ")[2]
    if "REPLACED" in text or text.startswith(("NOGROUP", "UNBLOCKED")):
        return LogReplaced()
    if fenced := re.search(r"FENCED (\d+)", text):
        return Fenced(-1, int(fenced[1]))
    if text.startswith("NOAUTH") or "without any password" in text:
        return LogRefused(f"Redis at {address} asks for a password: give it as redis://:PASSWORD@HOST")
    if "unknown command" in text.lower():
        return LogRefused(
            f"Redis at {address} lacks a command ({text}); gpubinder needs version 7.0 or newer: upgrade it"
        )
    if text.startswith("NOPERM"):
        return LogRefused(f"Redis at {address} forbids a command: {text}; see the ACL in the docs")
    return LogUnavailable(f"Redis at {address} answers: {text}")
