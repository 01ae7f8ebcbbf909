"""Every log: in memory, in the server that the package brings, and in an installed `redis-server`.

The suite works as the user with the documented rights.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis

from eventlog.adapters.embedded import EmbeddedServer
from eventlog.adapters.memory import MemoryLog
from eventlog.adapters.redis_streams import connect
from eventlog.port import Log
from tests.eventlog.installed import InstalledServer

Server = EmbeddedServer | InstalledServer
SERVERS: dict[str, type[EmbeddedServer | InstalledServer]] = {"embedded": EmbeddedServer}
if shutil.which("redis-server") or os.environ.get("CI") == "true":  # which must have one
    SERVERS["redis-server"] = InstalledServer

_clusters = itertools.count()
DOCS = Path(__file__).parents[2] / "docs" / "redis.md"
_rule = re.search(r"^ACL SETUSER gpubinder (.*)$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
assert _rule is not None
RIGHTS = _rule[1].split()
"""Of the user that the documentation makes for gpubinder."""


def url_as(user: str, server: Server) -> str:
    return server.url.replace("unix://", f"unix://{user}:PASSWORD@")


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture(scope="session")
def servers() -> Iterator[Callable[[str], Server]]:
    """Each one started when it is first asked for."""
    started: dict[str, Server] = {}

    def server_of(name: str) -> Server:
        if name not in started:
            started[name] = SERVERS[name]()
            started[name].start()
            with Redis.from_url(started[name].url) as admin:
                admin.execute_command("ACL", "SETUSER", "gpubinder", "reset", *RIGHTS)
        return started[name]

    yield server_of
    for server in started.values():
        server.stop()


@pytest.fixture(scope="session", params=sorted(SERVERS))
def server(request: pytest.FixtureRequest, servers: Callable[[str], Server]) -> Server:
    return servers(request.param)


@pytest.fixture
def cluster() -> str:
    return f"test-{next(_clusters)}"


@pytest.fixture(params=["memory", *sorted(SERVERS)])
async def log(
    request: pytest.FixtureRequest, servers: Callable[[str], Server], cluster: str
) -> AsyncIterator[Log]:
    if request.param == "memory":
        yield MemoryLog(now_ms)
        return
    redis_log = await connect(url_as("gpubinder", servers(request.param)), cluster, "binder-1", now_ms)
    yield redis_log
    await redis_log.close()
