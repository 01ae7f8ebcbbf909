"""The embedded server: where it listens, and what it keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventlog.adapters.embedded import EmbeddedServer
from eventlog.adapters.redis_streams import connect
from eventlog.entries import Entry, EntryType
from eventlog.errors import LogRefused
from tests.eventlog.conftest import now_ms


async def test_folder_with_a_long_path_serves_too(tmp_path: Path) -> None:
    """A socket's path is bounded by the kernel, a user's folder is not."""
    server = EmbeddedServer(tmp_path / ("long-" * 30))
    server.start()
    try:
        log = await connect(server.url, "c", "one", now_ms)
        assert await log.identity()
        await log.close()
    finally:
        server.stop()


async def test_stopped_and_started_it_has_kept_the_log(tmp_path: Path) -> None:
    for expected in (1, 2):
        server = EmbeddedServer(tmp_path)
        server.start()
        log = await connect(server.url, "c", "one", now_ms)
        await log.append_once([Entry(EntryType.SYNCED, "Node")], await log.identity())
        assert (await log.info()).entries == expected
        await log.close()
        server.stop()


def test_folder_in_use_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    first = EmbeddedServer(tmp_path)
    first.start()
    with pytest.raises(LogRefused, match="in use by another gpubinder"):
        EmbeddedServer(tmp_path).start()
    first.stop()
    again = EmbeddedServer(tmp_path)
    again.start()
    again.stop()
