"""A control plane and a Redis of one test's own, which may be killed and emptied."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from eventlog.adapters.embedded import EmbeddedServer
from tests.cluster.assets import AssetsMissing, find
from tests.cluster.control_plane import ControlPlane
from tests.cluster.control_plane import start as start_plane
from tests.cluster.processes import wait_for


@pytest.fixture
def own_plane() -> Iterator[ControlPlane]:
    """A control plane that may be mistreated."""
    try:
        plane = start_plane(find())
    except AssetsMissing as missing:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(str(missing))
    yield plane
    plane.stop()


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[EmbeddedServer]:
    """A Redis that may be."""
    server = EmbeddedServer(tmp_path / "redis")
    server.start()
    yield server
    server.stop()


def restart(plane: ControlPlane, name: str) -> None:
    """SIGKILL one of the servers and start it again as it was; returns when the API server answers."""
    process = plane.process(name)
    flags = Path(f"/proc/{process.pid}/cmdline").read_bytes().rstrip(b"\0").decode().split("\0")[1:]
    process.signal(signal.SIGKILL)
    process.stop()
    plane.processes.remove(process)
    plane.spawn(name, *flags)
    wait_for(name, plane.rest().is_ready, [plane.processes[-1]])


def empty_redis(url: str) -> None:
    """All that it keeps goes, as with an operator's FLUSHALL."""
    with Redis.from_url(url) as redis:
        redis.flushall()


def kill_redis(server: EmbeddedServer, folder: Path, *, is_emptied: bool) -> None:
    """SIGKILL it and start it again, with what it kept or with nothing."""
    os.kill(server.pid, signal.SIGKILL)
    server.stop()
    if is_emptied:
        shutil.rmtree(folder / "appendonlydir", ignore_errors=True)
    server.start()
