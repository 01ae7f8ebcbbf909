"""The log lines of a process: fixed event names with keys, as text for people or as JSON for collectors."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Any

import orjson

LOGGER = logging.getLogger("gpubinder")
_MAX_VALUE = 300
"""Characters of one value: what tenants write must not flood a log."""


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
