"""The list and watch loop on the simulated API server, in virtual time: nothing lost, nothing twice (R32)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from eventlog.adapters.memory import MemoryLog
from eventlog.entries import Entry, EntryType, StoredEntry
from ingest.causes import Cause
from ingest.watcher import KindWatcher
from kube.errors import Gone, TooManyRequests, Unreachable
from kube.port import ALL, Json, ObjectKey, Page, Selection
from model.kinds import BY_KIND
from model.resources import NODES, PODS, VIRTUAL_MACHINES, Resource
from simulator.apiserver.server import ApiServer
from simulator.objects import gpu_node, gpu_vm
from simulator.virtual_time import Clock, run_virtual


@dataclass(slots=True)
class Seen:
    malformed: list[str] = field(default_factory=list)
    restarts: list[tuple[str, float]] = field(default_factory=list)
    causes: list[Cause] = field(default_factory=list)
    heard_of: list[str] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)

    def event_seen(self, kind: str, change: str, *, is_appended: bool) -> None:
        pass

    def object_malformed(self, kind: str, raw: Json, why: str) -> None:
        self.malformed.append(why)

    def watch_restarted(self, kind: str, cause: Cause, why: str, wait_s: float) -> None:
        self.restarts.append((why, wait_s))
        self.causes.append(cause)

    def heard(self, kind: str) -> None:
        self.heard_of.append(kind)

    def listed(self, kind: str) -> None:
        self.lists.append(kind)


@dataclass(slots=True)
class Scene:
    server: ApiServer
    log: MemoryLog
    clock: Clock
    seen: Seen = field(default_factory=Seen)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def watch(self, kind: str = "Node", name: str = "w1", client: Any = None) -> None:
        watcher = KindWatcher(client or self.server, self.log, BY_KIND[kind], name, self.clock, self.seen)
        self.tasks.append(asyncio.create_task(watcher.run()))

    async def told(self) -> list[Entry]:
        return [one.entry for one in await self.log.read_range("0-0", 9999) if isinstance(one, StoredEntry)]

    async def changes(self) -> list[tuple[str, str]]:
        return [(str(entry.type), entry.name) for entry in await self.told()]

    async def unwatch(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self.tasks.clear()


def play(story: Callable[[Scene], Awaitable[None]]) -> None:
    """On a server that streams lists, and on an older one."""
    for streams_lists in (True, False):

        async def main(clock: Clock, streams_lists: bool = streams_lists) -> None:
            scene = Scene(ApiServer(clock, streams_lists=streams_lists), MemoryLog(clock), clock)
            try:
                await story(scene)
            finally:
                await scene.unwatch()

        run_virtual(main)


def test_list_then_watch_tells_each_change_once_and_marks_the_list() -> None:
    async def story(scene: Scene) -> None:
        await scene.server.create(NODES, gpu_node("a", {}))
        scene.watch()
        await asyncio.sleep(1)
        await scene.server.create(NODES, gpu_node("b", {}))
        await scene.server.delete(ObjectKey(NODES, "a"))
        await asyncio.sleep(1)
        assert await scene.changes() == [("ADDED", "a"), ("SYNCED", ""), ("ADDED", "b"), ("DELETED", "a")]

    play(story)


def test_two_replicas_append_each_change_once() -> None:
    async def story(scene: Scene) -> None:
        scene.watch(name="w1")
        scene.watch(name="w2")
        await asyncio.sleep(1)
        for number in range(20):
            await scene.server.create(NODES, gpu_node(f"n{number}", {}))
        await asyncio.sleep(1)
        added = [name for change, name in await scene.changes() if change == "ADDED"]
        assert sorted(added) == sorted(f"n{number}" for number in range(20))

    play(story)


def test_what_went_while_nobody_watched_is_deleted_by_the_next_list() -> None:
    """Case 055."""

    async def story(scene: Scene) -> None:
        await scene.server.create(NODES, gpu_node("a", {}))
        scene.watch()
        await asyncio.sleep(1)
        await scene.unwatch()
        await scene.server.delete(ObjectKey(NODES, "a"))
        await scene.server.create(NODES, gpu_node("b", {}))
        scene.watch()
        await asyncio.sleep(1)
        assert (await scene.changes())[2:] == [("ADDED", "b"), ("DELETED", "a"), ("SYNCED", "")]

    play(story)


def test_same_name_with_a_new_uid_is_told_before_the_old_one_goes() -> None:
    """The fold deletes by uid: the new object stays."""

    async def story(scene: Scene) -> None:
        old = await scene.server.create(NODES, gpu_node("a", {}))
        scene.watch()
        await asyncio.sleep(1)
        await scene.unwatch()
        await scene.server.delete(ObjectKey(NODES, "a"))
        new = await scene.server.create(NODES, gpu_node("a", {}))
        scene.watch()
        await asyncio.sleep(1)
        later = [(e.type, e.uid) for e in await scene.told() if e.name][1:]
        uids = (new["metadata"]["uid"], old["metadata"]["uid"])
        assert later == [(EntryType.ADDED, uids[0]), (EntryType.DELETED, uids[1])]

    play(story)


def test_cluster_that_went_back_in_time_is_read_anew() -> None:
    """An older etcd restored: every version is below what was seen, and every one counts."""

    async def story(scene: Scene) -> None:
        for _ in range(50):
            await scene.server.create(NODES, gpu_node("a", {}))
            await scene.server.delete(ObjectKey(NODES, "a"))
        await scene.server.create(NODES, gpu_node("a", {}))
        scene.watch()
        await asyncio.sleep(1)
        await scene.unwatch()
        scene.server = ApiServer(scene.clock, streams_lists=scene.server.streams_lists)
        await scene.server.create(NODES, gpu_node("b", {}))
        scene.watch()
        await asyncio.sleep(10)
        await scene.server.delete(ObjectKey(NODES, "b"))
        await asyncio.sleep(1)
        assert await scene.changes() == [("ADDED", "b"), ("SYNCED", ""), ("DELETED", "b")]

    play(story)


def test_compacted_history_costs_a_fresh_list_and_no_change() -> None:
    """Case 054: 410 inside the stream."""

    async def story(scene: Scene) -> None:
        scene.watch()
        await asyncio.sleep(1)
        scene.server.store.compact()
        await scene.server.create(NODES, gpu_node("a", {}))
        scene.server.store.compact()
        await asyncio.sleep(200)
        names = [name for change, name in await scene.changes() if change == "ADDED"]
        assert names == ["a"]

    play(story)


def test_gone_at_a_later_page_begins_the_list_again() -> None:
    class Expiring(ApiServer):
        expired = 0

        async def list_page(
            self,
            resource: Resource,
            selection: Selection = ALL,
            *,
            limit: int = 500,
            continue_token: str = "",
        ) -> Page:
            if continue_token and not self.expired:
                self.expired += 1
                raise Gone("nodes", "the continue token is too old", 410, "Expired")
            return await ApiServer.list_page(
                self, resource, selection, limit=2, continue_token=continue_token
            )

    async def main(clock: Clock) -> None:
        scene = Scene(Expiring(clock, streams_lists=False), MemoryLog(clock), clock)
        for number in range(5):
            await scene.server.create(NODES, gpu_node(f"n{number}", {}))
        scene.watch()
        await asyncio.sleep(5)
        added = [name for change, name in await scene.changes() if change == "ADDED"]
        assert added == [f"n{number}" for number in range(5)]
        assert (await scene.changes())[-1] == ("SYNCED", "")
        await scene.unwatch()

    run_virtual(main)


def test_kind_that_is_not_served_is_told_once_and_found_when_it_comes() -> None:
    """R32: KubeVirt may arrive after us; within 30 s."""

    async def story(scene: Scene) -> None:
        scene.watch("VirtualMachine")
        await asyncio.sleep(60)
        assert await scene.changes() == [("ABSENT", "")]
        scene.server.kinds.add(VIRTUAL_MACHINES)
        await scene.server.create(VIRTUAL_MACHINES, gpu_vm("vm1", {}))
        await asyncio.sleep(10)
        assert (await scene.changes())[1:] == [("ADDED", "vm1"), ("SYNCED", "")]

    play(story)


def test_object_that_cannot_be_read_is_reported_and_the_rest_goes_on() -> None:
    async def story(scene: Scene) -> None:
        scene.server.kinds.add(VIRTUAL_MACHINES)
        broken = gpu_vm("broken", {}) | {"spec": ["no", "map"]}
        await scene.server.create(VIRTUAL_MACHINES, broken)
        scene.watch("VirtualMachine")
        await asyncio.sleep(1)
        await scene.server.create(VIRTUAL_MACHINES, gpu_vm("fine", {}))
        await asyncio.sleep(1)
        assert [name for change, name in await scene.changes() if change == "ADDED"] == ["fine"]
        assert len(scene.seen.malformed) == 1
        assert scene.seen.malformed[0].startswith("spec: ")
        (item,) = await scene.log.quarantined(10)
        assert item.what == "VirtualMachine default/broken"
        assert (item.why.startswith("spec: "), item.body) == (True, b"")

    play(story)


def test_waits_grow_with_failures_are_bounded_and_heed_retry_after() -> None:
    class Failing(ApiServer):
        async def list_page(self, *args: Any, **kwargs: Any) -> Page:
            error = TooManyRequests("nodes", "slow down", 429)
            error.retry_after_s = 45.0
            raise error if len(seen.restarts) == 3 else Unreachable("nodes", "connection refused")

    seen = Seen()

    async def main(clock: Clock) -> None:
        scene = Scene(Failing(clock, streams_lists=False), MemoryLog(clock), clock, seen)
        scene.watch()
        await asyncio.sleep(600)
        await scene.unwatch()

    run_virtual(main)
    waits = [wait_s for _, wait_s in seen.restarts if wait_s]
    assert waits[0] <= 0.2
    assert waits[3] == 45.0
    assert max(waits[:3] + waits[4:]) <= 30.0
    assert len(waits) < 40


def test_change_that_does_not_concern_us_is_not_told() -> None:
    """Quiet: heartbeats, foreign annotations and counters leave the lean object as it was."""

    async def story(scene: Scene) -> None:
        await scene.server.create(NODES, gpu_node("a", {}))
        scene.watch()
        await asyncio.sleep(1)
        await scene.server.patch(ObjectKey(NODES, "a"), {"metadata": {"annotations": {"x": "y"}}})
        await asyncio.sleep(1)
        assert await scene.changes() == [("ADDED", "a"), ("SYNCED", "")]

    play(story)


def test_paused_replica_that_wakes_up_does_no_harm() -> None:
    """A laggard repeats old versions and a deleted object: nothing is appended."""

    async def story(scene: Scene) -> None:
        await scene.server.create(PODS, _pod("a"))
        identity = await scene.log.identity()
        scene.watch("Pod")
        await asyncio.sleep(1)
        late = [entry for entry in await scene.told() if entry.name]
        await scene.server.delete(ObjectKey(PODS, "a", "default"))
        await asyncio.sleep(1)
        assert await scene.log.append_once(late, identity) == [False]

    play(story)


def _pod(name: str) -> Json:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "x"}]},
    }


def test_object_that_would_fill_the_log_is_kept_out() -> None:
    async def story(scene: Scene) -> None:
        scene.server.kinds.add(VIRTUAL_MACHINES)
        huge = gpu_vm("huge", {})
        huge["metadata"]["labels"] = {f"label-{number}": "x" * 60 for number in range(6000)}
        await scene.server.create(VIRTUAL_MACHINES, huge)
        scene.watch("VirtualMachine")
        await asyncio.sleep(1)
        assert await scene.changes() == [("SYNCED", "")]
        (item,) = await scene.log.quarantined(10)
        assert "more than 262144" in item.why

    play(story)
