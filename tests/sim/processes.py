"""Processes of ours: the shipped loops, each over its own clients; they start, stop, sleep and are killed."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from binder.bind import bind
from binder.consumer import PassReport, Post
from binder.core.policy import Policy
from binder.leader import Leader, LeaseName
from eventlog.adapters.memory import MemoryLog
from eventlog.adapters.memory_presence import MemoryPresence
from ingest.backoff import Backoff
from ingest.causes import Cause
from ingest.heart import beat
from ingest.replica import Replica
from ingest.watcher import KindWatcher
from kube.port import Json
from model.kinds import BY_KIND
from simulator.apiserver.server import ApiServer
from simulator.virtual_time import Clock
from tests.sim.clients import ProcessClient, ProcessLog, ProcessPresence, Witness
from tests.sim.faults import Body, Weather

LEASE = ("kube-system", "gpubinder-binder")


@dataclass(slots=True)
class Ground:
    """What all processes share."""

    server: ApiServer
    log: MemoryLog
    presence: MemoryPresence
    clock: Clock
    weather: Weather


@dataclass(slots=True)
class Told:
    """Hears what a process says of itself."""

    on_pass: Callable[[PassReport], None]
    counts: Counter[str] = field(default_factory=Counter)
    terms: list[str] = field(default_factory=list)

    def pass_done(self, report: PassReport) -> None:
        self.on_pass(report)

    def entry_unreadable(self, entry_id: str, why: str) -> None:
        self.counts["unreadable"] += 1

    def claim_unreadable(self, name: str, why: str) -> None:
        self.counts["unreadable"] += 1

    def term_began(self, epoch: int) -> None:
        self.counts["terms"] += 1
        self.terms.append(f"began {epoch}")

    def term_ended(self, why: str) -> None:
        self.terms.append(why)

    def event_seen(self, kind: str, change: str, *, is_appended: bool) -> None:
        pass

    def object_malformed(self, kind: str, raw: Json, why: str) -> None:
        self.counts["malformed"] += 1

    def watch_restarted(self, kind: str, cause: Cause, why: str, wait_s: float) -> None:
        self.counts["watch restarts"] += 1

    def heard(self, kind: str) -> None:
        pass

    def listed(self, kind: str) -> None:
        pass

    def lease_unreachable(self, why: str) -> None:
        self.counts["lease out of reach"] += 1


@dataclass(slots=True)
class Process:
    """One `gpubinder up`, with a clock of its own."""

    body: Body
    told: Told
    policy: Policy
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    skew_ms: int = 0

    def start(self, ground: Ground, witness: Witness) -> None:
        name, body = self.body.name, self.body

        def now_ms() -> int:
            return ground.clock() + self.skew_ms

        client = ProcessClient(ground.server, body)
        log = ProcessLog(ground.log, body)

        async def watch(kind: str) -> None:
            backoff = Backoff(random.Random(f"{name} {kind}"))
            await KindWatcher(client, log, BY_KIND[kind], name, now_ms, self.told, backoff).run()

        leader = Leader(client, LeaseName(*LEASE, name), now_ms, self.told.lease_unreachable)
        post = Post(
            ProcessClient(ground.server, body, witness),
            ProcessLog(ground.log, body, witness),
            leader,
            self.policy,
            now_ms,
            self.told,
            name,
        )
        presence = ProcessPresence(ground.presence, body)
        loops = (
            Replica(presence, name, BY_KIND, watch).run(),
            beat(log, name, now_ms),
            bind(post, self.told),
        )
        self.tasks = [asyncio.create_task(loop) for loop in loops]
        self.tasks.append(asyncio.create_task(self._end_with_death()))

    async def _end_with_death(self) -> None:
        """Nothing more of a killed process runs; its lease is not given back."""
        await self.body.died.wait()
        for task in self.tasks[:-1]:
            task.cancel()

    async def stop(self) -> None:
        """SIGTERM: it ends in order."""
        self.wake()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def kill(self) -> None:
        """SIGKILL: nothing of it goes on."""
        self.body.died.set()
        self.body.awake.set()

    def sleep(self) -> None:
        """SIGSTOP."""
        if not self.is_dead:
            self.body.awake.clear()

    def wake(self) -> None:
        """SIGCONT."""
        self.body.awake.set()

    @property
    def is_dead(self) -> bool:
        return self.body.died.is_set()

    @property
    def is_asleep(self) -> bool:
        return not self.body.awake.is_set()

    def fault_of_ours(self) -> str:
        """What a loop has ended with, if it was no death: loops end by faults of ours alone."""
        for task in self.tasks[:-1]:
            if task.done() and not task.cancelled() and task.exception() is not None:
                error = task.exception()
                return f"{type(error).__name__}: {error}"
        return ""
