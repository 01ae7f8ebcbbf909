"""Whole lives in virtual time: placed, waiting, given back, crashed anywhere, an emptied log."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from eventlog.port import Retention, Snapshot
from kube.errors import OutcomeUnknown, Unreachable
from kube.port import MERGE, PLAIN_DELETE, DeleteOptions, Json, ObjectKey, PatchOptions
from model.resources import GPU_CLAIMS, GPU_CLASSES, LEASES, NODES, PODS, VIRTUAL_MACHINES, Resource
from simulator.apiserver.server import ApiServer
from tests.life.system import H100, Life, live, stop


class DyingClient:
    """A client whose process dies with its `nth` write of ours, before or after it was carried out."""

    def __init__(self, server: ApiServer, nth: int, *, is_after: bool) -> None:
        self._server = server
        self._left = nth
        self._is_after = is_after
        self.died = asyncio.Event()
        self.get = server.get
        self.list_page = server.list_page
        self.watch = server.watch

    async def create(self, resource: Resource, body: Json) -> Json:
        return await self._write(resource, self._server.create(resource, body))

    async def replace(self, key: ObjectKey, body: Json, subresource: str = "") -> Json:
        return await self._write(key.resource, self._server.replace(key, body, subresource))

    async def patch(
        self,
        key: ObjectKey,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        options: PatchOptions = MERGE,
    ) -> Json:
        return await self._write(key.resource, self._server.patch(key, patch, options))

    async def delete(self, key: ObjectKey, options: DeleteOptions = PLAIN_DELETE) -> None:
        await self._write(key.resource, self._server.delete(key, options))

    async def _write(self, resource: Resource, write: Any) -> Any:
        if resource not in (LEASES, GPU_CLASSES):
            self._left -= 1
        if self._left > 0 or resource in (LEASES, GPU_CLASSES):
            return await write
        if self._is_after:
            await write
        else:
            write.close()
        self.died.set()
        return await asyncio.Event().wait()


def test_vm_is_placed_runs_stops_and_gives_its_units_to_the_one_that_waits() -> None:
    """R8, R12, R26."""

    async def story(life: Life) -> None:
        await life.add_node("gpu-1", 2)
        async with life.process():
            await life.start_vm("first", 2)
            await life.until(lambda: life.vm_status("first") == "Running")
            await life.start_vm("second", 1)
            await life.until(lambda: "second" in life.claims())
            await asyncio.sleep(5)
            condition = life.claims()["second"]["status"]["conditions"][0]
            assert (condition["reason"], condition["status"]) == ("NoRoom", "False")
            life.check()
            await life.halt_vm("first")
            await life.until(lambda: life.vm_status("second") == "Running")
            assert list(life.claims()) == ["second"]

    live(story)


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("nth", [1, 2, 3, 4, 5, 6])
def test_killed_at_any_write_it_ends_right_and_books_nothing_twice(nth: int, is_after: bool) -> None:
    """R3: two VMs are six writes (claim, status, pin each); the process dies at each of them."""

    async def story(life: Life) -> None:
        await life.add_node("gpu-1", 1)
        await life.add_node("gpu-2", 1)
        dying = DyingClient(life.server, nth, is_after=is_after)
        tasks = life.start("doomed", dying)
        await life.start_vm("a")
        await life.start_vm("b")
        await asyncio.wait_for(dying.died.wait(), 60)
        for task in tasks:
            task.cancel()  # nothing more of it runs; its lease is not given back, as after SIGKILL
        life.check()
        async with life.process("again"):
            await life.until(lambda: life.vm_status("a") == life.vm_status("b") == "Running")
        assert {life.node_of("a"), life.node_of("b")} == {"gpu-1", "gpu-2"}
        assert len(life.claims()) == 2

    live(story)


def test_of_two_processes_one_is_active_and_the_other_takes_over() -> None:
    """Leader: the second does not begin while the first lives, and begins soon after it has stopped."""

    async def story(life: Life) -> None:
        await life.add_node("gpu-1", 4)
        first = life.start("first")
        await life.start_vm("a")
        await life.until(lambda: life.vm_status("a") == "Running")
        async with life.process("second"):
            await asyncio.sleep(60)
            assert life.told.terms == ["began 0"]
            await stop(first)
            await life.start_vm("b")
            await life.until(lambda: life.vm_status("b") == "Running", limit_s=10)
        assert life.told.terms[1] == "began 1"

    live(story)


def test_emptied_log_costs_a_cold_start_and_nothing_else() -> None:
    """Retention: watchers list again, the binder begins anew; claims live in Kubernetes."""

    async def story(life: Life) -> None:
        await life.add_node("gpu-1", 2)
        async with life.process():
            await life.start_vm("a")
            await life.until(lambda: life.vm_status("a") == "Running")
            life.log.flush()
            await life.start_vm("b")
            await life.until(lambda: life.vm_status("b") == "Running", limit_s=60)
            assert any("emptied or replaced" in term for term in life.told.terms)

    live(story)


def test_api_server_that_is_away_is_waited_out() -> None:
    """Watchers and binder go on where they stopped; nothing is decided from a stale view."""

    class Away(DyingClient):
        is_away = False

        async def list_away(self, *args: Any, **kwargs: Any) -> Any:
            if self.is_away:
                raise Unreachable("GPUClaims", "connection refused")
            return await self._server.list_page(*args, **kwargs)

    async def story(life: Life) -> None:
        await life.add_node("gpu-1", 2)
        client = Away(life.server, 10**9, is_after=False)
        client.list_page = client.list_away
        async with life.process(client=client):
            await life.start_vm("a")
            await life.until(lambda: life.vm_status("a") == "Running")
            client.is_away = True
            await life.start_vm("b")
            await asyncio.sleep(10)
            assert life.vm_status("b") == "Starting"
            client.is_away = False
            await life.until(lambda: life.vm_status("b") == "Running")

    live(story)


def test_write_whose_answer_is_lost_is_not_repeated_blindly() -> None:
    """The claim was created and nobody knows: the next pass finds it and goes on from there."""

    class Lossy(DyingClient):
        lost = 0

        async def create(self, resource: Resource, body: Json) -> Json:
            created = await self._server.create(resource, body)
            if resource == GPU_CLAIMS and not self.lost:
                self.lost += 1
                raise OutcomeUnknown("GPUClaim", "no answer in time")
            return created

    async def story(life: Life) -> None:
        await life.add_node("gpu-1", 1)
        client = Lossy(life.server, 10**9, is_after=False)
        async with life.process(client=client):
            await life.start_vm("a")
            await life.until(lambda: life.vm_status("a") == "Running")
        assert client.lost == 1
        assert len(life.claims()) == 1

    live(story)


def test_idle_system_writes_nothing_and_lists_nothing() -> None:
    """Steady state: heartbeats and node heartbeats wake nobody."""

    async def story(life: Life) -> None:
        await life.add_node("gpu-1", 1)
        async with life.process():
            await life.start_vm("a")
            await life.until(lambda: life.vm_status("a") == "Running")
            await asyncio.sleep(10)
            passes = len(life.told.passes)
            await asyncio.sleep(300)
            assert len(life.told.passes) - passes <= 5
            assert all(not report.result.decisions for report in life.told.passes[passes:])

    live(story)


def test_placing_goes_on_with_the_first_sign_of_life_after_a_silence() -> None:
    """R33: nothing but heartbeats may come for hours. A clock that ran ahead looks like a silence."""

    async def story(life: Life) -> None:
        right, skew_ms = life.clock, 0
        life.clock = lambda: right() + skew_ms
        await life.add_node("gpu-1", 1)
        async with life.process():
            await asyncio.sleep(30)
            skew_ms = 600_000
            await life.start_vm("a")
            await asyncio.sleep(30)
            assert life.told.passes[-1].result.blocked.startswith("StaleLog")
            assert life.node_of("a") == ""
            skew_ms = 0
            await life.until(lambda: life.node_of("a") != "", limit_s=15)

    live(story)


def test_changes_that_never_pause_keep_nobody_waiting() -> None:
    """A batch ends by time, counted from its first entry, also when there is no quiet moment to end it."""

    async def story(life: Life) -> None:
        await life.add_node("gpu-1", 9)

        async def relabel() -> None:
            for number in range(10**6):
                labels = {"metadata": {"labels": {"number": str(number)}}}
                await life.server.patch(ObjectKey(NODES, "gpu-1"), labels)
                await asyncio.sleep(0.02)

        async with life.process():
            await life.start_vm("first")
            await life.until(lambda: life.node_of("first") != "")
            relabelling = asyncio.create_task(relabel())
            waits = []
            for number in range(8):
                await asyncio.sleep(1.3)
                began = asyncio.get_running_loop().time()
                await life.start_vm(f"vm-{number}")
                await life.until(lambda name=f"vm-{number}": life.node_of(name) != "")
                waits.append(asyncio.get_running_loop().time() - began)
            relabelling.cancel()
        assert max(waits) < 1.0, waits

    live(story)


def test_deleted_vm_leaves_nothing_while_it_waits() -> None:
    """A VM deleted while gated takes its claim along (owner references)."""

    async def story(life: Life) -> None:
        await life.add_node("gpu-1", 1)
        async with life.process():
            await life.start_vm("a", 2)
            await life.until(lambda: "a" in life.claims())
            await life.server.delete(ObjectKey(VIRTUAL_MACHINES, "a", "default"))
            await life.until(lambda: not life.claims() and not list(life.server.store.scan(PODS)))

    live(story)


def test_same_seed_gives_the_same_life_byte_for_byte() -> None:
    """R4, and what every later replay rests on."""

    async def story(life: Life) -> list[tuple[str, str, bytes]]:
        for number in range(4):
            await life.add_node(f"gpu-{number}", 4)
        async with life.process():
            for number in range(12):
                await life.start_vm(f"vm-{number}", 1 + number % 3)
            await asyncio.sleep(30)
            await life.halt_vm("vm-3")
            await asyncio.sleep(30)
        return await life.log.read_passes("0-0", 10_000)

    assert live(story, seed=7) == live(story, seed=7)


def test_term_begins_by_folding_the_whole_log() -> None:
    """Start: what an earlier process has read and acknowledged is folded again from the log."""

    async def story(life: Life) -> None:
        await life.add_node("gpu-1", 1)
        async with life.process():
            await life.start_vm("a")
            await life.until(lambda: life.vm_status("a") == "Running")
        async with life.process("again"):
            await asyncio.sleep(5)
            assert life.told.passes[-1].result.blocked == ""
            assert not life.told.passes[-1].result.decisions

    live(story)


def test_long_life_is_trimmed_and_a_new_start_begins_from_the_snapshot() -> None:
    """Retention: what a day has written goes, what is needed stays, and the next process decides the same."""

    async def story(life: Life) -> None:
        await life.add_node("gpu-1", 2)
        life.retention = Retention(retain_ms=20 * 60 * 1000)
        async with life.process():
            await life.start_vm("a")
            await life.until(lambda: life.vm_status("a") == "Running")
            lengths = []
            for turn in range(20):
                await life.start_vm(f"turn-{turn}")
                await asyncio.sleep(300)
                await life.server.delete(ObjectKey(VIRTUAL_MACHINES, f"turn-{turn}", "default"))
                await asyncio.sleep(300)
                lengths.append((await life.log.info()).entries)
            assert max(lengths[10:]) <= max(lengths[:10]), (
                lengths
            )  # snapshots and trims come in turns of eight
        assert await life.log.has_lost("0-0")
        async with life.process("again"):
            await life.start_vm("b")
            await life.until(lambda: life.vm_status("b") == "Running", limit_s=60)
        assert life.node_of("a") == life.node_of("b") == "gpu-1"

    live(story)


def test_entries_that_went_unread_make_everybody_list_again() -> None:
    """Case 065: someone trims the stream while no binder reads; the fold would lack what went."""

    async def story(life: Life) -> None:
        await life.add_node("gpu-1", 2)
        async with life.process():
            await life.start_vm("a")
            await life.until(lambda: life.vm_status("a") == "Running")
        await life.log.save_snapshot(9, Snapshot("99999999999999-0", b"of another version"))
        await life.log.trim(Retention(retain_ms=0, max_entries=0), life.clock() + 10**6)
        async with life.process("again"):
            await life.start_vm("b")
            await life.until(lambda: life.vm_status("b") == "Running", limit_s=60)
            assert any("emptied or replaced" in term for term in life.told.terms)

    live(story)


def test_entry_that_nobody_can_read_is_quarantined_with_its_bytes_and_stops_nothing() -> None:
    async def story(life: Life) -> None:
        await life.add_node("gpu-1", 1)
        async with life.process():
            await life.until(lambda: bool(life.told.passes) and not life.told.passes[-1].result.blocked)
            life.log.plant({b"v": b"99", b"t": b"ADDED"})
            await life.start_vm("a")
            await life.until(lambda: life.vm_status("a") == "Running")
        (item,) = await life.log.quarantined(10)
        assert (item.body, "newer than" in item.why) == (b"v 99\nt ADDED", True)

    live(story)


def test_class_deleted_under_an_order_stays_until_the_order_has_gone() -> None:
    """R30: its units are held, whoever sells them under another name."""

    async def story(life: Life) -> None:
        await life.add_node("gpu-1", 2)
        body = {"metadata": {"name": "o", "namespace": "default"}, "spec": {"className": "h100", "units": 2}}
        async with life.process():
            await life.server.create(GPU_CLAIMS, body)
            await life.until(lambda: life.node_of("o") == "gpu-1")
            await life.server.delete(ObjectKey(GPU_CLASSES, "h100"))
            other = {"metadata": {"name": "other"}, "spec": {"resourceName": H100}}
            await life.server.create(GPU_CLASSES, other)
            await life.start_vm("a", 1)
            await asyncio.sleep(20)
            assert life.node_of("a") == ""
            await life.server.delete(ObjectKey(GPU_CLAIMS, "o", "default"))
            await life.until(lambda: life.vm_status("a") == "Running")
            names = [one["metadata"]["name"] for one in life.server.store.scan(GPU_CLASSES)]
            assert names == ["other"]

    live(story)
