"""A watcher replica's heartbeat: every ten seconds, so that a silent log is known to be stale (R33)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from eventlog.entries import EntryType
from eventlog.errors import LogError
from eventlog.port import EventAppender
from ingest.entries import Origin, marker_entry

BEAT_S = 10.0
"""Six beats fit into the default `stale_after`."""


async def beat(log: EventAppender, name: str, now_ms: Callable[[], int]) -> None:
    """Append a heartbeat for ever; a log that cannot be reached is tried again at the next beat."""
    while True:
        with suppress(LogError):  # the kinds' loops report it; a missing beat is what tells the binder
            mark = marker_entry("", EntryType.HEARTBEAT, Origin(name, now_ms()))
            await log.append_once([mark], await log.identity())
        await asyncio.sleep(BEAT_S)
