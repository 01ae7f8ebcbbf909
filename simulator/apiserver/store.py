"""The store beneath the API server: one revision for all writes, objects by kind, and a bounded history.

Objects in here are never changed in place: what goes in and out is copied, so that no reader can alter
another's. Must not know: what an object means.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import orjson

from kube.port import Json
from model.resources import Resource

HISTORY = 10_000
"""Changes remembered per kind; a watch from before them is told 410."""

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Change:
    """One write: the object as it is now and as it was; `after` is None for a deletion."""

    revision: int
    before: Json | None
    after: Json | None
    final: Json
    """The object to show: the new one, or the last state of a deleted one at the deletion's version."""


@dataclass(slots=True)
class Shelf:
    """The objects of one kind."""

    objects: dict[Key, Json] = field(default_factory=dict)
    history: deque[Change] = field(default_factory=deque)
    compacted: int = 0
    """Changes up to this revision are forgotten."""
    news: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True)
class Store:
    """All shelves, and the revision that every write raises."""

    history: int = HISTORY
    revision: int = 1
    shelves: dict[str, Shelf] = field(default_factory=dict)

    def shelf(self, resource: Resource) -> Shelf:
        """The kind's shelf, made when it is first asked for."""
        return self.shelves.setdefault(resource.full_name, Shelf())

    def read(self, resource: Resource, key: Key) -> Json | None:
        """A copy of one object, or None."""
        obj = self.shelf(resource).objects.get(key)
        return None if obj is None else copied(obj)

    def scan(self, resource: Resource) -> Iterator[Json]:
        """The objects themselves, by namespace and name: to look at, not to change."""
        for _, obj in sorted(self.shelf(resource).objects.items()):
            yield obj

    def write(self, resource: Resource, obj: Json) -> Json:
        """Put the object at a new revision; returns a copy of what is stored."""
        shelf, key = self.shelf(resource), key_of(obj)
        stored = copied(obj)
        stored["metadata"]["resourceVersion"] = self._next()
        before = shelf.objects.get(key)
        shelf.objects[key] = stored
        self._tell(shelf, Change(self.revision, before, stored, stored))
        return copied(stored)

    def remove(self, resource: Resource, key: Key) -> Json:
        """Take the object away at a new revision; returns its last state at that revision."""
        shelf = self.shelf(resource)
        before = shelf.objects.pop(key)
        final = copied(before)
        final["metadata"]["resourceVersion"] = self._next()
        self._tell(shelf, Change(self.revision, before, None, final))
        return final

    def compact(self) -> None:
        """Forget all history, as etcd does every few minutes."""
        for shelf in self.shelves.values():
            shelf.history.clear()
            shelf.compacted = self.revision
            shelf.news.set()
            shelf.news = asyncio.Event()

    def _next(self) -> str:
        self.revision += 1
        return str(self.revision)

    def _tell(self, shelf: Shelf, change: Change) -> None:
        shelf.history.append(change)
        while len(shelf.history) > self.history:
            shelf.compacted = shelf.history.popleft().revision
        shelf.news.set()
        shelf.news = asyncio.Event()


def key_of(obj: Json) -> Key:
    """Namespace and name."""
    return (obj["metadata"].get("namespace") or "", obj["metadata"]["name"])


def copied(obj: Json) -> Json:
    """A deep copy, by way of JSON: what cannot be JSON cannot be stored."""
    copy: Json = orjson.loads(orjson.dumps(obj))
    return copy
