"""What the log can do, by user: watchers append, the binder reads and commits, people ask how it is.

Every method may raise `eventlog.errors.LogError`. A log has an identity, made when it begins: who listed for
one log must not append to another, so appending and reading name the identity and raise LogReplaced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from eventlog.entries import Entry, Stored, id_order

START = "0-0"
"""The place before the first entry."""


@dataclass(frozen=True, slots=True)
class Seen:
    """An object that the log holds, as last seen."""

    namespace: str
    name: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class LogInfo:
    """How the log is: its length, and how many entries the binder has still to acknowledge or read."""

    identity: str
    entries: int
    last_id: str
    pending: int
    lag_ms: int = 0
    """From the last entry that the binder has been given to the newest one; 0 when it has it."""


def lag_between(given_id: str, last_id: str) -> int:
    """Milliseconds from one entry to a later one; 0 where none was given yet: a count says more then."""
    return 0 if given_id == START else max(0, id_order(last_id)[0] - id_order(given_id)[0])


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The fold of all entries up to `position`, as bytes."""

    position: str
    body: bytes


TOMBSTONE_MS = 30 * 60 * 1000
"""How long a deleted uid is remembered: longer than any watcher can lag without listing again."""
QUARANTINE_LIMIT = 1000
"""Enough to see a pattern; what is broken by the thousand is broken in one way."""


@dataclass(frozen=True, slots=True)
class Quarantined:
    """Something that could not be read: what it was, why not, and the bytes that stand in the log.

    Of an object that was refused on its way into the log there are no bytes: they may hold secrets.
    """

    what: str
    why: str
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Retention:
    """How much of the log is kept behind the newest snapshot, for people and replays."""

    retain_ms: int = 24 * 60 * 60 * 1000
    max_entries: int = 1_000_000


class EventAppender(Protocol):
    """For watchers."""

    async def identity(self) -> str:
        """The identity of the log; a log without one begins now."""
        ...

    async def append_once(self, entries: Sequence[Entry], identity: str) -> list[bool]:
        """Append in order; False for a change that is known, older, or leaves the lean object as it was."""
        ...

    async def seen(self, kind: str) -> Mapping[str, Seen]:
        """The living objects of a kind that the log holds, by uid."""
        ...

    async def begin_anew(self, identity: str) -> None:
        """Drop what the log holds of the cluster, which has gone back in time (an older etcd restored).

        Its new versions count from below what was seen, and append-once would take none of them; its leases
        count from below the highest epoch. The log gets a new identity, so everyone lists again; of several
        who ask for the same one, the first does it. The journal stays.
        """
        ...


class EventReader(Protocol):
    """For the binder: history, then what is new, each entry until it is acknowledged."""

    async def read_range(self, after_id: str, limit: int) -> list[Stored]:
        """Entries after a place, oldest first."""
        ...

    async def read_new(self, limit: int, block_ms: int, identity: str) -> list[Stored]:
        """Entries that the group has not delivered yet; waits up to `block_ms` for the first.

        Raises EntriesMissed when the group has delivered entries that did not come here, as when an answer
        got lost or a deposed reader woke: take over, and fold again from a known place.
        """
        ...

    async def take_over(self) -> list[str]:
        """Make every unacknowledged entry ours; returns their ids, also of those trimmed away since."""
        ...


class Journal(Protocol):
    """For the binder: what a pass intends, before its effects, and what came of it."""

    async def commit(self, epoch: int, intent: bytes, projections: Mapping[str, Mapping[str, bytes]]) -> str:
        """Append an intent and store fields of read models in one transaction; raises Fenced. Returns its id.

        A field with an empty value is taken away.
        """
        ...

    async def recall(self, projection: str) -> dict[str, bytes]:
        """The fields of a read model, by name."""
        ...

    async def conclude(self, epoch: int, outcome: bytes, done_ids: Sequence[str]) -> str:
        """Append an outcome and acknowledge entries in one transaction; raises Fenced. Returns its id."""
        ...

    async def read_passes(self, after_id: str, limit: int) -> list[tuple[str, str, bytes]]:
        """Journal entries after a place: id, `intent` or `outcome`, body."""
        ...


class Snapshots(Protocol):
    """For the binder: where to begin from, and what may go then."""

    async def save_snapshot(self, epoch: int, snapshot: Snapshot) -> None:
        """Keep the fold of the log up to a place; raises Fenced. An older place never replaces a newer."""
        ...

    async def load_snapshot(self) -> Snapshot | None:
        """The newest one, or None."""
        ...

    async def trim(self, retention: Retention, now_ms: int) -> int:
        """Remove entries behind the snapshot that are too old or too many; returns how many went.

        What is not acknowledged stays, and so does everything while there is no snapshot. The journal is
        trimmed by the same limits.
        """
        ...

    async def has_lost(self, after_id: str) -> bool:
        """Whether whoever has read up to a place may have missed something.

        The entry there is gone: streams lose their oldest entries first, so later ones may be, too; or the
        log has lost its end, as after a failover to a replica that lagged.
        """
        ...


class Quarantine(Protocol):
    """For what cannot be read: kept for people, bounded, and in nobody's way."""

    async def quarantine(self, item: Quarantined) -> None:
        """Keep it; beyond `QUARANTINE_LIMIT` the oldest go."""
        ...

    async def quarantined(self, limit: int) -> list[Quarantined]:
        """The newest first."""
        ...


class Log(EventAppender, EventReader, Journal, Snapshots, Quarantine, Protocol):
    """All of it: what an adapter implements."""

    async def info(self) -> LogInfo:
        """How the log is."""
        ...

    async def cluster_of(self, uid: str) -> str:
        """The uid of the cluster whose log this is; a log without one becomes that of `uid`."""
        ...

    async def hand_over(self, uid: str) -> None:
        """Begin anew as the log of the cluster `uid`, whoever's it was."""
        ...
