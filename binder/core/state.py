"""The cluster as the log tells it: the fold of all entries read so far.

Holds the newest version of each object and which kinds have been listed completely. Changed by `fold_entry`
between passes only; a pass reads it. Must not know: where entries come from, what is decided from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar, cast

from pydantic import ValidationError

from eventlog.entries import Entry, EntryType
from model.kinds import BY_KIND
from model.meta import Lean

Key = tuple[str, str]
"""Namespace (empty for cluster-scoped kinds) and name."""

Model = TypeVar("Model", bound=Lean)


@dataclass(slots=True)
class ClusterState:
    """What the log says the cluster holds."""

    objects: dict[str, dict[Key, Lean]] = field(default_factory=lambda: {kind: {} for kind in BY_KIND})
    uids: dict[str, dict[Key, str]] = field(default_factory=lambda: {kind: {} for kind in BY_KIND})
    complete: set[str] = field(default_factory=set)
    """Kinds whose complete list, or whose absence, the log has told (R33)."""
    heard_ms: int = 0
    """When a watcher was last heard of."""

    def of(self, model: type[Model]) -> Mapping[Key, Model]:
        """All objects of one kind, by namespace and name."""
        return cast("Mapping[Key, Model]", self.objects[model.__name__])

    def missing_kinds(self) -> tuple[str, ...]:
        """Kinds that no decision may be made without (R33), sorted."""
        return tuple(sorted(BY_KIND.keys() - self.complete))


def fold_entry(state: ClusterState, entry: Entry) -> str | None:
    """Take one entry in; returns why it could not be read, or None. Kinds unknown to us are passed over."""
    state.heard_ms = max(state.heard_ms, entry.ts_ms)
    if entry.kind not in BY_KIND:
        return None
    key = (entry.namespace, entry.name)
    match entry.type:
        case EntryType.ADDED | EntryType.MODIFIED:
            return _put_object(state, entry, key)
        case EntryType.DELETED:
            if state.uids[entry.kind].get(key) == entry.uid:
                del state.objects[entry.kind][key], state.uids[entry.kind][key]
        case EntryType.SYNCED:
            state.complete.add(entry.kind)
        case EntryType.ABSENT:
            state.complete.add(entry.kind)
            state.objects[entry.kind].clear()
            state.uids[entry.kind].clear()
        case EntryType.HEARTBEAT | EntryType.POLICY:
            pass
    return None


def fold_entries(state: ClusterState, entries: Iterable[Entry]) -> None:
    """Take entries in, in order; unreadable ones leave the state as it was."""
    for entry in entries:
        fold_entry(state, entry)


def _put_object(state: ClusterState, entry: Entry, key: Key) -> str | None:
    try:
        state.objects[entry.kind][key] = BY_KIND[entry.kind].model.model_validate_json(entry.object)
    except ValidationError as error:
        return str(error.errors(include_url=False, include_input=False)[0]["msg"])
    state.uids[entry.kind][key] = entry.uid
    return None
