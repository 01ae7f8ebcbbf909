"""A value that is asked for when it is needed, by one asker for all, and kept for a moment."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class NotInTime(Exception):
    """The value is being asked for, and has not come in time."""


class Kept(Generic[T]):
    """Asks at most once per `keep_s`, also after a failure; nobody waits longer than `patience_s` for it.

    A store that hangs costs the first asker its patience and those after it nothing.
    """

    def __init__(self, ask: Callable[[], Awaitable[T]], *, keep_s: float, patience_s: float) -> None:
        self._ask = ask
        self._keep_s = keep_s
        self._patience_s = patience_s
        self._task: asyncio.Task[T] | None = None
        self._asked_s = 0.0

    async def get(self) -> T:
        """The value, at most `keep_s` old. Raises what asking raises, and NotInTime."""
        now_s = asyncio.get_running_loop().time()
        if self._task is None or (self._task.done() and now_s - self._asked_s >= self._keep_s):
            self._task, self._asked_s = asyncio.create_task(self._asking()), now_s
        task = self._task
        if not task.done():
            await asyncio.wait({task}, timeout=max(0.0, self._asked_s + self._patience_s - now_s))
        if not task.done():
            raise NotInTime
        return task.result()

    async def close(self) -> None:
        """End what is still being asked."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _asking(self) -> T:
        return await self._ask()
