"""What a contract test is given: a client of one API server, its own namespace, how time passes there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol

from kube.errors import NotFound
from kube.port import ALL, Client, Json, ObjectKey, Selection, WatchEvent, WatchType
from model.resources import NAMESPACES, PODS, Resource

LIMIT_S = 30.0
STEPS = 100_000


class BindingClient(Client, Protocol):
    """The port and what a scheduler needs."""

    async def bind(self, key: ObjectKey, node_name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Environment:
    """One API server as a test sees it."""

    client: BindingClient
    namespace: str
    # How long one look waits for the next: controllers need real time, a simulator only a turn of the loop.
    step_s: float
    # A watch this long may have a bookmark before its end.
    short_watch_s: int
    # Makes the server forget its history, and the token one that it no longer honours.
    expire_token: Callable[[str], str]

    async def step(self) -> None:
        """Lets a little time pass."""
        await asyncio.sleep(self.step_s)

    @property
    def here(self) -> Selection:
        """The test's own namespace."""
        return Selection(self.namespace)

    def key(self, resource: Resource, name: str) -> ObjectKey:
        """An object of the test's own namespace."""
        return ObjectKey(resource, name, self.namespace if resource.is_namespaced else "")

    def key_of(self, resource: Resource, body: Json) -> ObjectKey:
        """The key of an object that a client returned."""
        return ObjectKey(resource, body["metadata"]["name"], body["metadata"].get("namespace", ""))

    async def create(self, resource: Resource, body: Json) -> Json:
        """Creates an object in the test's own namespace."""
        if resource.is_namespaced:
            body["metadata"].setdefault("namespace", self.namespace)
        return await self.client.create(resource, body)

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        """Lets time pass until `holds`, within a bounded number of steps."""
        async with asyncio.timeout(LIMIT_S):
            for _ in range(STEPS):
                if await holds():
                    return
                await self.step()
        raise AssertionError("it never held")

    async def passing_time(self, stream: AsyncIterator[WatchEvent]) -> AsyncIterator[WatchEvent]:
        """The events of a stream, to its end, while time passes."""
        async with asyncio.timeout(LIMIT_S):
            iterator = aiter(stream)
            while True:
                waiting = asyncio.ensure_future(anext(iterator, None))
                while not waiting.done():
                    await self.step()
                event = waiting.result()
                if event is None:
                    return
                yield event

    async def is_gone(self, key: ObjectKey) -> bool:
        """Whether the object does not exist any more."""
        try:
            await self.client.get(key)
        except NotFound:
            return True
        return False

    async def version(self, resource: Resource = PODS) -> str:
        """The collection's present resourceVersion."""
        return (await self.client.list_page(resource, self.here_for(resource), limit=1)).resource_version

    def here_for(self, resource: Resource) -> Selection:
        """The test's own namespace, or everything for a cluster-scoped kind."""
        return self.here if resource.is_namespaced else ALL

    async def events(
        self, resource: Resource, since: str, count: int, selection: Selection | None = None
    ) -> list[WatchEvent]:
        """The first `count` changes after `since`, bookmarks left out."""
        chosen = self.here_for(resource) if selection is None else selection
        found: list[WatchEvent] = []
        async with asyncio.timeout(LIMIT_S):
            stream: AsyncIterator[WatchEvent] = self.client.watch(resource, chosen, resource_version=since)
            async with aclosing(stream) as events:  # type: ignore[type-var]
                async for event in events:
                    if event.type is not WatchType.BOOKMARK:
                        found.append(event)
                    if len(found) == count:
                        return found
        raise AssertionError(f"the watch ended after {len(found)} of {count} events")


async def make_namespace(client: Client) -> str:
    """A new namespace's name."""
    body: dict[str, Any] = {"metadata": {"generateName": "contract-"}}
    created = await client.create(NAMESPACES, body)
    return str(created["metadata"]["name"])


def summary(events: list[WatchEvent]) -> list[tuple[str, str]]:
    """Type and name of each event."""
    return [(event.type.value, event.object["metadata"]["name"]) for event in events]
