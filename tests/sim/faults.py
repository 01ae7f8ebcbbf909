"""What goes wrong with calls to the API server and to the log, and a process's own end or pause.

Each fault of a script draws from its own generator, so that dropping one leaves the others as they were.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from eventlog.errors import LogUnavailable
from kube.errors import (
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    OutcomeUnknown,
    ServerFault,
    TooManyRequests,
    Unreachable,
)
from tests.sim.script import Fault

WRITE, READ, WATCH, LOG = "writes", "reads", "watches", "log calls"
CALLS = (WRITE, READ, WATCH, LOG)
TIMEOUT_S = 5.0
SILENCE_S = 90.0
"""After which the client gives up on a stream that says nothing, bookmarks included."""

BEFORE: dict[str, Callable[[str], ApiError]] = {
    "unreachable": lambda on: Unreachable(on, "connection refused"),
    "server fault": lambda on: ServerFault(on, "etcdserver: leader changed", 500, "InternalError"),
    "too many": lambda on: TooManyRequests(on, "too many requests", 429, "TooManyRequests"),
    "conflict": lambda on: Conflict(on, "the object has been modified", 409, "Conflict"),
    "not found": lambda on: NotFound(on, "not found", 404, "NotFound"),
    "invalid": lambda on: Invalid(on, "refused by a policy", 422, "Invalid"),
    "forbidden": lambda on: Forbidden(on, "refused by a quota", 403, "Forbidden"),
}
"""The call has no effect and is answered so."""
SLOW, UNSENT, UNANSWERED, LATE = "slow", "time-out before", "time-out after", "time-out, then done"
CUT, SILENT, EXPIRED = "stream cut", "stream silent", "stream expired"
AWAY, LOST = "log away", "log answer lost"
API_KINDS = {
    WRITE: (*BEFORE, SLOW, UNSENT, UNANSWERED, LATE),
    READ: ("unreachable", "server fault", "too many", SLOW, UNSENT),
    WATCH: ("unreachable", "server fault", "too many", CUT, SILENT, EXPIRED),
}
"""What may happen to which calls: a read that lies about an object, no API server gives."""
_ON_THE_WAY: set[asyncio.Future[None]] = set()
LOG_KINDS = (AWAY, LOST, SLOW)


@dataclass(slots=True)
class Weather:
    """Which faults are in force, by the loop's clock."""

    faults: tuple[Fault, ...]
    counts: Counter[str] = field(default_factory=Counter)
    is_calm: bool = False
    _dice: dict[Fault, random.Random] = field(default_factory=dict)

    def strikes(self, process: str, calls: str) -> str:
        """The kind of fault that this call meets, or nothing."""
        now_s = asyncio.get_running_loop().time()
        for fault in self.faults:
            if self.is_calm or fault.calls != calls or fault.process not in ("", process):
                continue
            if fault.from_s <= now_s < fault.to_s and self._die(fault).random() < fault.rate:
                self.counts[fault.kind] += 1
                return fault.kind
        return ""

    def chance(self, kind: str) -> random.Random:
        """For what else a fault of this kind draws."""
        return next(self._die(fault) for fault in self.faults if fault.kind == kind)

    def _die(self, fault: Fault) -> random.Random:
        return self._dice.setdefault(fault, random.Random(str(fault)))


@dataclass(slots=True)
class Doom:
    """The process dies or sleeps at its nth such call from now on, before or after it was carried out."""

    calls: str
    left: int
    is_after: bool
    for_s: float = 0.0
    """How long it sleeps; 0: it dies."""


@dataclass(slots=True)
class Body:
    """One process as its calls see it: it lives, sleeps (SIGSTOP) or is dead (SIGKILL)."""

    name: str
    weather: Weather
    awake: asyncio.Event = field(default_factory=asyncio.Event)
    died: asyncio.Event = field(default_factory=asyncio.Event)
    doom: Doom | None = None
    calls: Counter[str] = field(default_factory=Counter)
    """How many of each were begun."""

    def __post_init__(self) -> None:
        self.awake.set()

    async def proceed(self) -> None:
        """Nothing of a dead process goes on, and nothing of a sleeping one before it wakes."""
        while not self.awake.is_set() and not self.died.is_set():
            await self.awake.wait()
        if self.died.is_set():
            raise asyncio.CancelledError

    async def call_api(
        self, calls: str, target: str, do: Callable[[], Awaitable[Any]], counts_as: str = ""
    ) -> Any:
        """One request, as well as it goes; `counts_as` is what a doom counts it as."""
        await self.proceed()
        kind = self.weather.strikes(self.name, calls)
        if kind in BEFORE:
            raise BEFORE[kind](target)
        if kind == SLOW:
            await asyncio.sleep(self.weather.chance(kind).uniform(0.05, TIMEOUT_S - 0.5))
        if kind in (UNSENT, LATE):
            await asyncio.sleep(TIMEOUT_S)
        if kind == LATE:
            asyncio.get_running_loop().call_later(1.0, _do_later, do)
        if kind in (UNSENT, LATE):
            await self.proceed()
            raise OutcomeUnknown(target, "no answer within 5 s")
        result = await self._do(counts_as or calls, do)
        if kind == UNANSWERED:
            await asyncio.sleep(TIMEOUT_S)
            raise OutcomeUnknown(target, "no answer within 5 s")
        return result

    async def call_log(self, name: str, do: Callable[[], Awaitable[Any]]) -> Any:
        """One command to the log, as well as it goes."""
        await self.proceed()
        kind = self.weather.strikes(self.name, LOG)
        if kind == AWAY:
            raise LogUnavailable(f"{name}: connection refused")
        if kind == SLOW:
            await asyncio.sleep(self.weather.chance(kind).uniform(0.05, 2.0))
        result = await self._do(name, do)
        if kind == LOST:
            raise LogUnavailable(f"{name}: the connection was closed before the answer")
        return result

    async def _do(self, calls: str, do: Callable[[], Awaitable[Any]]) -> Any:
        await self.proceed()
        self.calls[calls] += 1
        doom = self._doom_of(calls)
        if doom is not None and not doom.is_after:
            self._meet(doom)
            await self.proceed()
        result = await do()
        if doom is not None and doom.is_after:
            self._meet(doom)
        await self.proceed()
        return result

    def _doom_of(self, calls: str) -> Doom | None:
        """What is to happen at this call."""
        doom = self.doom
        if doom is None or doom.calls != calls:
            return None
        doom.left -= 1
        if doom.left > 0:
            return None
        self.doom = None
        return doom

    def _meet(self, doom: Doom) -> None:
        self.weather.counts["asleep at a call" if doom.for_s else "killed at a call"] += 1
        if doom.for_s:
            self.awake.clear()
            asyncio.get_running_loop().call_later(doom.for_s, self.awake.set)
        else:
            self.died.set()
            self.awake.set()

    def stream_end(self, target: str, kind: str) -> ApiError:
        """How a watch ends that was struck."""
        if kind == EXPIRED:
            return Gone(target, "too old resource version", 410, "Expired")
        return Unreachable(target, "the stream ended in the middle")


def _do_later(do: Callable[[], Awaitable[Any]]) -> None:
    """The request arrives after its sender has given up on it."""

    async def carried_out() -> None:
        try:
            await do()
        except ApiError:
            return

    _ON_THE_WAY.add(task := asyncio.ensure_future(carried_out()))
    task.add_done_callback(_ON_THE_WAY.discard)
