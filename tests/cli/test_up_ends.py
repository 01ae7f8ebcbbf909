"""How `gpubinder up` ends: with SIGTERM at once and with nothing left, with SIGKILL without harm."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.process import start

pytestmark = pytest.mark.enable_socket
LIMIT_S = 15.0


def until(holds: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


@contextmanager
def running(log: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Started, and ended with SIGTERM, which it must obey."""
    process = start(log, *arguments)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            assert process.wait(LIMIT_S) == 0, log.read_text()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return b"Z" not in Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2][:3]


def server_pid(folder: Path) -> int:
    return int((folder / "valkey.pid").read_text())


def is_up(log: Path) -> bool:
    return "pass_unblocked" in log.read_text()


def test_sigterm_ends_it_at_once_and_leaves_no_server(tmp_path: Path) -> None:
    log, data = tmp_path / "log", tmp_path / "data"
    with running(log, "up", "--data", str(data)):
        until(lambda: is_up(log), "up")
        pid = server_pid(data)
    until(lambda: not is_alive(pid), "the embedded server is gone")
    assert "Traceback" not in log.read_text()


def test_sigkill_and_a_new_start_keep_the_data_and_one_server(tmp_path: Path) -> None:
    log, data = tmp_path / "log", tmp_path / "data"
    with running(log, "up", "--data", str(data)) as process:
        until(lambda: is_up(log), "up")
        left_behind = server_pid(data)
        process.kill()
        process.wait()
    assert is_alive(left_behind)
    again = tmp_path / "again"
    with running(again, "up", "--data", str(data)):
        until(lambda: is_up(again), "up again")
        assert not is_alive(left_behind)
        assert (data / "appendonlydir").is_dir()


def test_embedded_server_that_was_killed_ends_it_with_one_line(tmp_path: Path) -> None:
    log, data = tmp_path / "log", tmp_path / "data"
    process = start(log, "up", "--data", str(data))
    until(lambda: is_up(log), "up")
    os.kill(server_pid(data), signal.SIGKILL)
    assert process.wait(LIMIT_S) == 1
    assert log.read_text().splitlines()[-1].startswith("gpubinder: the embedded Redis has ended")
    assert "Traceback" not in log.read_text()
