"""An event loop whose time is virtual: when nothing is ready, it jumps to the next timer instead of sleeping.

Everything that waits with asyncio alone runs in no real time and always in the same order. A loop that would
wait for ever says so instead of hanging.
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


class Stuck(RuntimeError):
    """Nothing is ready and no timer is set: every task waits for another."""


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


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready and timeout is None:
            raise Stuck("every task waits for another: nothing will ever happen")
        if not ready and timeout:
            self._loop.jump(timeout)
        return ready


def run_virtual(main: Callable[[Clock], Coroutine[Any, Any, Result]], start_ms: int = START_MS) -> Result:
    """Run `main(clock)` to its end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        loop = runner.get_loop()
        return runner.run(main(lambda: start_ms + round(loop.time() * 1000)))
