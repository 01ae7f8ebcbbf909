"""Kinds spread over replicas, and taken over."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from eventlog.adapters.memory import MemoryLog
from eventlog.adapters.memory_presence import MemoryPresence
from eventlog.entries import Entry
from eventlog.errors import LogError, LogUnavailable
from ingest.heart import BEAT_S, beat
from ingest.replica import Replica
from ingest.sharing import WATCHERS_PER_KIND, kinds_of, watchers_of
from model.kinds import BY_KIND
from simulator.virtual_time import Clock, run_virtual

KINDS = sorted(BY_KIND)
names = st.lists(st.text("abcdef-0123456789", min_size=1, max_size=12), min_size=1, max_size=8, unique=True)


@given(names)
def test_every_kind_has_two_watchers_or_all_there_are(replicas: list[str]) -> None:
    for kind in KINDS:
        watching = [replica for replica in replicas if kind in kinds_of(replica, replicas, KINDS)]
        assert len(watching) == min(WATCHERS_PER_KIND, len(replicas))


@given(names, st.data())
def test_only_kinds_of_the_replica_that_goes_change_hands(replicas: list[str], data: st.DataObject) -> None:
    gone = data.draw(st.sampled_from(replicas))
    rest = [replica for replica in replicas if replica != gone]
    for kind in KINDS:
        before, after = set(watchers_of(kind, replicas)), set(watchers_of(kind, rest))
        assert before - {gone} <= after


def test_dead_replica_is_taken_over_within_ten_seconds_and_a_new_one_gets_its_share() -> None:
    async def main(clock: Clock) -> None:
        log = MemoryPresence(clock)

        async def forever(_: str) -> None:
            await asyncio.Event().wait()

        replicas = {name: Replica(log, name, KINDS, forever) for name in ("w1", "w2", "w3")}
        tasks = {name: asyncio.create_task(replica.run()) for name, replica in replicas.items()}
        await asyncio.sleep(5)
        assert all(0 < len(replica.running) < len(KINDS) for replica in replicas.values())
        tasks.pop("w2").cancel()
        await asyncio.sleep(10)
        assert all(set(replicas[name].running) == set(KINDS) for name in tasks)
        again = asyncio.create_task(replicas["w2"].run())
        await asyncio.sleep(5)
        assert sum(len(replica.running) for replica in replicas.values()) == 2 * len(KINDS)
        for task in (*tasks.values(), again):
            task.cancel()
        await asyncio.gather(*tasks.values(), again, return_exceptions=True)

    run_virtual(main)


def test_look_that_fails_is_told_and_what_was_watched_goes_on() -> None:
    """A log that refuses to be written is no reason to stop watching, and none to keep silent."""

    async def main(clock: Clock) -> None:
        class Refusing(MemoryPresence):
            is_full = False

            async def show(self, name: str) -> None:
                if self.is_full:
                    raise LogUnavailable("full")
                await MemoryPresence.show(self, name)

        async def forever(_: str) -> None:
            await asyncio.Event().wait()

        told: list[LogError] = []
        presence = Refusing(clock)
        replica = Replica(presence, "w1", KINDS, forever, told.append)
        task = asyncio.create_task(replica.run())
        await asyncio.sleep(5)
        assert told == []
        presence.is_full = True
        await asyncio.sleep(20)
        assert len(told) >= 9
        assert set(replica.running) == set(KINDS)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run_virtual(main)


def test_each_heartbeat_is_told_with_what_became_of_it() -> None:
    async def main(clock: Clock) -> None:
        class Refusing(MemoryLog):
            is_full = False

            async def append_once(self, entries: Sequence[Entry], identity: str) -> list[bool]:
                if self.is_full:
                    raise LogUnavailable("full")
                return await MemoryLog.append_once(self, entries, identity)

        log, told = Refusing(clock), list[str]()
        task = asyncio.create_task(beat(log, "w1", clock, lambda fault: told.append(str(fault))))
        await asyncio.sleep(BEAT_S / 2)
        log.is_full = True
        await asyncio.sleep(BEAT_S)
        log.is_full = False
        await asyncio.sleep(BEAT_S)
        assert told == ["None", "full", "None"]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run_virtual(main)
