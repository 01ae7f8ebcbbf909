"""An event loop whose time is virtual: when nothing is ready, it jumps to the next timer instead of sleeping.

Everything that waits with asyncio alone runs in no real time and always in the same order. A loop that would
wait for ever, or work for ever without time passing, says so instead of hanging. Threads and sockets are not
waited for: what needs them needs real time.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")
Clock = Callable[[], int]
"""Milliseconds since the epoch."""
START_MS = 1_790_000_000_000
"""September 2026: any fixed moment does."""
MAX_TURNS = 50_000
"""Turns of the loop at one instant; starting 50 VMs on 20 nodes takes some 2,000 in all."""
_NAMED_TASKS = 8


class Stuck(RuntimeError):
    """Nothing is ready and no timer is set: every task waits for another."""


class Spinning(RuntimeError):
    """The tasks keep each other busy and no time passes."""


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """A loop with a clock of its own."""

    def __init__(self) -> None:
        self._virtual_s = 0.0
        super().__init__(_JumpingSelector(self))

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._virtual_s

    def jump(self, seconds: float) -> None:
        """Let time pass."""
        self._virtual_s += seconds

    def waiting(self) -> str:
        """The first tasks that have not ended, and where each one is."""
        tasks = sorted((task for task in asyncio.all_tasks(self)), key=lambda task: task.get_name())
        places = []
        for task in tasks[:_NAMED_TASKS]:
            frame = next(iter(task.get_stack(limit=1)), None)
            place = f"{frame.f_code.co_qualname}:{frame.f_lineno}" if frame else "its end"
            places.append(f"{task.get_name()} at {place}")
        left = len(tasks) - len(places)
        return ", ".join(places) + (f" and {left} more" if left else "")


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop
        self._turns = 0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if ready:
            return ready
        if timeout is None:
            raise Stuck(f"every task waits for another, nothing will ever happen: {self._loop.waiting()}")
        if timeout > 0:
            self._turns = 0
            self._loop.jump(timeout)
            return ready
        self._turns += 1
        if self._turns > MAX_TURNS:
            self._turns = 0  # the tasks are given the turns they need to be cancelled
            raise Spinning(f"{MAX_TURNS} turns at {self._loop.time():.3f} s: {self._loop.waiting()}")
        return ready


def run_virtual(main: Callable[[Clock], Coroutine[Any, Any, Result]], start_ms: int = START_MS) -> Result:
    """Run `main(clock)` to its end in virtual time. Raises Stuck or Spinning where it has none."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        loop = runner.get_loop()
        return runner.run(main(lambda: start_ms + round(loop.time() * 1000)))
