"""A reviewer over a simulated API server and a log in memory, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from admission.review import Review
from admission.reviewing import Reviewer, Rules
from eventlog.adapters.memory import MemoryLog
from eventlog.entries import Entry, EntryType, Stored
from eventlog.errors import LogUnavailable
from kube.port import Json
from model.resources import GPU_BUDGETS, GPU_CLAIMS, GPU_CLASSES, PODS
from projections.folds.ledger import NAME
from simulator.apiserver.server import ApiServer
from simulator.cluster import api_server
from simulator.virtual_time import Clock, run_virtual
from tests.admission.ledgers import fields_of

KUBEVIRT = "system:serviceaccount:kubevirt:kubevirt-controller"


@dataclass
class FailingLog:
    """The log in memory, which can be away, or hang."""

    log: MemoryLog
    is_away: bool = False
    hangs: bool = False
    reads: int = 0

    async def recall(self, projection: str) -> dict[str, bytes]:
        self.reads += 1
        if self.hangs:
            await asyncio.sleep(3600)
        if self.is_away:
            raise LogUnavailable("Redis at redis://x:6379 refuses connections")
        return await self.log.recall(projection)

    async def read_range(self, after_id: str, limit: int) -> list[Stored]:
        return await self.log.read_range(after_id, limit)


@dataclass
class Desk:
    """What a test has before it."""

    server: ApiServer
    log: FailingLog
    clock: Clock
    reviewer: Reviewer
    _epoch: int = field(default=0)

    async def happens(self, kind: EntryType = EntryType.MODIFIED, name: str = "x") -> str:
        """Something is appended to the log; its place."""
        log = self.log.log
        entry = Entry(kind, "Node", "", name, f"uid-{name}", str(self.clock()), ts_ms=self.clock())
        await log.append_once([entry], await log.identity())
        return (await log.read_range("0-0", 100_000))[-1].id

    async def count(self, **parts: Any) -> None:
        """The binder writes the ledger, up to what has happened."""
        position = await self.happens(EntryType.HEARTBEAT)
        await self.log.log.commit(self._epoch, b"{}", {NAME: fields_of(**parts, position=position)})


def at_desk(story: Callable[[Desk], Awaitable[None]], rules: Rules | None = None) -> None:
    """Run a story; nothing is on sale yet."""

    async def main(clock: Clock) -> None:
        server, log = await api_server(clock), FailingLog(MemoryLog(clock))
        reviewer = Reviewer(log, server, clock, rules or Rules())
        try:
            await story(Desk(server, log, clock, reviewer))
        finally:
            await reviewer.close()

    run_virtual(main)


def creating(kind: str, body: Json, user: str = "tenant", namespace: str = "default") -> Review:
    group = "" if kind == "Pod" else "gpu.cozystack.io"
    return Review("u", group, kind, "CREATE", "x", namespace, user, new=body)


def claim(units: int = 1, class_name: str = "h100", **metadata: object) -> Json:
    return {"metadata": {"name": "order", **metadata}, "spec": {"className": class_name, "units": units}}


KINDS = {kind.kind: kind for kind in (GPU_CLASSES, GPU_CLAIMS, GPU_BUDGETS, PODS)}
