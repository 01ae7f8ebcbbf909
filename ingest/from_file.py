"""Raw watch events from a file into the log, through the same code as those of a live watch.

One JSON object a line: `{kind, type, object}` as in recordings (LIST and SYNC are a list and its end), or
`{type, object}` as `kubectl get -w -o json --output-watch-events` prints. Lines that cannot be read are
counted and passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from eventlog.entries import Entry, EntryType
from eventlog.port import EventAppender
from ingest.entries import Origin, change_entry, marker_entry
from model.kinds import BY_KIND
from model.lean import Malformed

BATCH = 500

_TYPES = {
    "ADDED": EntryType.ADDED,
    "LIST": EntryType.ADDED,
    "MODIFIED": EntryType.MODIFIED,
    "DELETED": EntryType.DELETED,
    "SYNC": EntryType.SYNCED,
}


@dataclass(slots=True)
class Tally:
    """What became of the lines."""

    appended: int = 0
    known: int = 0
    passed_over: int = 0
    """Bookmarks, and kinds that are not ours to watch."""
    unreadable: list[str] = field(default_factory=list)
    """Line number and cause."""


async def feed(
    lines: Iterable[bytes],
    log: EventAppender,
    origin: Origin,
    progress: Callable[[int], None] = lambda _: None,
) -> Tally:
    """Append what the lines tell; `progress` hears of the bytes of each batch."""
    tally, batch, size = Tally(), list[Entry](), 0
    identity = await log.identity()
    for number, line in enumerate(lines, start=1):
        size += len(line)
        try:
            entry = _entry_of(line, origin)
        except Malformed as error:
            tally.unreadable.append(f"line {number}: {error}")
            continue
        if entry is None:
            tally.passed_over += 1
            continue
        batch.append(entry)
        if len(batch) == BATCH:
            await _append(log, batch, identity, tally)
            batch.clear()
            progress(size)
            size = 0
    await _append(log, batch, identity, tally)
    progress(size)
    return tally


async def _append(log: EventAppender, batch: list[Entry], identity: str, tally: Tally) -> None:
    appended = await log.append_once(batch, identity)
    tally.appended += sum(appended)
    tally.known += len(appended) - sum(appended)


def _entry_of(line: bytes, origin: Origin) -> Entry | None:
    if not line.strip():
        return None
    try:
        event: Any = orjson.loads(line)
        obj, change = event["object"], _TYPES.get(event["type"])
        kind = event.get("kind") or obj["kind"]
        at = Origin(origin.watcher, int(event["ts"] * 1000)) if "ts" in event else origin
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise Malformed(f"no watch event: {error!r:.80}") from None
    if change is None or kind not in BY_KIND:
        return None
    if change is EntryType.SYNCED:
        version = str((obj.get("metadata") or {}).get("resourceVersion") or "")
        return marker_entry(kind, change, at, version)
    return change_entry(BY_KIND[kind], change, obj, at)
