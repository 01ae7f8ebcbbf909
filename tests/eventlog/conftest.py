"""Both logs: in memory, and in a real Redis-compatible server that the package brings."""

from __future__ import annotations

import itertools
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from eventlog.adapters.embedded import EmbeddedServer
from eventlog.adapters.memory import MemoryLog
from eventlog.adapters.redis_streams import connect
from eventlog.port import Log

_clusters = itertools.count()


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture(scope="session")
def server() -> Iterator[EmbeddedServer]:
    embedded = EmbeddedServer()
    embedded.start()
    yield embedded
    embedded.stop()


@pytest.fixture
def cluster() -> str:
    return f"test-{next(_clusters)}"


@pytest.fixture(params=["memory", "redis"])
async def log(request: pytest.FixtureRequest, cluster: str) -> AsyncIterator[Log]:
    if request.param == "memory":
        yield MemoryLog(now_ms)
        return
    embedded = request.getfixturevalue("server")
    redis_log = await connect(embedded.url, cluster, "binder-1", now_ms)
    yield redis_log
    await redis_log.close()
