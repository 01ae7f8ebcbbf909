"""How `gpubinder up` ends: with SIGTERM at once and with nothing left, with SIGKILL without harm."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import urllib.request
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


def test_metrics_and_health_are_served_while_it_runs(tmp_path: Path) -> None:
    """40-interfaces: every process serves /metrics, /healthz and /readyz."""
    log = tmp_path / "log"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def ask(path: str) -> str:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return str(answer.read().decode())

    with running(log, "up", "--metrics-port", str(port)):
        until(lambda: is_up(log), "up")
        assert (ask("/healthz"), ask("/readyz")) == ("ok\n", "ok\n")
        metrics = ask("/metrics")
    assert "gpubinder_leader 1.0" in metrics
    assert 'gpubinder_watch_events_total{kind="Node",result="appended",type="ADDED"} 3.0' in metrics
    assert "gpubinder_pass_duration_seconds_count" in metrics
