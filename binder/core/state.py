"""The cluster as the log tells it: the fold of all entries read so far.

Folding an entry keeps its lean object as bytes; it is decoded when a pass first looks at it: an object that
changed a hundred times in between costs one decoding. Changed by `fold_entry` between passes only; a
pass reads it. Must not know: where entries come from, what is decided from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from eventlog.entries import Entry, EntryType, is_newer
from model.kinds import BY_KIND
from model.meta import Lean

Key = tuple[str, str]
"""Namespace (empty for cluster-scoped kinds) and name."""

Model = TypeVar("Model", bound=Lean)

LATEST_MS = 253_402_300_799_000
"""The end of the year 9999: an entry that says it is from later must not make every silence look short."""

VANISH_GRACE_MS = 5 * 60 * 1000
"""A kind that the API server stops to serve is believed gone after this much log time (R32)."""


@dataclass(slots=True)
class Shelf(Generic[Model]):
    """The objects of one kind: as bytes when they came in, as models once looked at."""

    decoder: TypeAdapter[Model]
    models: dict[Key, Model] = field(default_factory=dict)
    fresh: dict[Key, bytes] = field(default_factory=dict)
    uids: dict[Key, str] = field(default_factory=dict)
    versions: dict[Key, str] = field(default_factory=dict)
    unreadable: dict[Key, str] = field(default_factory=dict)
    """Objects whose bytes are no object of the kind, and why; they are in no pass."""
    absent_since_ms: int = 0
    touched: dict[Key, None] = field(default_factory=dict)
    """What has changed since somebody last took it (`World.update`)."""
    departed: dict[str, bytes] = field(default_factory=dict)
    """What has gone since then, as it was last, by uid: a launcher can fail and go in one batch."""
    _bodies: dict[Key, bytes] = field(default_factory=dict)

    def put(self, key: Key, uid: str, version: str, body: bytes) -> None:
        """Take in a version.

        A watcher that lags may tell of an object after another told of its successor of the same name: the
        newer resourceVersion stays.
        """
        if self.uids.get(key, uid) != uid and is_newer(self.versions[key], version):
            return
        if self.uids.get(key, uid) != uid:
            self.departed[self.uids[key]] = self._bodies[key]
        self.touched[key] = None
        self.versions[key] = version
        self.fresh[key] = self._bodies[key] = body
        self.uids[key] = uid
        self.absent_since_ms = 0

    def drop(self, key: Key, uid: str) -> None:
        """Take the object away, if it is still the one of that uid."""
        if self.uids.get(key) == uid:
            self.touched[key] = None
            self.departed[uid] = self._bodies.get(key, b"")
            del self.uids[key]
            for part in (self.fresh, self.models, self.unreadable, self.versions, self._bodies):
                part.pop(key, None)

    def clear(self) -> None:
        """Take everything away."""
        self.touched.update(dict.fromkeys(self.uids))
        for part in (self.fresh, self.models, self.uids, self.versions, self.unreadable, self._bodies):
            part.clear()
        self.absent_since_ms = 0

    def take_touched(self) -> list[Key]:
        """The keys of what has changed since the last time, sorted."""
        keys = sorted(self.touched)
        self.touched.clear()
        self.departed.clear()
        return keys

    def bodies(self) -> Iterator[tuple[Key, bytes]]:
        """All objects as bytes, by namespace and name; one that cannot be decoded as it came in."""
        for key in sorted(self.uids):
            yield key, self._bodies[key]

    def decoded(self) -> Mapping[Key, Model]:
        """All objects as models; what has come in since the last look is decoded now."""
        for key, body in self.fresh.items():
            try:
                self.models[key] = self.decoder.validate_json(body)
                self.unreadable.pop(key, None)
            except ValidationError as error:
                self.models.pop(key, None)
                self.unreadable[key] = str(error.errors()[0]["msg"])
        self.fresh.clear()
        return self.models


def _shelves() -> dict[str, Shelf[Any]]:
    return {kind: Shelf(TypeAdapter(watched.model)) for kind, watched in BY_KIND.items()}


@dataclass(slots=True)
class ClusterState:
    """What the log says the cluster holds."""

    shelves: dict[str, Shelf[Any]] = field(default_factory=_shelves)
    complete: set[str] = field(default_factory=set)
    """Kinds whose complete list, or whose absence, the log has told (R33)."""
    heard_ms: int = 0
    """When a watcher was last heard of."""

    def of(self, model: type[Model]) -> Mapping[Key, Model]:
        """All objects of one kind, by namespace and name."""
        return cast("Mapping[Key, Model]", self.shelves[model.__name__].decoded())

    def missing_kinds(self) -> tuple[str, ...]:
        """Kinds that no decision may be made without (R33), sorted."""
        return tuple(sorted(BY_KIND.keys() - self.complete))

    def unreadable(self) -> Iterator[tuple[str, Key, str]]:
        """Objects that could not be decoded: kind, key, why; in one order (R4)."""
        for kind, shelf in self.shelves.items():
            for key, why in sorted(shelf.unreadable.items()):
                yield kind, key, why


def fold_entry(state: ClusterState, entry: Entry, appended_ms: int = LATEST_MS) -> None:
    """Take one entry in. Kinds unknown to us are passed over.

    `appended_ms` is the log's own time of it: a watcher whose clock runs ahead must not hide a silence.
    """
    if entry.ts_ms <= LATEST_MS:
        state.heard_ms = max(state.heard_ms, min(entry.ts_ms, appended_ms))
    shelf = state.shelves.get(entry.kind)
    if shelf is None:
        if entry.type is EntryType.HEARTBEAT:
            _forget_vanished(state)
        return
    match entry.type:
        case EntryType.ADDED | EntryType.MODIFIED:
            shelf.put((entry.namespace, entry.name), entry.uid, entry.resource_version, entry.object)
        case EntryType.DELETED:
            shelf.drop((entry.namespace, entry.name), entry.uid)
        case EntryType.SYNCED:
            state.complete.add(entry.kind)
            shelf.absent_since_ms = 0
        case EntryType.ABSENT:
            state.complete.add(entry.kind)
            shelf.absent_since_ms = shelf.absent_since_ms or max(1, min(entry.ts_ms, LATEST_MS))
        case EntryType.HEARTBEAT | EntryType.POLICY:
            pass


def fold_entries(state: ClusterState, entries: Iterable[Entry]) -> None:
    """Take entries in, in order."""
    for entry in entries:
        fold_entry(state, entry)


def _forget_vanished(state: ClusterState) -> None:
    """Drop the objects of a kind that has been away for longer than a CRD's re-installation takes (R32)."""
    for shelf in state.shelves.values():
        if shelf.absent_since_ms and state.heard_ms - shelf.absent_since_ms > VANISH_GRACE_MS:
            shelf.clear()
