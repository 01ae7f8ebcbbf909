"""Raw watch events from a file or a pipe into the log, through the same code as those of a live watch.

JSON values, each `{kind, type, object}` as in recordings (LIST and SYNC are a list and its end), or
`{type, object}` as `kubectl get -w -o json --output-watch-events` prints, over as many lines as it likes.
What cannot be read is counted and passed over; an object that cannot is in quarantine, as from a live watch.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from eventlog.entries import Entry, EntryType
from eventlog.port import EventAppender, Quarantine, Quarantined
from ingest.entries import Origin, change_entry, marker_entry
from ingest.json_values import Cut, ValueCutter
from model.kinds import BY_KIND, WatchedKind
from model.lean import Malformed

BATCH = 500
NAMED = 5
"""Unreadable values that are told one by one; all are counted."""

_TYPES = {
    "ADDED": EntryType.ADDED,
    "LIST": EntryType.ADDED,
    "MODIFIED": EntryType.MODIFIED,
    "DELETED": EntryType.DELETED,
    "SYNC": EntryType.SYNCED,
}
_EVENTS = f"{', '.join(_TYPES)} or BOOKMARK"


class FedLog(EventAppender, Quarantine, Protocol):
    """The log as a feed uses it."""


class Unusable(Exception):
    """The input as a whole cannot be watch events: `why`, and the `next_step`."""

    def __init__(self, why: str, next_step: str) -> None:
        super().__init__(f"{why}; {next_step}")


class _ObjectMalformed(Malformed):
    """An object of a kind that is ours to watch."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"{what}: {why}")
        self.item = Quarantined(what, why)


@dataclass(slots=True)
class Tally:
    """What became of the values."""

    appended: int = 0
    known: int = 0
    passed_over: int = 0
    """Bookmarks, and kinds that are not ours to watch."""
    unreadable: int = 0
    named: list[str] = field(default_factory=list)
    """Line and cause of the first unreadable ones."""

    @property
    def read(self) -> int:
        """How many values were watch events."""
        return self.appended + self.known + self.passed_over


async def feed(
    chunks: AsyncIterable[bytes],
    log: FedLog,
    origin: Origin,
    progress: Callable[[int], None] = lambda _: None,
    tally: Tally | None = None,
) -> Tally:
    """Append what the chunks tell, each as soon as it is there; `progress` hears of their bytes.

    Who may have to stop early gives the tally. Raises Unusable, LogError.
    """
    tally, cutter, identity = tally or Tally(), ValueCutter(), await log.identity()
    is_first = True
    async for chunk in chunks:
        if is_first and chunk:
            refuse_other_formats(chunk)
            is_first = False
        await _append(_Into(log, origin, identity, tally), cutter.feed(chunk))
        progress(len(chunk))
    await _append(_Into(log, origin, identity, tally), cutter.close())
    return tally


@dataclass(frozen=True, slots=True)
class _Into:
    """Where the values go."""

    log: FedLog
    origin: Origin
    identity: str
    tally: Tally


async def _append(into: _Into, cuts: Iterable[Cut]) -> None:
    batch: list[Entry] = []
    for cut in cuts:
        try:
            if cut.problem:
                raise Malformed(cut.problem)  # noqa: TRY301 - told as what is no event is
            entry = _entry_of(cut.value, into.origin)
        except Malformed as error:
            into.tally.unreadable += 1
            if len(into.tally.named) < NAMED:
                into.tally.named.append(f"line {cut.line}: {error}")
            if isinstance(error, _ObjectMalformed):
                await into.log.quarantine(error.item)
            continue
        if entry is None:
            into.tally.passed_over += 1
            continue
        batch.append(entry)
        if len(batch) == BATCH:
            await _append_batch(into, batch)
            batch.clear()
    await _append_batch(into, batch)


async def _append_batch(into: _Into, batch: list[Entry]) -> None:
    appended = await into.log.append_once(batch, into.identity)
    into.tally.appended += sum(appended)
    into.tally.known += len(appended) - sum(appended)


def _entry_of(event: Any, origin: Origin) -> Entry | None:
    """None for what is not ours. Raises Malformed."""
    _check_event(event)
    obj, change = event["object"], _TYPES.get(event["type"])
    name = event.get("kind") or obj.get("kind")
    if event["type"] == "ERROR":
        text = f"{obj.get('message')!s:.120}"
        raise Malformed(f"the watch ended with an error here, what came after it is missing: {text}")
    if change is None and event["type"] != "BOOKMARK":
        raise Malformed(f"no watch event: its type is not {_EVENTS}")
    kind = BY_KIND.get(name) if isinstance(name, str) else None
    if change is None or kind is None or not _is_of_group(kind, obj):
        return None
    at = Origin(origin.watcher, _ms(event["ts"])) if "ts" in event else origin
    if change is EntryType.SYNCED:
        return marker_entry(kind.resource.kind, change, at, _version_of(obj))
    try:
        return change_entry(kind, change, obj, at)
    except Malformed as error:
        meta = obj.get("metadata")
        named = f"{meta.get('namespace') or ''}/{meta.get('name')}" if isinstance(meta, dict) else "?"
        raise _ObjectMalformed(f"{kind.resource.kind} {named[:600].lstrip('/')}", str(error)) from None


def _check_event(event: Any) -> None:
    if not isinstance(event, dict):
        raise Malformed("no watch event: no JSON object")
    if "items" in event:
        raise Malformed("no watch event but a list: kubectl tells events with -w --output-watch-events")
    if "metadata" in event:
        raise Malformed("no watch event but a bare object: kubectl tells events with --output-watch-events")
    for key, kind in (("type", str), ("object", dict)):
        if not isinstance(event.get(key), kind):
            raise Malformed(f"no watch event: `{key}` is missing or of another type")


def _is_of_group(kind: WatchedKind, obj: dict[str, Any]) -> bool:
    """Kinds of other groups may have the same name; recordings leave the group out."""
    group, _, _ = str(obj.get("apiVersion") or kind.resource.api_version).rpartition("/")
    return group == kind.resource.group


def _version_of(obj: dict[str, Any]) -> str:
    meta = obj.get("metadata")
    return str(meta.get("resourceVersion") or "") if isinstance(meta, dict) else ""


def _ms(seconds: Any) -> int:
    try:
        return int(seconds * 1000)
    except (TypeError, ValueError, OverflowError):
        raise Malformed("no watch event: `ts` is no time in seconds") from None


_FORMATS = (
    (b"\x1f\x8b", "gzip", "gzip -dc"),
    (b"\x28\xb5\x2f\xfd", "zstd", "zstd -dc"),
    (b"BZh", "bzip2", "bzip2 -dc"),
    (b"\xfd7zXZ\x00", "xz", "xz -dc"),
    (b"\x04\x22\x4d\x18", "lz4", "lz4 -dc"),
    (b"PK\x03\x04", "zip", "unzip -p"),
)


def refuse_other_formats(beginning: bytes) -> None:
    """Tell compressed and UTF-16 input by its first bytes. Raises Unusable."""
    for magic, name, command in _FORMATS:
        if beginning.startswith(magic):
            raise Unusable(
                f"it is compressed ({name})", f"unpack it: {command} FILE | gpubinder watch --from -"
            )
    if beginning.startswith((b"\xff\xfe", b"\xfe\xff")):
        step = "convert it: iconv -f UTF-16 -t UTF-8 FILE | gpubinder watch --from -"
        raise Unusable("it is UTF-16", step)


__all__ = ["BATCH", "FedLog", "Tally", "Unusable", "feed", "refuse_other_formats"]
