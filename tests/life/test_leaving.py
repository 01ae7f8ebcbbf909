"""The way out: after `gpubinder uninstall`, or with placement switched off, nothing hangs (R30)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from gpubinder.settings import ClusterChoice
from gpubinder.uninstall import Plan, Taken, take_off
from kube.errors import Conflict, Forbidden
from kube.port import MERGE, Json, ObjectKey, PatchOptions
from model.names import FINALIZER, GATE
from model.resources import GPU_CLAIMS, GPU_CLASSES, LEASES, PODS
from simulator.apiserver.server import ApiServer
from tests.life.system import Life, live, stop

PLAN = Plan(ClusterChoice(), "kube-system")
DRY = Plan(ClusterChoice(), "kube-system", is_dry_run=True)


async def left(life: Life, plan: Plan = PLAN, client: Any = None) -> Taken:
    taken = Taken()
    await take_off(client or life.server, plan, taken, lambda _: None)
    return taken


async def one_runs_and_one_waits(life: Life) -> None:
    await life.add_node("gpu-1", 1)
    tasks = life.start("one")
    await life.start_vm("runs")
    await life.until(lambda: life.vm_status("runs") == "Running")
    await life.start_vm("waits")
    await life.until(lambda: "waits" in life.claims())
    await stop(tasks)


def gated(life: Life) -> list[str]:
    pods = life.server.store.scan(PODS)
    return [
        pod["metadata"]["name"] for pod in pods if {"name": GATE} in pod["spec"].get("schedulingGates", [])
    ]


def kept(life: Life) -> list[str]:
    objects = [*life.server.store.scan(GPU_CLAIMS), *life.server.store.scan(GPU_CLASSES)]
    return [one["metadata"]["name"] for one in objects if FINALIZER in one["metadata"].get("finalizers", [])]


def leases(life: Life) -> list[str]:
    names = [one["metadata"]["name"] for one in life.server.store.scan(LEASES)]
    return [name for name in names if "gpubinder" in name]


def test_uninstalled_no_gate_and_no_finalizer_of_ours_is_left_and_all_can_be_deleted() -> None:
    """R30: the launcher that waited goes to the scheduler; class and claims go at once."""

    async def story(life: Life) -> None:
        await one_runs_and_one_waits(life)
        assert (len(gated(life)), len(kept(life))) == (1, 3)
        taken = await left(life)
        assert taken.counts == {
            "gate": 1,
            "finalizer of a GPUClaim": 2,
            "finalizer of a GPUClass": 1,
            "Lease": 1,
        }
        assert (gated(life), kept(life), taken.failed) == ([], [], {})
        for resource in (GPU_CLAIMS, GPU_CLASSES):
            for one in list(life.server.store.scan(resource)):
                meta = one["metadata"]
                await life.server.delete(ObjectKey(resource, meta["name"], meta.get("namespace", "")))
            assert list(life.server.store.scan(resource)) == []

    live(story)


def test_a_second_time_there_is_nothing_to_do() -> None:
    async def story(life: Life) -> None:
        await one_runs_and_one_waits(life)
        await left(life)
        assert (await left(life)).counts == {}

    live(story)


def test_dry_run_tells_and_changes_nothing() -> None:
    async def story(life: Life) -> None:
        await one_runs_and_one_waits(life)
        before = (gated(life), kept(life), leases(life))
        assert (await left(life, DRY)).counts.total() == 5
        assert (gated(life), kept(life), leases(life)) == before

    live(story)


class Troubled:
    """A client to whose patches something happens."""

    def __init__(self, server: ApiServer, error: Exception, times: int) -> None:
        self._server, self._error, self._times = server, error, times
        self.get, self.list_page, self.delete = server.get, server.list_page, server.delete

    async def patch(
        self,
        key: ObjectKey,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        options: PatchOptions = MERGE,
    ) -> Json:
        self._times -= 1
        if self._times >= 0:
            raise self._error
        return await self._server.patch(key, patch, options)


def test_conflict_is_tried_again_on_the_newest_version() -> None:
    async def story(life: Life) -> None:
        await one_runs_and_one_waits(life)
        taken = await left(life, client=Troubled(life.server, Conflict("x", "changed", 409), 3))
        assert (kept(life), gated(life), taken.failed) == ([], [], {})

    live(story)


class Forbidding:
    """A client that may patch every pod, and nothing else."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self.get, self.list_page, self.delete = server.get, server.list_page, server.delete

    async def patch(self, key: ObjectKey, patch: Any, options: PatchOptions = MERGE) -> Json:
        if key.resource != PODS:
            raise Forbidden("x", "no right", 403)
        return await self._server.patch(key, patch, options)


def test_what_may_not_be_changed_is_named_and_the_rest_is_done_also_where_it_came_late() -> None:
    """R30: a launcher that is made while another object cannot be changed does not stay gated."""

    async def story(life: Life) -> None:
        await one_runs_and_one_waits(life)
        leaving = asyncio.create_task(left(life, client=Forbidding(life.server)))
        await asyncio.sleep(1)
        await life.start_vm("late")
        taken = await leaving
        assert (gated(life), len(kept(life))) == ([], 3)
        assert list(taken.failed.values()) == ["no right"] * 3

    live(story)


def test_beside_a_binder_that_puts_all_back_it_says_so_soon_and_counts_nothing_twice() -> None:
    """R30: a way out never hangs; what is left is told with what to do."""

    async def story(life: Life) -> None:
        await one_runs_and_one_waits(life)
        tasks = life.start("two")
        await asyncio.sleep(30)
        began = life.clock()
        taken = await left(life)
        await stop(tasks)
        assert life.clock() - began < 20_000
        assert taken.counts["finalizer of a GPUClaim"] == 2
        (why,) = taken.failed.values()
        assert "stop all gpubinder bind and up" in why

    live(story)


def test_launcher_made_while_policies_go_is_found_too() -> None:
    """An API server goes on with a deleted policy for some seconds."""

    async def story(life: Life) -> None:
        await one_runs_and_one_waits(life)
        leaving = asyncio.create_task(left(life))
        await asyncio.sleep(1)
        await life.start_vm("late")
        await leaving
        assert [name for name in gated(life) if "late" in name] == []

    live(story)


def test_lease_goes_too_so_that_a_new_start_waits_for_nobody() -> None:
    async def story(life: Life) -> None:
        await one_runs_and_one_waits(life)
        assert leases(life) == ["gpubinder-binder"]
        await left(life)
        assert leases(life) == []

    live(story)
