"""How `gpubinder up` ends: with SIGTERM at once and with nothing left, with SIGKILL without harm."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from redis.asyncio import Redis

from eventlog.keys import Keys
from simulator.cluster import api_server
from simulator.http_face import serving, write_kubeconfig
from tests.cli.process import start

pytestmark = pytest.mark.enable_socket
LIMIT_S = 15.0
END_S = 3.0
"""From SIGTERM to the end, whatever hangs."""


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
        try:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                assert process.wait(END_S) == 0, log.read_text()
        finally:
            process.kill()
            process.wait()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return b"Z" not in Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2][:3]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def server_pid(folder: Path) -> int:
    return int((folder / "valkey.pid").read_text())


def is_up(log: Path) -> bool:
    return "pass_unblocked" in log.read_text()


def has_begun(log: Path) -> bool:
    return " up api_server=" in log.read_text()


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


async def test_sigkill_and_a_new_start_on_the_same_cluster_go_on_with_the_same_log(tmp_path: Path) -> None:
    data, config = tmp_path / "data", tmp_path / "kubeconfig"
    async with serving(await api_server(lambda: 0)) as url:
        write_kubeconfig(config, url)
        arguments = ("up", "--kubeconfig", str(config), "--data", str(data))
        log = tmp_path / "log"
        with running(log, *arguments) as process:
            await asyncio.to_thread(until, lambda: is_up(log), "up")
            before = await identity_and_first(data)
            process.kill()
            process.wait()
        again = tmp_path / "again"
        with running(again, *arguments):
            await asyncio.to_thread(until, lambda: has_begun(again), "up again")
            assert await identity_and_first(data) == before


async def identity_and_first(data: Path) -> tuple[object, object]:
    redis = Redis(unix_socket_path=str(data / "redis.sock"))
    try:
        (first,) = await redis.xrange(Keys("default").events, count=1)
        return await redis.get(Keys("default").identity), first
    finally:
        await redis.aclose()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("silent", ["--kubeconfig", "--redis"])
def test_signal_ends_a_start_that_waits_for_a_silent_server(
    tmp_path: Path, silent: str, number: signal.Signals
) -> None:
    log = tmp_path / "log"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        write_kubeconfig(tmp_path / "kubeconfig", f"http://127.0.0.1:{port}")
        given = {"--kubeconfig": str(tmp_path / "kubeconfig"), "--redis": f"redis://127.0.0.1:{port}"}
        process = start(log, "up", silent, given[silent])
        server.settimeout(LIMIT_S)
        with server.accept()[0]:
            process.send_signal(number)
            assert process.wait(END_S) == 0
    assert log.read_text().splitlines()[-1].endswith("down")
    assert "Traceback" not in log.read_text()


def test_sigterm_ends_it_while_the_api_server_hangs(tmp_path: Path) -> None:
    """Nothing that is said on the way out waits for an answer for long."""
    there, log, config = tmp_path / "cluster", tmp_path / "log", tmp_path / "kubeconfig"
    with running(there, "up") as cluster:
        until(lambda: is_up(there), "the cluster")
        write_kubeconfig(config, there.read_text().partition("api_server=")[2].split()[0])
        try:
            with running(log, "up", "--kubeconfig", str(config), "--lease-namespace", "default"):
                until(lambda: is_up(log), "up")
                cluster.send_signal(signal.SIGSTOP)
        finally:
            cluster.send_signal(signal.SIGCONT)


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
    log, port = tmp_path / "log", free_port()

    with running(log, "up", "--metrics-port", str(port)):
        until(lambda: is_up(log), "up")
        assert (ask(port, "/healthz"), ask(port, "/readyz")) == ("ok\n", "ok\n")
        metrics = ask(port, "/metrics")
    assert "gpubinder_leader 1.0" in metrics
    assert 'gpubinder_watch_events_total{kind="Node",result="appended",type="ADDED"} 3.0' in metrics
    assert "gpubinder_pass_duration_seconds_count" in metrics
    assert 'gpubinder_watch_age_seconds{kind="Pod"}' in metrics
    assert "gpubinder_stream_lag_seconds 0.0" in metrics


def ask(port: int, path: str) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
        return str(answer.read().decode())


def test_second_process_is_ready_while_it_stands_by(tmp_path: Path) -> None:
    """Otherwise a Deployment of two is never available, and its roll-out never ends."""
    first, second, config, port = tmp_path / "first", tmp_path / "second", tmp_path / "config", free_port()

    def is_ready() -> bool:
        with suppress(OSError):
            return ask(port, "/readyz") == "ok\n"
        return False

    with running(first, "up", "--metrics-port", str(free_port())):
        until(lambda: is_up(first), "up")
        write_kubeconfig(config, first.read_text().partition("api_server=")[2].split()[0])
        with running(second, "up", "--kubeconfig", str(config), "--metrics-port", str(port)):
            until(is_ready, "ready")
            assert "gpubinder_leader 0.0" in ask(port, "/metrics")


def test_process_that_is_switched_off_says_so(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with running(log, "up", "--off"):
        until(lambda: is_up(log), "up")
    assert log.read_text().count("switched_off") == 1
