"""A watcher replica's heartbeat: every ten seconds, so that a silent log is known to be stale (R33)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from eventlog.entries import EntryType
from eventlog.errors import LogError
from eventlog.port import EventAppender
from ingest.entries import Origin, marker_entry

BEAT_S = 10.0
"""Six beats fit into the default `stale_after`."""


async def beat(
    log: EventAppender,
    name: str,
    now_ms: Callable[[], int],
    told: Callable[[LogError | None], None] = lambda _: None,
) -> None:
    """Append a heartbeat for ever; a log that cannot be reached is tried again at the next beat.

    `told` hears how each went: while nothing happens in the cluster, nobody else notices that nothing can be
    written.
    """
    while True:
        fault: LogError | None = None
        try:
            mark = marker_entry("", EntryType.HEARTBEAT, Origin(name, now_ms()))
            await log.append_once([mark], await log.identity())
        except LogError as error:
            fault = error
        told(fault)
        await asyncio.sleep(BEAT_S)
