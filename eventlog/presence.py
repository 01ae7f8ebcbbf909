"""Which watcher replicas live: each shows itself every few seconds, by the log's own clock.

One clock judges all: a replica with a wrong one neither lives for ever nor seems dead.
"""

from __future__ import annotations

from typing import Protocol


class Presence(Protocol):
    """Every method may raise `eventlog.errors.LogError`."""

    async def show(self, name: str) -> None:
        """We live now."""
        ...

    async def present(self, within_ms: int) -> list[str]:
        """The names shown within the last `within_ms`, sorted."""
        ...
