"""A cluster in motion: objects made, changed and deleted by several hands, seeded and bounded."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from functools import partial

from kube.errors import ApiError
from kube.port import Client, Json, ObjectKey
from model.resources import PERSISTENT_VOLUME_CLAIMS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES, Resource
from simulator.objects import gpu_vm

HANDS = 24
ATTEMPTS = 60
"""Per write, half a second apart: an API server that restarts is waited out."""
KINDS = (VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES, PERSISTENT_VOLUME_CLAIMS)


async def churn(client: Client, namespace: str, count: int, seed: int) -> None:
    """Make `count` objects, change each, and delete every third."""
    work = asyncio.Queue[tuple[Resource, str]]()
    for number in range(count):
        work.put_nowait((KINDS[number % len(KINDS)], f"object-{number}"))
    rngs = [random.Random(seed * 1000 + hand) for hand in range(HANDS)]
    await asyncio.gather(*(_hand(client, namespace, work, rng) for rng in rngs))


async def _hand(
    client: Client, namespace: str, work: asyncio.Queue[tuple[Resource, str]], rng: random.Random
) -> None:
    while not work.empty():
        resource, name = work.get_nowait()
        key = ObjectKey(resource, name, namespace)
        await _insist(partial(client.create, resource, _body(resource, name, namespace)))
        for change in _changes(rng):
            await _insist(partial(client.patch, key, change))
        if rng.random() < 1 / 3:
            await _insist(partial(client.delete, key))


async def _insist(write: Callable[[], Awaitable[object]]) -> None:
    """Until it is done, or was done by a try whose answer got lost."""
    for _ in range(ATTEMPTS):
        try:
            await write()
        except ApiError as error:
            if getattr(error, "status", 0) in (404, 409):
                return
            await asyncio.sleep(0.5)
        else:
            return
    raise AssertionError("the API server stayed away")


def _changes(rng: random.Random) -> Iterator[Json]:
    """One that matters to us, and one that does not."""
    yield {"metadata": {"labels": {"turn": str(rng.randrange(1000))}}}
    yield {"metadata": {"annotations": {"example.com/noise": str(rng.random())}}}


def _body(resource: Resource, name: str, namespace: str) -> Json:
    if resource == PERSISTENT_VOLUME_CLAIMS:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        return {"metadata": {"name": name, "namespace": namespace}, "spec": spec}
    body = gpu_vm(name, {}, namespace)
    return body if resource == VIRTUAL_MACHINES else body | {"spec": body["spec"]["template"]["spec"]}
