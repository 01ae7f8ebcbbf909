"""What the log holds: entries."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class EntryType(StrEnum):
    """What an entry tells."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    SYNCED = "SYNCED"
    ABSENT = "ABSENT"
    HEARTBEAT = "HEARTBEAT"
    POLICY = "POLICY"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry."""

    type: EntryType
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    watcher: str = ""
    ts_ms: int = 0
    object: bytes = b""
