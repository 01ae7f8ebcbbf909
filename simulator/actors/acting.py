"""How an actor lives: look at the cache, do what follows from it, wait for a change or a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from kube.errors import ApiError, Conflict, NotFound
from kube.port import MERGE, PLAIN_DELETE, Client, DeleteOptions, Json, ObjectKey, PatchOptions
from model.instants import rfc3339
from model.resources import Resource
from simulator.actors.informer import Informer

LOGGER = logging.getLogger("gpubinder.simulator")
RETRY_S = 0.05
"""After a write that met another's: the cache has the newer object by then."""
REFUSED_RETRY_S = 1.0
"""After any other error: the API server is away, or does not take what follows from the object."""
_TOLD_LIMIT = 1_000
"""Objects whose last trouble is remembered, so that it is told once."""
_UNREADABLE = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What reading an object of another shape than its kind's ends in."""


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
    _told: dict[str, str] = field(default_factory=dict)

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

    async def attend(
        self, resource: Resource, objects: Iterable[Json], tend: Callable[[Json], Awaitable[float | None]]
    ) -> float | None:
        """Tend each object; returns in how many seconds to look again. None keeps others from their turn."""
        waits_s: list[float] = []
        for obj in objects:
            try:
                wait_s = await tend(obj)
            except (Conflict, NotFound):
                wait_s = RETRY_S
            except ApiError as error:
                wait_s = REFUSED_RETRY_S
                self._say("request_refused", resource, obj, f"{error}; tried again until it is taken")
            except _UNREADABLE as error:
                wait_s = None  # until somebody changes it
                why = f"{type(error).__name__}: {error}; correct or delete the object"
                self._say("object_passed_over", resource, obj, why)
            waits_s += [wait_s] if wait_s is not None else []
        return min(waits_s, default=None)

    def _say(self, event: str, resource: Resource, obj: Json, why: str) -> None:
        """One line per object and reason, not one per look."""
        if self._told.get(obj["metadata"]["uid"]) == why:
            return
        self._told[obj["metadata"]["uid"]] = why
        while len(self._told) > _TOLD_LIMIT:
            del self._told[next(iter(self._told))]
        LOGGER.warning(event, extra={"keys": {"object": str(key_of(resource, obj)), "why": why}})


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
