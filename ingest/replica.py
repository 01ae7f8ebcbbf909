"""One watcher replica: shows that it lives, and runs the loops of the kinds that are its share.

Replicas know of each other through the log alone. A replica that is not heard of for `GONE_S` has its kinds
taken over at the next look: within ten seconds of its death. Must not know: what a kind's loop does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass, field
from typing import Any

from eventlog.errors import LogError
from eventlog.presence import Presence
from ingest.sharing import kinds_of

LOOK_S = 2.0
GONE_S = 6.0
"""Three missed looks; with the next look after that, a takeover takes 8 s at most."""

Loop = Callable[[str], Coroutine[Any, Any, None]]
"""Makes the loop of a kind."""


@dataclass(slots=True)
class Replica:
    """`watch` makes the loop of each kind in `kinds` that falls to us; `failed` hears of looks in vain."""

    presence: Presence
    name: str
    kinds: Collection[str]
    watch: Loop
    failed: Callable[[LogError], None] = lambda _: None
    running: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    async def run(self) -> None:
        """Take part until cancelled. Raises what a loop raises: loops end by faults of ours only."""
        try:
            while True:
                try:
                    await self.presence.show(self.name)
                    others = await self.presence.present(int(GONE_S * 1000))
                    await self._share(kinds_of(self.name, others, self.kinds))
                except LogError as error:  # what we watched goes on
                    self.failed(error)
                self._raise_faults()
                await asyncio.sleep(LOOK_S)
        finally:
            await self._share(frozenset())

    async def _share(self, ours: frozenset[str]) -> None:
        for kind in sorted(ours - self.running.keys()):
            self.running[kind] = asyncio.create_task(self.watch(kind))
        given_up = [self.running.pop(kind) for kind in sorted(self.running.keys() - ours)]
        for task in given_up:
            task.cancel()
        await asyncio.gather(*given_up, return_exceptions=True)

    def _raise_faults(self) -> None:
        for task in self.running.values():
            if task.done():
                task.result()
