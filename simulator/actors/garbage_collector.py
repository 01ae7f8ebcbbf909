"""Garbage collection by owner references, and the emptying of namespaces that are being deleted."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from kube.errors import Conflict, NotFound
from kube.port import PLAIN_DELETE, DeleteOptions, Json
from model.resources import NAMESPACES, PODS, Resource
from simulator.actors.acting import key_of
from simulator.apiserver.server import ApiServer

_FOREGROUND = "foregroundDeletion"
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
        for resource, obj in everything:
            if _is_orphan(obj, uids):
                await self._delete(resource, obj)
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
                await self._write_finalizers(resource, obj, rest)

    async def _write_finalizers(self, resource: Resource, obj: Json, finalizers: list[str]) -> None:
        try:
            await self.server.patch(key_of(resource, obj), {"metadata": {"finalizers": finalizers or None}})
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


def _is_orphan(obj: Json, uids: set[str]) -> bool:
    """Whether it had owners and none of them is left."""
    owners = _owner_uids(obj)
    return bool(owners) and not owners & uids and not obj["metadata"].get("deletionTimestamp")
