"""What an actor knows of the cluster: a cache of whole kinds, kept fresh by list and watch.

An actor's own writes are put in at once, so that it does not act twice on what it has just done. Works on the
simulator and on a real API server alike.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import aclosing
from dataclasses import dataclass, field

from kube.errors import ApiError, Gone
from kube.port import Client, Json, WatchType, list_all
from model.resources import Resource

RETRY_S = 0.5
"""After an API server that is away or does not serve the kind yet."""

Key = tuple[str, str]


@dataclass(slots=True)
class Informer:
    """The kinds of `resources`, by namespace and name; `changed` is set by every change."""

    client: Client
    resources: tuple[Resource, ...]
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    _objects: dict[str, dict[Key, Json]] = field(default_factory=dict)
    _gone: set[str] = field(default_factory=set)

    async def run(self) -> None:
        """Watch every kind until cancelled."""
        async with asyncio.TaskGroup() as group:
            for resource in self.resources:
                group.create_task(self._watch(resource))

    def of(self, resource: Resource) -> list[Json]:
        """All objects of a kind, by namespace and name."""
        return [obj for _, obj in sorted(self._objects.get(resource.full_name, {}).items())]

    def get(self, resource: Resource, name: str, namespace: str = "") -> Json | None:
        """One object, or None."""
        return self._objects.get(resource.full_name, {}).get((namespace, name))

    def put(self, resource: Resource, obj: Json) -> None:
        """Take in a version of an object, unless a newer one is known or it has gone."""
        shelf = self._objects.setdefault(resource.full_name, {})
        meta = obj["metadata"]
        known = shelf.get(_key(obj))
        if not _is_shaped(obj) or meta["uid"] in self._gone or (known and _version(known) >= _version(obj)):
            return
        shelf[_key(obj)] = obj
        self.changed.set()

    async def _watch(self, resource: Resource) -> None:
        while True:
            try:
                version = await self._list(resource)
                while True:
                    version = await self._follow(resource, version)
            except Gone:
                continue
            except ApiError:
                await asyncio.sleep(RETRY_S)

    async def _list(self, resource: Resource) -> str:
        listing = await list_all(self.client, resource)
        listed = {item["metadata"]["uid"] for item in listing.items}
        for obj in list(self._objects.get(resource.full_name, {}).values()):
            if obj["metadata"]["uid"] not in listed:
                self._drop(resource, obj)
        self._take(resource, listing.items)
        return listing.resource_version

    async def _follow(self, resource: Resource, version: str) -> str:
        async with aclosing(self.client.watch(resource, resource_version=version)) as events:
            async for event in events:
                version = event.object["metadata"]["resourceVersion"]
                if event.type is WatchType.DELETED:
                    self._drop(resource, event.object)
                elif event.type is not WatchType.BOOKMARK:
                    self.put(resource, event.object)
        return version

    def _take(self, resource: Resource, items: Iterable[Json]) -> None:
        for obj in items:
            self.put(resource, obj)

    def _drop(self, resource: Resource, obj: Json) -> None:
        shelf = self._objects.setdefault(resource.full_name, {})
        known = shelf.get(_key(obj))
        if known and known["metadata"]["uid"] == obj["metadata"]["uid"]:
            del shelf[_key(obj)]
        self._gone.add(obj["metadata"]["uid"])
        self.changed.set()


def _is_shaped(obj: Json) -> bool:
    """Whether spec and status are maps: what a broken client wrote is nobody's to act on."""
    return all(isinstance(obj.get(part) or {}, dict) for part in ("spec", "status"))


def _key(obj: Json) -> Key:
    return (obj["metadata"].get("namespace", ""), obj["metadata"]["name"])


def _version(obj: Json) -> int:
    return int(obj["metadata"]["resourceVersion"])
