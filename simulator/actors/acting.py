"""How an actor lives: look at the cache, do what follows from it, wait for a change or a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from kube.errors import ApiError, Conflict, NotFound
from kube.port import MERGE, PLAIN_DELETE, Client, DeleteOptions, Json, ObjectKey, PatchOptions
from model.instants import rfc3339
from model.resources import Resource
from simulator.actors.informer import Informer

RETRY_S = 0.05
"""After a write that met another's: the cache has the newer object by then."""


class Actor(Protocol):
    """One part of a cluster."""

    resources: tuple[Resource, ...]

    async def act(self, stage: Stage) -> float | None:
        """Do what the cache asks for; returns in how many seconds to look again without a change."""
        ...


@dataclass(slots=True)
class Stage:
    """What an actor works with."""

    client: Client
    cache: Informer
    clock: Callable[[], int]

    @property
    def now(self) -> str:
        """The time as Kubernetes writes it."""
        return rfc3339(self.clock())

    async def create(self, resource: Resource, body: Json) -> Json:
        """Create, and know of it at once."""
        created = await self.client.create(resource, body)
        self.cache.put(resource, created)
        return created

    async def patch(
        self, resource: Resource, obj: Json, patch: dict[str, Any], options: PatchOptions = MERGE
    ) -> Json:
        """Patch the version that we know, and know of the new one at once; raises Conflict."""
        versioned = dict(patch)
        meta = obj["metadata"]
        versioned["metadata"] = {
            **patch.get("metadata", {}),
            "resourceVersion": meta["resourceVersion"],
        }
        patched = await self.client.patch(key_of(resource, obj), versioned, options)
        self.cache.put(resource, patched)
        return patched

    async def delete(self, resource: Resource, obj: Json, options: DeleteOptions = PLAIN_DELETE) -> None:
        """Delete exactly this object; one that has gone is fine."""
        exact = DeleteOptions(obj["metadata"]["uid"], "", options.grace_s, options.propagation)
        try:
            await self.client.delete(key_of(resource, obj), exact)
        except (NotFound, Conflict):
            return


async def live(actor: Actor, client: Client, clock: Callable[[], int]) -> None:
    """Let the actor act until cancelled; what goes wrong with one write is tried again from a fresh look."""
    cache = Informer(client, actor.resources)
    stage = Stage(client, cache, clock)
    watching = asyncio.create_task(cache.run())
    try:
        while True:
            cache.changed.clear()
            try:
                again_s = await actor.act(stage)
            except ApiError:
                again_s = RETRY_S
            try:
                # Not wait_for: before Python 3.12 it can swallow a cancellation that meets the change.
                async with asyncio.timeout(again_s):
                    await cache.changed.wait()
            except TimeoutError:
                continue
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


def key_of(resource: Resource, obj: Json) -> ObjectKey:
    """The key of an object."""
    return ObjectKey(resource, obj["metadata"]["name"], obj["metadata"].get("namespace", ""))


def controller_uid(obj: Json) -> str:
    """The uid of the controlling owner, or the empty string."""
    owners = obj["metadata"].get("ownerReferences") or []
    return next((str(owner["uid"]) for owner in owners if owner.get("controller")), "")


def with_condition(conditions: list[Json] | None, new: Json) -> list[Json]:
    """The conditions with one of its type replaced or added; unchanged ones keep their times."""
    kept = list(conditions or [])
    for index, old in enumerate(kept):
        if old["type"] == new["type"]:
            same = all(old.get(name) == new.get(name) for name in ("status", "reason", "message"))
            kept[index] = old if same else new
            return kept
    return [*kept, new]


def condition(conditions: list[Json] | None, kind: str) -> Json | None:
    """The condition of a type, or None."""
    return next((c for c in conditions or [] if c["type"] == kind), None)
