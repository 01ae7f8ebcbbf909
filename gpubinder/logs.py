"""The log lines of a process: fixed event names with keys, as text for people or as JSON for collectors."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

LOGGER = logging.getLogger("gpubinder")
_MAX_VALUE = 300
"""Characters of one value: what tenants write must not flood a log."""


REPEAT_S = 60.0
"""How long lines about the same thing are counted instead of said."""
_MAX_WINDOWS = 500
"""Things that lines are counted about at once."""


def configure(log_format: str, level: str = "INFO") -> None:
    """Write log lines to stderr, as `text` or `json`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if log_format == "json" else TextLines())
    LOGGER.handlers[:] = [handler]
    LOGGER.setLevel(level)
    LOGGER.propagate = False
    # The Kubernetes library logs what it raises or what we check for and tell in one line.
    logging.getLogger("kubernetes").propagate = False
    logging.getLogger("kubernetes").addHandler(logging.NullHandler())


def say(level: int, event: str, **keys: Any) -> None:
    """One line: an event name and its keys."""
    LOGGER.log(level, event, extra={"keys": keys})


@dataclass(slots=True)
class _Window:
    """Lines about one thing since its first."""

    level: int
    began_s: float
    said: int = 0
    left_out: int = 0


class Repeats:
    """Says what recurs a few times a minute, and then how many times it was left out."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._windows: dict[tuple[str, str], _Window] = {}

    def say(self, level: int, event: str, about: str, at_most: int, **keys: Any) -> None:
        """One line, or none when `at_most` about the same were said within `REPEAT_S`."""
        self.tell_left_out()
        if len(self._windows) >= _MAX_WINDOWS:
            self._tell(next(iter(self._windows)))
        window = self._windows.setdefault((event, about), _Window(level, self._clock()))
        if window.said < at_most:
            window.said += 1
            say(level, event, **keys)
        else:
            window.left_out += 1

    def tell_left_out(self) -> None:
        """What was left out of windows that have ended; to be called every few seconds."""
        now_s = self._clock()
        for key in [key for key, window in self._windows.items() if now_s - window.began_s >= REPEAT_S]:
            self._tell(key)

    def _tell(self, key: tuple[str, str]) -> None:
        window = self._windows.pop(key)
        if window.left_out:
            say(window.level, f"{key[0]}_again", times=window.left_out, cause=key[1])


class TextLines(logging.Formatter):
    """`11:20:03 INFO pass entries=3 placed=1`; control characters are escaped."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        at = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        keys = " ".join(f"{key}={_text(value)}" for key, value in _keys(record).items())
        return f"{at} {record.levelname:<7} {record.getMessage()} {keys}".rstrip()


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"ts": at, "level": record.levelname.lower(), "event": record.getMessage()} | _keys(record)
        return orjson.dumps(line, default=str).decode()


def _keys(record: logging.LogRecord) -> dict[str, Any]:
    keys: dict[str, Any] = getattr(record, "keys", {})
    return keys


def plain(text: str) -> str:
    """What others wrote, as part of one line: cut, and without anything that a terminal would obey."""
    cut = text if len(text) <= _MAX_VALUE else text[:_MAX_VALUE] + "..."
    return cut if cut.isprintable() else repr(cut)[1:-1]


def _text(value: Any) -> str:
    text = plain(f"{value:.3f}" if isinstance(value, float) else str(value))
    return f'"{text}"' if " " in text or not text else text
