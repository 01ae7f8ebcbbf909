"""The log in memory: the same rules as in Redis, for simulations and tests. Works on any event loop."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from eventlog.entries import (
    CHANGES,
    Entry,
    EntryType,
    Fields,
    Stored,
    decode_entry,
    encode_entry,
    id_order,
    is_newer,
)
from eventlog.errors import Fenced, LogReplaced
from eventlog.port import (
    QUARANTINE_LIMIT,
    START,
    TOMBSTONE_MS,
    LogInfo,
    Quarantined,
    Retention,
    Seen,
    Snapshot,
    lag_between,
)


@dataclass(slots=True)
class _Known:
    resource_version: str
    digest: str
    namespace: str
    name: str
    is_deleted: bool = False


@dataclass(slots=True)
class MemoryLog:
    """`now_ms` gives the time for ids and tombstones; `identities` makes a new identity after `flush`."""

    now_ms: Callable[[], int]
    handed_out: str = START
    """The last entry that was given to a reader."""
    _identities: count[int] = field(default_factory=lambda: count(1))
    _identity: str = ""
    _events: list[tuple[str, Fields]] = field(default_factory=list)
    _known: dict[str, dict[str, _Known]] = field(default_factory=dict)
    _tombs: dict[tuple[str, str], int] = field(default_factory=dict)
    _passes: list[tuple[str, str, bytes]] = field(default_factory=list)
    _projections: dict[str, dict[str, bytes]] = field(default_factory=dict)
    _epoch: int = -1
    _delivered: int = 0
    _pending: dict[str, None] = field(default_factory=dict)
    _cluster_uid: str = ""
    _quarantine: list[Quarantined] = field(default_factory=list)
    _snapshot: Snapshot | None = None
    _removed: int = 0
    _last_id: tuple[int, int] = (0, 0)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    async def identity(self) -> str:
        """See EventAppender."""
        if not self._identity:
            self._identity = f"memory-{next(self._identities)}"
        return self._identity

    async def append_once(self, entries: Sequence[Entry], identity: str) -> list[bool]:
        """See EventAppender."""
        self._check(identity)
        self._forget_the_long_gone()
        return [self._append(entry) for entry in entries]

    async def seen(self, kind: str) -> Mapping[str, Seen]:
        """See EventAppender."""
        return {
            uid: Seen(known.namespace, known.name, known.resource_version)
            for uid, known in self._known.get(kind, {}).items()
            if not known.is_deleted
        }

    async def begin_anew(self, identity: str) -> None:
        """See EventAppender."""
        if identity == self._identity:
            self._drop_events()
            await self.identity()

    async def read_range(self, after_id: str, limit: int) -> list[Stored]:
        """See EventReader."""
        after = id_order(after_id)
        later = [(i, f) for i, f in self._events if id_order(i) > after]
        return [decode_entry(entry_id, fields) for entry_id, fields in later[:limit]]

    async def read_new(self, limit: int, block_ms: int, identity: str) -> list[Stored]:
        """See EventReader. All readers are one here: none misses what another has read."""
        await self.wait_for_news(block_ms, identity)
        batch = self._events[self._delivered : self._delivered + limit]
        self._delivered += len(batch)
        self.handed_out = batch[-1][0] if batch else self.handed_out
        self._pending.update((entry_id, None) for entry_id, _ in batch)
        return [decode_entry(entry_id, fields) for entry_id, fields in batch]

    async def wait_for_news(self, block_ms: int, identity: str) -> None:
        """Wait until there is an entry that was not handed out, but not longer. Raises LogReplaced."""
        self._check(identity)
        if self._delivered < len(self._events) or block_ms <= 0:
            return
        self._news.clear()
        try:
            async with asyncio.timeout(block_ms / 1000):
                await self._news.wait()
        except TimeoutError:
            return
        self._check(identity)

    async def take_over(self) -> list[str]:
        """See EventReader."""
        return list(self._pending)

    async def commit(self, epoch: int, intent: bytes, projections: Mapping[str, Mapping[str, bytes]]) -> str:
        """See Journal."""
        self._fence(epoch)
        for name, fields in projections.items():
            table = self._projections.setdefault(name, {})
            table.update(fields)
            for gone in [one for one, value in fields.items() if not value]:
                del table[gone]
        return self._write_pass("intent", intent)

    async def recall(self, projection: str) -> dict[str, bytes]:
        """See Journal."""
        return dict(self._projections.get(projection, {}))

    async def conclude(self, epoch: int, outcome: bytes, done_ids: Sequence[str]) -> str:
        """See Journal."""
        self._fence(epoch)
        for entry_id in done_ids:
            self._pending.pop(entry_id, None)
        return self._write_pass("outcome", outcome)

    async def read_passes(self, after_id: str, limit: int) -> list[tuple[str, str, bytes]]:
        """See Journal."""
        after = id_order(after_id)
        return [one for one in self._passes if id_order(one[0]) > after][:limit]

    async def save_snapshot(self, epoch: int, snapshot: Snapshot) -> None:
        """See Snapshots."""
        self._fence(epoch)
        kept = self._snapshot
        if kept is None or id_order(kept.position) <= id_order(snapshot.position):
            self._snapshot = snapshot

    async def load_snapshot(self) -> Snapshot | None:
        """See Snapshots."""
        return self._snapshot

    async def trim(self, retention: Retention, now_ms: int) -> int:
        """See Snapshots."""
        removed = 0
        if self._snapshot is not None:
            kept_from = min(map(id_order, (self._snapshot.position, *self._pending)))
            cut = min(kept_from, _cut([entry_id for entry_id, _ in self._events], retention, now_ms))
            removed = sum(id_order(entry_id) < cut for entry_id, _ in self._events)
            self._removed += removed
            del self._events[:removed]
            self._delivered = max(0, self._delivered - removed)
        cut = _cut([one[0] for one in self._passes], retention, now_ms)
        self._passes = [one for one in self._passes if id_order(one[0]) >= cut]
        return removed

    async def has_lost(self, after_id: str) -> bool:
        """See Snapshots."""
        if id_order(after_id) > (0, 0):
            return all(entry_id != after_id for entry_id, _ in self._events)
        return self._removed > 0

    async def quarantine(self, item: Quarantined) -> None:
        """See Quarantine."""
        self._quarantine = [item, *self._quarantine[: QUARANTINE_LIMIT - 1]]

    async def quarantined(self, limit: int) -> list[Quarantined]:
        """See Quarantine."""
        return self._quarantine[:limit]

    async def info(self) -> LogInfo:
        """See Log."""
        waiting = len(self._events) - self._delivered + len(self._pending)
        last_id = self._events[-1][0] if self._events else "0-0"
        given_id = self._events[self._delivered - 1][0] if self._delivered else "0-0"
        lag_ms = lag_between(given_id, last_id)
        return LogInfo(self._identity, len(self._events), last_id, waiting, lag_ms)

    async def cluster_of(self, uid: str) -> str:
        """See Log."""
        self._cluster_uid = self._cluster_uid or uid
        return self._cluster_uid

    async def hand_over(self, uid: str) -> None:
        """See Log."""
        self._cluster_uid = uid
        await self.begin_anew(self._identity)

    def plant(self, fields: Fields) -> None:
        """Put an entry of any shape into the log, as a newer or a broken writer would."""
        self._events.append((self._next_id(), fields))
        self._news.set()

    def remembered(self) -> int:
        """How many objects it knows, with those that are gone and may still be spoken of."""
        return sum(map(len, self._known.values()))

    def flush(self) -> None:
        """Lose everything, as an emptied Redis does."""
        self._drop_events()
        self._passes.clear()
        self._projections.clear()
        self._quarantine.clear()
        self._cluster_uid = ""

    def _drop_events(self) -> None:
        self._identity = ""
        self._events.clear()
        self._known.clear()
        self._tombs.clear()
        self._pending.clear()
        self._delivered = 0
        self.handed_out = START
        self._removed = 0
        self._snapshot = None
        self._epoch = -1
        self._news.set()

    def _check(self, identity: str) -> None:
        if not self._identity or identity != self._identity:
            raise LogReplaced

    def _fence(self, epoch: int) -> None:
        if epoch < self._epoch:
            raise Fenced(epoch, self._epoch)
        self._epoch = epoch

    def _append(self, entry: Entry) -> bool:
        if entry.type in CHANGES and not self._is_news(entry):
            return False
        self._events.append((self._next_id(), encode_entry(entry)))
        self._news.set()
        return True

    def _is_news(self, entry: Entry) -> bool:
        kind = self._known.setdefault(entry.kind, {})
        old = kind.get(entry.uid)
        if old is not None and (old.is_deleted or not is_newer(entry.resource_version, old.resource_version)):
            return False
        deleted = entry.type is EntryType.DELETED
        digest = hashlib.sha256(entry.object).hexdigest()[:32]
        kind[entry.uid] = _Known(entry.resource_version, digest, entry.namespace, entry.name, deleted)
        if deleted:
            self._tombs[entry.kind, entry.uid] = self.now_ms() + TOMBSTONE_MS
        if old is None:
            return not deleted
        return deleted or old.digest != digest

    def _forget_the_long_gone(self) -> None:
        now = self.now_ms()
        for kind, uid in [key for key, until_ms in self._tombs.items() if until_ms <= now]:
            del self._known[kind][uid], self._tombs[kind, uid]

    def _write_pass(self, what: str, body: bytes) -> str:
        entry_id = self._next_id()
        self._passes.append((entry_id, what, body))
        return entry_id

    def _next_id(self) -> str:
        now = self.now_ms()
        self._last_id = (now, 0) if now > self._last_id[0] else (self._last_id[0], self._last_id[1] + 1)
        return f"{self._last_id[0]}-{self._last_id[1]}"


def _cut(ids: list[str], retention: Retention, now_ms: int) -> tuple[int, int]:
    """The first place that age and number let stay; the newest entry always stays."""
    if not ids:
        return (0, 0)
    cut = min((max(0, now_ms - retention.retain_ms), 0), id_order(ids[-1]))
    surplus = len(ids) - max(1, retention.max_entries)
    return max(cut, id_order(ids[surplus])) if surplus > 0 else cut
