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
RETRY_LIMIT_S = 8.0
"""Waits double from one to the other while the API server is away or does not serve the kind yet."""
GONE_LIMIT = 10_000
"""Uids remembered as gone: the answer to an own write can come after the news of the object's end."""

Key = tuple[str, str]


@dataclass(slots=True)
class Informer:
    """The kinds of `resources`, by namespace and name; `changed` is set by every change."""

    client: Client
    resources: tuple[Resource, ...]
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    _objects: dict[str, dict[Key, Json]] = field(default_factory=dict)
    _gone: dict[str, None] = field(default_factory=dict)

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
        wait_s = RETRY_S
        while True:
            try:
                version = await self._list(resource)
                wait_s = RETRY_S
                while True:
                    version = await self._follow(resource, version)
            except Gone:
                continue  # the list that follows is the whole truth again
            except ApiError:
                await asyncio.sleep(wait_s)
                wait_s = min(2 * wait_s, RETRY_LIMIT_S)

    async def _list(self, resource: Resource) -> str:
        listing = await list_all(self.client, resource)
        listed = {item["metadata"]["uid"] for item in listing.items}
        for obj in list(self._objects.get(resource.full_name, {}).values()):
            is_older = _version(obj) <= int(listing.resource_version)  # a newer one is an own write
            if is_older and obj["metadata"]["uid"] not in listed:
                self._drop(resource, obj)
        self._take(resource, listing.items)
        return listing.resource_version

    async def _follow(self, resource: Resource, version: str) -> str:
        before = version
        async with aclosing(self.client.watch(resource, resource_version=version)) as events:
            async for event in events:
                version = event.object["metadata"]["resourceVersion"]
                if event.type is WatchType.DELETED:
                    self._drop(resource, event.object)
                elif event.type is not WatchType.BOOKMARK:
                    self.put(resource, event.object)
        if version == before:
            await asyncio.sleep(RETRY_S)  # a server that ends every stream at once is not asked at once
        return version

    def _take(self, resource: Resource, items: Iterable[Json]) -> None:
        for obj in items:
            self.put(resource, obj)

    def _drop(self, resource: Resource, obj: Json) -> None:
        shelf = self._objects.setdefault(resource.full_name, {})
        known = shelf.get(_key(obj))
        if known and known["metadata"]["uid"] == obj["metadata"]["uid"]:
            del shelf[_key(obj)]
        self._gone[obj["metadata"]["uid"]] = None
        while len(self._gone) > GONE_LIMIT:
            del self._gone[next(iter(self._gone))]
        self.changed.set()


def _is_shaped(obj: Json) -> bool:
    """Whether spec and status are maps: what a broken client wrote is nobody's to act on."""
    return all(isinstance(obj.get(part) or {}, dict) for part in ("spec", "status"))


def _key(obj: Json) -> Key:
    return (obj["metadata"].get("namespace", ""), obj["metadata"]["name"])


def _version(obj: Json) -> int:
    return int(obj["metadata"]["resourceVersion"])
