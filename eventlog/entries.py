"""What the log holds: entries, and how they are written as the fields of a stream.

An entry that cannot be read becomes `Unreadable` with its fields, never an exception: one bad entry stops
nobody. Must not know: the store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

VERSION = 1
"""Of the shape of an entry; `UPCASTERS` lift older ones."""

LONGEST_NUMBER = 30
"""Digits of a time or a version; a time in milliseconds has 13."""

Fields = dict[bytes, bytes]


class EntryType(StrEnum):
    """What an entry tells."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    SYNCED = "SYNCED"
    """A complete list of the kind ended here."""
    ABSENT = "ABSENT"
    """The API server does not serve the kind."""
    HEARTBEAT = "HEARTBEAT"
    POLICY = "POLICY"
    """Settings that decisions depend on have changed."""


CHANGES = frozenset({EntryType.ADDED, EntryType.MODIFIED, EntryType.DELETED})
"""The types that are about one object, and are appended once."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry. `object` is the lean object as JSON, empty for types and deletions without one."""

    type: EntryType
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    watcher: str = ""
    ts_ms: int = 0
    object: bytes = b""


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An entry and its place in the log."""

    id: str
    entry: Entry


@dataclass(frozen=True, slots=True)
class Unreadable:
    """What stands at a place in the log and cannot be read, and why."""

    id: str
    fields: Fields
    why: str


Stored = StoredEntry | Unreadable

UPCASTERS: Mapping[int, Callable[[Fields], Fields]] = {}
"""From the fields of a version to those of the next."""


def encode_entry(entry: Entry) -> Fields:
    """The stream fields of an entry."""
    return {
        b"v": b"%d" % VERSION,
        b"t": entry.type.encode(),
        b"k": entry.kind.encode(),
        b"ns": entry.namespace.encode(),
        b"n": entry.name.encode(),
        b"u": entry.uid.encode(),
        b"rv": entry.resource_version.encode(),
        b"w": entry.watcher.encode(),
        b"ts": b"%d" % entry.ts_ms,
        b"o": entry.object,
    }


def decode_entry(entry_id: str, fields: Fields) -> Stored:
    """The entry at a place, lifted to the present version, or why it cannot be read."""
    try:
        lifted = _lift(fields)
        return StoredEntry(
            entry_id,
            Entry(
                type=_type_of(lifted),
                kind=lifted[b"k"].decode(),
                namespace=lifted[b"ns"].decode(),
                name=lifted[b"n"].decode(),
                uid=lifted[b"u"].decode(),
                resource_version=lifted[b"rv"].decode(),
                watcher=lifted[b"w"].decode(),
                ts_ms=_number(lifted, b"ts"),
                object=lifted[b"o"],
            ),
        )
    except KeyError as error:
        return Unreadable(entry_id, fields, f"field {error.args[0].decode()} is missing")
    except ValueError as error:
        return Unreadable(entry_id, fields, str(error)[:200])


def id_order(entry_id: str) -> tuple[int, int]:
    """A stream id as something that can be compared."""
    ms, _, sequence = entry_id.partition("-")
    return int(ms), int(sequence or 0)


def is_newer(version: str, than: str) -> bool:
    """Whether a resourceVersion is newer: by length, then text; up to 128 bits and beyond."""
    return (len(version), version) > (len(than), than)


def _lift(fields: Fields) -> Fields:
    version = _number(fields, b"v")
    while version < VERSION:
        if version not in UPCASTERS:
            raise ValueError(f"no upcaster from version {version}")
        try:
            fields = UPCASTERS[version](fields)
        except (TypeError, LookupError, ValueError) as error:
            raise ValueError(f"lifting from version {version} failed: {error!r}") from None
        version += 1
    if version > VERSION:
        raise ValueError(f"version {version} is newer than {VERSION}: run a newer gpubinder")
    return fields


_LONGEST_TYPE = 20


def _type_of(fields: Fields) -> EntryType:
    word = fields[b"t"]
    try:
        return EntryType(word.decode())
    except ValueError:
        is_word = word.isalpha() and word.isupper() and len(word) <= _LONGEST_TYPE
        told = f": {word.decode()}" if is_word else ""  # that of a newer writer, not what may be secret
        raise ValueError(f"field t is no type of entry{told}") from None


def _number(fields: Fields, name: bytes) -> int:
    """A field as decimal digits; Python's own reading takes spaces, underscores and other scripts, too."""
    digits = fields[name]
    if not digits.removeprefix(b"-").isdigit() or len(digits) > LONGEST_NUMBER:
        raise ValueError(f"field {name.decode()} is no number")
    return int(digits)
