"""What a server's answers, and its silence, mean for the log. No password is ever printed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from redis import exceptions as errors

from eventlog.errors import EntriesMissed, Fenced, LogError, LogRefused, LogReplaced, LogUnavailable

MAX_ANSWER = 160
"""Characters of an answer that are told: a log line has room for 300."""
_FORBIDDEN = re.compile("NOPERM|ACL failure|can't run this command")
"""What servers say of a missing right; inside a script it has no code, and each words it in its own way."""

NEXT_STEPS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile("OOM|maxmemory"), "it is full: raise its maxmemory"),
    (re.compile("READONLY|read.only|Link with MASTER"), "is it a replica? name the primary in --redis"),
    (re.compile("LOADING|loading the dataset"), "it has just started: we go on when it is ready"),
    (re.compile("MISCONF|AOF|RDB snapshot"), "it cannot write its files: look at its disk"),
    (
        re.compile("CLUSTERDOWN|cluster is down|Hash slot not served|TRYAGAIN|Multiple keys"),
        "look at CLUSTER INFO",
    ),
    (re.compile("BUSY"), "a script of someone else's runs too long: SCRIPT KILL ends it"),
    (re.compile("NOREPLICAS"), "too few replicas follow it: start them, or lower min-replicas-to-write"),
    (re.compile("max number of clients"), "raise its maxclients"),
)
"""What to do about a passing fault, by what is in the answer."""


class EndLost(LogError):
    """The server no longer holds what it had acknowledged to us."""


class ForeignValue(LogUnavailable):
    """A key of ours holds what only another program can have written."""

    def __init__(self, address: str, names: Sequence[str] = ()) -> None:
        keys = " and ".join(f"'{name}'" for name in names)
        super().__init__(
            f"Redis at {address} holds another program's value in {keys or 'a key of ours'}: delete it "
            f"(redis-cli DEL {keys or 'KEY'}), or choose another --cluster name"
        )
        self.names = tuple(names)


class LogMoved(LogUnavailable):
    """Another node of the Redis Cluster holds the log."""

    def __init__(self, address: str, host: str, port: int) -> None:
        super().__init__(f"Redis at {address} says that {host}:{port} has the log; we ask there")
        self.host = host
        self.port = port


@contextmanager
def translated(address: str) -> Iterator[None]:
    """Turn the library's errors into the log's."""
    try:
        yield
    except (errors.AuthenticationError, errors.AuthorizationError) as error:
        if "HELLO" in str(error):  # by which the library begins, and which a server with a password refuses
            raise _asks_for_a_password(address) from None
        raise LogRefused(
            f"Redis at {address} does not let us in: {_short(error)}; give user and password as redis://USER:PASSWORD@HOST"
        ) from None
    except errors.BusyLoadingError as error:
        raise LogUnavailable(
            f"Redis at {address} answers: {_short(error)}; {_next_step(str(error))}"
        ) from None
    except errors.MovedError as error:
        raise LogMoved(address, error.host, error.port) from None
    except errors.ResponseError as error:
        raise _meaning(error, address) from None
    except (errors.ConnectionError, errors.TimeoutError, errors.InvalidResponse, OSError) as error:
        cause = _cause(error)
        raise LogUnavailable(
            f"Redis at {address} cannot be reached: {cause}; {_remedy(cause, address)}"
        ) from None


def _cause(error: Exception) -> str:
    """With what the library keeps to itself: TLS faults, a missing file of certificates."""
    text, inner = str(error).rstrip("."), error.__context__
    is_hidden = isinstance(inner, OSError) and inner.strerror and inner.strerror not in text
    return f"{text} ({inner})" if is_hidden else text


def _remedy(cause: str, address: str) -> str:
    if step := _known_step(cause):
        return step
    if "certificate verify failed" in cause:
        return "name the file of its CA: rediss://HOST:PORT?ssl_ca_certs=FILE"
    if address.startswith("rediss:"):
        return "is it running, and with TLS?"
    if address.startswith("redis:") and re.search("closed by server|reset by peer", cause):
        return "is it running? if it speaks TLS, write rediss://"
    return "is it running?"


def _meaning(error: errors.ResponseError, address: str) -> Exception:
    # The library puts the failed command, arguments and all, in front of what a pipeline was answered.
    text = _short(str(error).rpartition("caused error: ")[2].strip("(\"',)"))
    match text.split(" ", 2):
        case ["REPLACED" | "NOGROUP" | "UNBLOCKED", *_] | ["no", "such", "key"]:
            meaning: LogError = LogReplaced()
        case ["MISSED", place, *_]:
            meaning = EntriesMissed("", place)
        case ["LOST", *_]:
            meaning = EndLost()
        case ["FENCED", epoch, *_]:
            meaning = Fenced(-1, int(epoch))
        case ["FOREIGN" | "WRONGTYPE" as word, place, *_]:
            meaning = ForeignValue(address, [place] if word == "FOREIGN" else [])
        case _ if refused := _refusal(error, text, address):
            meaning = refused
        case _:
            meaning = LogUnavailable(f"Redis at {address} answers: {text}; {_next_step(text)}")
    return meaning


def _refusal(error: errors.ResponseError, text: str, address: str) -> LogRefused | None:
    """What no waiting mends."""
    if isinstance(error, errors.NoPermissionError) or _FORBIDDEN.search(text):
        return LogRefused(f"Redis at {address} forbids a command: {text}; see docs/redis.md for the ACL")
    if text.startswith("NOAUTH") or "without any password" in text:
        return _asks_for_a_password(address)
    if "unknown command" in text.lower():
        why = f"lacks a command ({text}); gpubinder needs 7.0 or newer: upgrade it"
        return LogRefused(f"Redis at {address} {why}")
    if "DB index" in text:
        return LogRefused(f"Redis at {address} has no such database: give a lower number behind the /")
    return None


def _asks_for_a_password(address: str) -> LogRefused:
    return LogRefused(f"Redis at {address} asks for a password: give it as redis://:PASSWORD@HOST")


def _short(answer: object) -> str:
    """Without the place in a script, which tells a user nothing; never so long that the step is lost."""
    text = re.sub(r"\.? script: (?:[0-9a-f]+, )?on @user_script:\d+\.?", "", str(answer)).rstrip(".")
    return text if len(text) <= MAX_ANSWER else text[:MAX_ANSWER] + "..."


def _next_step(text: str) -> str:
    return _known_step(text) or "see its own log"


def _known_step(text: str) -> str:
    return next((step for pattern, step in NEXT_STEPS if pattern.search(text)), "")
