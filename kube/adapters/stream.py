"""Cuts a watch's bytes into JSON lines and turns each line into an event or an error. Pure.

Always holds: a line of any length is whole before it is decoded, whatever chunks it came in.
"""

from __future__ import annotations

from typing import Any

import orjson

from kube.errors import ApiError, refusal
from kube.port import WatchEvent, WatchType

MAX_LINE = 32 * 1024 * 1024
"""Bytes of an event: etcd takes objects of 1.5 MB, 8 MB at most where someone has raised it."""


class LineCutter:
    """Collects chunks and gives back the lines that are complete."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._held = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that end in this chunk, without their line ends; empty lines are left out."""
        head, *rest = chunk.split(b"\n")
        self._parts.append(head)
        if not rest:
            self._held += len(head)
            return []
        lines = [b"".join(self._parts), *rest[:-1]]
        self._parts, self._held = [rest[-1]], len(rest[-1])
        return [line for line in lines if line.strip()]

    @property
    def is_too_long(self) -> bool:
        """Whether the line that waits for its end is longer than any event."""
        return self._held > MAX_LINE

    @property
    def is_empty(self) -> bool:
        """Whether no part of a line waits for its end."""
        return not any(self._parts)


def decode_event(line: bytes, target: str) -> WatchEvent:
    """The event of one line.

    Raises the error that an ERROR event stands for (Gone for 410), ApiError for a line that is no event.
    """
    try:
        message: Any = orjson.loads(line)
        kind, body = str(message["type"]), message["object"]
        if kind == "ERROR":
            raise error_of_status(body, target)
        if isinstance(body["metadata"], dict):
            return WatchEvent(WatchType(kind), body)
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        pass
    text = line[:120].decode(errors="replace")
    raise ApiError(target, f"the watch sent something that is no event ({text!r}); open it again")


def error_of_status(body: Any, target: str, status: int = 0) -> ApiError:
    """The error for a Status object, or for whatever came in its place with an HTTP `status`."""
    fields = body if isinstance(body, dict) else {}
    code = fields.get("code")
    reason, message = str(fields.get("reason") or ""), str(fields.get("message") or "")
    if not message:
        message = str(body)[:200] if body else f"HTTP {status}"
    return refusal(code if isinstance(code, int) else status, reason, message, target)
