"""Presence, in memory and in Redis."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from eventlog.adapters.memory_presence import MemoryPresence
from eventlog.adapters.redis_presence import connect
from eventlog.presence import Presence
from tests.eventlog.conftest import SERVERS, Server, now_ms, url_as

pytestmark = pytest.mark.enable_socket


@pytest.fixture(params=["memory", *sorted(SERVERS)])
async def presence(
    request: pytest.FixtureRequest, servers: Callable[[str], Server], cluster: str
) -> AsyncIterator[Presence]:
    if request.param == "memory":
        yield MemoryPresence(now_ms)
        return
    presence = connect(url_as("gpubinder", servers(request.param)), cluster)
    yield presence
    await presence.close()


async def test_replica_is_present_while_it_shows_itself(presence: Presence) -> None:
    assert await presence.present(60_000) == []
    await presence.show("w2")
    await presence.show("w1")
    assert await presence.present(60_000) == ["w1", "w2"]
    await asyncio.sleep(0.03)
    await presence.show("w1")
    assert await presence.present(15) == ["w1"]
