"""Connecting to Redis or Valkey, and what its answers mean. No password is ever printed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from redis import exceptions as errors
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from eventlog.errors import EntriesMissed, Fenced, LogError, LogRefused, LogReplaced, LogUnavailable

OLDEST = (7, 0)
"""Redis 7.0: XAUTOCLAIM reports deleted entries."""
TIMEOUT_S = 10.0
"""How long a connection or an answer may take."""


_FORBIDDEN = re.compile("NOPERM|ACL failure|can't run this command")
"""What servers say of a missing right; inside a script it has no code, and each words it in its own way."""


_UNCLEAR = "the given URL"
"""What is said of a URL that cannot be shown without the risk of a password."""


class EndLost(LogError):
    """The server no longer holds what it had acknowledged to us."""


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


def text_of(value: Any) -> str:
    """An answer as text; empty for none."""
    return value.decode() if isinstance(value, bytes) else str(value or "")


@contextmanager
def translated(address: str) -> Iterator[None]:
    """Turn the library's errors into the log's."""
    try:
        yield
    except (errors.AuthenticationError, errors.AuthorizationError) as error:
        raise LogRefused(
            f"Redis at {address} does not let us in: {error}; give user and password as redis://USER:PASSWORD@HOST"
        ) from None
    except errors.ResponseError as error:
        raise _meaning(error, address) from None
    except (errors.ConnectionError, errors.TimeoutError, errors.InvalidResponse, OSError) as error:
        is_it = "is it running, and with TLS?" if address.startswith("rediss:") else "is it running?"
        raise LogUnavailable(f"Redis at {address} cannot be reached: {_cause(error)}; {is_it}") from None


def _cause(error: Exception) -> str:
    """With what the library keeps to itself: TLS faults, a missing file of certificates."""
    text, inner = str(error).rstrip("."), error.__context__
    is_hidden = isinstance(inner, OSError) and inner.strerror and inner.strerror not in text
    return f"{text} ({inner})" if is_hidden else text


def _meaning(error: errors.ResponseError, address: str) -> Exception:
    # The library puts the failed command, arguments and all, in front of what a pipeline was answered.
    text = str(error).rpartition("caused error: ")[2].strip("(\"',)")
    match text.split(" ", 2):
        case ["REPLACED" | "NOGROUP" | "UNBLOCKED", *_] | ["no", "such", "key"]:
            meaning: LogError = LogReplaced()
        case ["MISSED", place, *_]:
            meaning = EntriesMissed("", place)
        case ["LOST", *_]:
            meaning = EndLost()
        case ["FENCED", epoch, *_]:
            meaning = Fenced(-1, int(epoch))
        case _ if isinstance(error, errors.NoPermissionError) or _FORBIDDEN.search(text):
            meaning = LogRefused(
                f"Redis at {address} forbids a command: {text}; see docs/redis.md for the ACL"
            )
        case _ if text.startswith("NOAUTH") or "without any password" in text:
            meaning = LogRefused(f"Redis at {address} asks for a password: give it as redis://:PASSWORD@HOST")
        case _ if "unknown command" in text.lower():
            meaning = LogRefused(
                f"Redis at {address} lacks a command ({text}); gpubinder needs 7.0 or newer: upgrade it"
            )
        case _ if "DB index" in text:
            meaning = LogRefused(f"Redis at {address} has no such database: give a lower number behind the /")
        case _ if isinstance(error, errors.ReadOnlyError):
            meaning = LogUnavailable(
                f"Redis at {address} answers: {text}; is it a replica? name the primary in --redis"
            )
        case _:
            meaning = LogUnavailable(f"Redis at {address} answers: {text}; see its own log")
    return meaning
