"""Hand-over and sleepers: one binder is active, a successor comes in time, and who slept does no harm."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from binder.leader import Leader, LeaseName
from kube.errors import NotFound
from kube.port import MERGE, PLAIN_DELETE, DeleteOptions, Json, ObjectKey, PatchOptions
from model.resources import GPU_CLASSES, LEASES, Resource
from simulator.apiserver.server import ApiServer
from tests.life.system import Life, live, stop

SLEEP_S = 60.0
"""Far longer than the lease."""


class SleepingClient:
    """A client whose process is stopped right before its `nth` write goes out, and wakes up a minute later.

    It has asked whether the lease lasts before: nothing but the write's preconditions is left to stop it.
    """

    def __init__(self, server: ApiServer, nth: int) -> None:
        self._server = server
        self._left = nth
        self._is_awake = asyncio.Event()
        self._is_awake.set()
        self.slept = asyncio.Event()
        self.watch = server.watch

    def fall_silent(self) -> None:
        """Nothing of it gets through any more, its farewell included."""
        self._is_awake.clear()

    async def get(self, key: ObjectKey) -> Json:
        await self._is_awake.wait()
        return await self._server.get(key)

    async def list_page(self, *args: Any, **more: Any) -> Any:
        await self._is_awake.wait()
        return await self._server.list_page(*args, **more)

    async def create(self, resource: Resource, body: Json) -> Json:
        await self._maybe_sleep(resource)
        return await self._server.create(resource, body)

    async def replace(self, key: ObjectKey, body: Json, subresource: str = "") -> Json:
        await self._maybe_sleep(key.resource)
        return await self._server.replace(key, body, subresource)

    async def patch(
        self,
        key: ObjectKey,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        options: PatchOptions = MERGE,
    ) -> Json:
        await self._maybe_sleep(key.resource)
        return await self._server.patch(key, patch, options)

    async def delete(self, key: ObjectKey, options: DeleteOptions = PLAIN_DELETE) -> None:
        await self._maybe_sleep(key.resource)
        await self._server.delete(key, options)

    async def _maybe_sleep(self, resource: Resource) -> None:
        await self._is_awake.wait()
        if resource in (LEASES, GPU_CLASSES):
            return
        self._left -= 1
        if self._left == 0:
            self._is_awake.clear()
            self.slept.set()
            await asyncio.sleep(SLEEP_S)
            self._is_awake.set()


@pytest.mark.parametrize("nth", [1, 2, 3, 4, 5, 6])
def test_leader_that_slept_before_a_write_wakes_up_and_does_no_harm(nth: int) -> None:
    """R1, R3: its successor has gone on; what it sends late meets its preconditions."""

    async def story(life: Life) -> None:
        await life.add_node("gpu-1", 1)
        await life.add_node("gpu-2", 1)
        client = SleepingClient(life.server, nth)
        sleeper = life.start("sleeper", client)
        await life.start_vm("a")
        await life.start_vm("b")
        await asyncio.wait_for(client.slept.wait(), 60)
        async with life.process("successor"):
            await life.until(lambda: life.vm_status("a") == life.vm_status("b") == "Running", SLEEP_S - 5)
            await life.halt_vm("a")
            await life.start_vm("c")
            await life.until(lambda: life.vm_status("c") == "Running", SLEEP_S)
            for _ in range(int(SLEEP_S)):
                life.check()
                await asyncio.sleep(1)
            await stop(sleeper)
        assert set(life.claims()) == {"b", "c"}
        assert {life.node_of("b"), life.node_of("c")} == {"gpu-1", "gpu-2"}

    live(story)


@pytest.mark.parametrize(("is_killed", "limit_s"), [(False, 3.0), (True, 20.0)], ids=["SIGTERM", "SIGKILL"])
def test_successor_is_active_in_time(is_killed: bool, limit_s: float) -> None:
    """The figures of the design: 3 s after a farewell, 20 s after a death."""

    async def story(life: Life) -> None:
        await life.add_node("gpu-1", 4)
        client = SleepingClient(life.server, nth=10**9)
        first = life.start("first", client)
        await life.until(lambda: life.told.terms == ["began 0"])
        async with life.process("second"):
            await asyncio.sleep(30)
            if is_killed:
                client.fall_silent()
                for task in first:
                    task.cancel()
            else:
                await stop(first)
            began = asyncio.get_running_loop().time()
            await life.until(lambda: "began 1" in life.told.terms, limit_s)
            assert asyncio.get_running_loop().time() - began <= limit_s

    live(story)


def test_who_stands_by_knows_that_another_holds_the_lease_until_it_cannot_look() -> None:
    """What readiness is made of."""

    async def story(life: Life) -> None:
        faults: list[str] = []
        name = LeaseName("kube-system", "gpubinder-binder", "")
        client = SleepingClient(life.server, nth=10**9)
        one = Leader(life.server, replace(name, identity="one"), life.clock, faults.append)
        two = Leader(client, replace(name, identity="two"), life.clock, faults.append)
        assert not two.stands_by
        first = asyncio.create_task(one.acquire())
        second = asyncio.create_task(two.acquire())
        assert await first == 0
        keeping = asyncio.create_task(one.keep())
        await asyncio.sleep(30)
        assert (one.stands_by, two.stands_by, faults) == (False, True, [])
        client.fall_silent()
        await asyncio.sleep(30)
        assert not two.stands_by
        await stop([keeping, second])

    live(story)


def test_who_is_second_to_create_the_lease_hears_of_no_fault() -> None:
    async def story(life: Life) -> None:
        faults: list[str] = []

        class Late(SleepingClient):
            async def get(self, key: ObjectKey) -> Json:
                """As it was before the other made it."""
                raise NotFound(str(key), "not found")

        await Leader(life.server, LeaseName("kube-system", "l", "one"), life.clock, faults.append).acquire()
        late = Leader(Late(life.server, 9), LeaseName("kube-system", "l", "two"), life.clock, faults.append)
        waiting = asyncio.create_task(late.acquire())
        await asyncio.sleep(10)
        assert (waiting.done(), faults) == (False, [])
        await stop([waiting])

    live(story)
