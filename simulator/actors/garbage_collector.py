"""Garbage collection by owner references, and the emptying of namespaces that are being deleted."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from kube.errors import Conflict, NotFound
from kube.port import PLAIN_DELETE, DeleteOptions, Json
from model.resources import NAMESPACES, PODS, Resource
from simulator.actors.acting import key_of
from simulator.apiserver.server import ApiServer

_FOREGROUND = "foregroundDeletion"
_ORPHAN = "orphan"
_LOOK_S = 0.05
"""The real collector acts within some tens of milliseconds, too."""


@dataclass(slots=True)
class GarbageCollector:
    """Works on the store itself: it has to know every kind and every uid."""

    server: ApiServer
    _seen: int = -1

    async def live(self) -> None:
        """Collect after each change, until cancelled."""
        while True:
            if self._seen != self.server.store.revision:
                self._seen = self.server.store.revision
                await self.collect()
            await asyncio.sleep(_LOOK_S)

    async def collect(self) -> None:
        """One look at everything."""
        everything = [
            (served.resource, obj)
            for served in list(self.server.kinds.by_name.values())
            for obj in list(self.server.store.scan(served.resource))
        ]
        uids = {obj["metadata"]["uid"] for _, obj in everything}
        leaving = {obj["metadata"]["uid"] for _, obj in everything if _orphans_its_dependents(obj)}
        for resource, obj in everything:
            if leaving & _owner_uids(obj):
                await self._keep_owners(resource, obj, uids - leaving)
            elif _is_orphan(obj, uids):
                await self._delete(resource, obj)
            elif _owner_uids(obj) - uids and not obj["metadata"].get("deletionTimestamp"):
                await self._keep_owners(resource, obj, uids)
        for resource, obj in everything:
            if obj["metadata"]["uid"] in leaving:
                rest = [f for f in obj["metadata"]["finalizers"] if f != _ORPHAN]
                await self._write_metadata(resource, obj, "finalizers", rest)
        await self._end_foreground_deletions(everything)
        await self._empty_namespaces(everything)

    async def _end_foreground_deletions(self, everything: list[tuple[Resource, Json]]) -> None:
        for resource, obj in everything:
            if _FOREGROUND not in (obj["metadata"].get("finalizers") or []):
                continue
            uid = obj["metadata"]["uid"]
            dependents = [(r, o) for r, o in everything if uid in _owner_uids(o)]
            for kind, dependent in dependents:
                await self._delete(kind, dependent)
            if not dependents:
                rest = [f for f in obj["metadata"]["finalizers"] if f != _FOREGROUND]
                await self._write_metadata(resource, obj, "finalizers", rest)

    async def _keep_owners(self, resource: Resource, obj: Json, uids: set[str]) -> None:
        kept = [owner for owner in obj["metadata"]["ownerReferences"] if owner["uid"] in uids]
        await self._write_metadata(resource, obj, "ownerReferences", kept)

    async def _write_metadata(self, resource: Resource, obj: Json, field: str, values: list[Any]) -> None:
        """Write a list in the metadata, if the object is still as it was seen."""
        patch = {"resourceVersion": obj["metadata"]["resourceVersion"], field: values or None}
        try:
            await self.server.patch(key_of(resource, obj), {"metadata": patch})
        except (NotFound, Conflict):
            return

    async def _empty_namespaces(self, everything: list[tuple[Resource, Json]]) -> None:
        for resource, namespace in everything:
            if resource != NAMESPACES or not namespace["metadata"].get("deletionTimestamp"):
                continue
            name = namespace["metadata"]["name"]
            content = [(r, o) for r, o in everything if o["metadata"].get("namespace") == name]
            for kind, obj in content:
                await self._delete(kind, obj)
            if not content:
                self.server.finalize_namespace(name)

    async def _delete(self, resource: Resource, obj: Json) -> None:
        if obj["metadata"].get("deletionTimestamp") and resource != PODS:
            return
        uid = obj["metadata"]["uid"]
        try:
            await self.server.delete(key_of(resource, obj), DeleteOptions(uid=uid) if uid else PLAIN_DELETE)
        except (NotFound, Conflict):
            return


def _owner_uids(obj: Json) -> set[str]:
    return {str(owner["uid"]) for owner in obj["metadata"].get("ownerReferences") or []}


def _orphans_its_dependents(obj: Json) -> bool:
    meta = obj["metadata"]
    return bool(meta.get("deletionTimestamp")) and _ORPHAN in (meta.get("finalizers") or [])


def _is_orphan(obj: Json, uids: set[str]) -> bool:
    """Whether it had owners and none of them is left."""
    owners = _owner_uids(obj)
    return bool(owners) and not owners & uids and not obj["metadata"].get("deletionTimestamp")
