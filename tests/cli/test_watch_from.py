"""`gpubinder watch --from`: files, pipes and terminals, and what is said of them."""

from __future__ import annotations

import gzip
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from eventlog.adapters.embedded import EmbeddedServer
from eventlog.keys import Keys
from gpubinder.stores import FED
from tests.cli.process import LIMIT_S, gpubinder

pytestmark = pytest.mark.enable_socket
END_S = 5.0


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = EmbeddedServer()
    server.start()
    yield server.url
    server.stop()


@pytest.fixture
def redis(url: str) -> Iterator[Redis]:
    client = Redis.from_url(url)
    client.flushall()
    yield client
    client.close()


def event(name: str) -> dict[str, Any]:
    meta = {"name": name, "uid": name, "resourceVersion": "5"}
    return {"type": "ADDED", "object": {"kind": "Node", "apiVersion": "v1", "metadata": meta}}


def entries(redis: Redis) -> int:
    return int(redis.xlen(Keys("default").events))


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def fed(url: str, path: Path) -> subprocess.CompletedProcess[str]:
    return gpubinder("watch", "--redis", url, "--from", str(path))


def start_piped(url: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "gpubinder.cli", "watch", "--redis", url, "--from", "-"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)


def test_printed_events_and_lines_are_fed_from_a_file(url: str, redis: Redis, tmp_path: Path) -> None:
    path = tmp_path / "events.json"
    path.write_text(json.dumps(event("a"), indent=4) + "\n" + json.dumps(event("b")) + "\n")
    done = fed(url, path)
    assert done.returncode == 0
    assert "appended=2 known=0 passed_over=0 unreadable=0" in done.stderr
    assert entries(redis) == 2


def test_part_that_cannot_be_read_costs_itself_and_is_a_failure(
    url: str, redis: Redis, tmp_path: Path
) -> None:
    path = tmp_path / "events.json"
    path.write_text(json.dumps(event("a")) + '\n{"type": "ADD')
    done = fed(url, path)
    assert done.returncode == 1
    assert 'unreadable file=events.json cause="line 2: no JSON:' in done.stderr
    assert done.stderr.splitlines()[-1].startswith(
        "gpubinder: 1 of 2 values in events.json could not be read"
    )
    assert entries(redis) == 1


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"\x00\xff\n" * 50, "nothing in events.json is a watch event; give JSON events as"),
        (
            gzip.compress(b"{}", mtime=0),
            "events.json cannot be read: it is compressed (gzip); unpack it: gzip -dc FILE |",
        ),
    ],
)
def test_file_of_something_else_is_refused_in_one_line(
    url: str, redis: Redis, tmp_path: Path, content: bytes, line: str
) -> None:
    path = tmp_path / "events.json"
    path.write_bytes(content)
    done = fed(url, path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"gpubinder: {line}")
    assert entries(redis) == 0


def test_pipe_is_told_at_once_and_ends_with_its_writer(url: str, redis: Redis) -> None:
    process = start_piped(url)
    assert process.stdin is not None
    process.stdin.write(json.dumps(event("a"), indent=4).encode() + b"\n")
    process.stdin.flush()
    until(lambda: entries(redis) == 1)
    _, told = process.communicate(json.dumps(event("b")).encode(), timeout=LIMIT_S)
    assert process.returncode == 0
    assert b"file=stdin end=complete appended=2" in told
    assert entries(redis) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_a_silent_pipe_at_once(url: str, redis: Redis, number: signal.Signals) -> None:
    """Ctrl-C is how `kubectl get -w | gpubinder watch --from -` ends."""
    process = start_piped(url)
    assert process.stdin is not None
    process.stdin.write(json.dumps(event("a")).encode() + b"\n")
    process.stdin.flush()
    until(lambda: entries(redis) == 1)
    process.send_signal(number)
    assert process.wait(END_S) == 0
    assert process.stderr is not None
    told = process.stderr.read()
    assert b"end=stopped appended=1" in told
    assert b"Traceback" not in told
    process.stdin.close()
    process.stderr.close()


def test_signal_ends_a_pipe_that_nobody_has_opened(url: str, redis: Redis, tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    command = [sys.executable, "-m", "gpubinder.cli", "watch", "--redis", url, "--from", str(path)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    until(lambda: redis.exists(Keys("default").identity))
    process.send_signal(signal.SIGTERM)
    assert process.wait(END_S) == 0


def test_log_of_a_running_cluster_is_not_fed(url: str, redis: Redis, tmp_path: Path) -> None:
    """Its VMs would be placed on nodes that only the file knows."""
    redis.set(Keys("default").cluster_uid, "uid-of-a-cluster")
    path = tmp_path / "events.json"
    path.write_text(json.dumps(event("a")))
    done = fed(url, path)
    assert done.returncode == 1
    assert "uid-of-a-cluster" in done.stderr
    assert "--cluster name of its own" in done.stderr
    assert entries(redis) == 0


def test_fed_log_is_marked_as_such(url: str, redis: Redis, tmp_path: Path) -> None:
    path = tmp_path / "events.json"
    path.write_text(json.dumps(event("a")))
    assert fed(url, path).returncode == 0
    assert redis.get(Keys("default").cluster_uid) == FED.encode()
    assert "known=1" in fed(url, path).stderr


def test_terminal_sees_progress_and_a_file_sees_none(url: str, redis: Redis, tmp_path: Path) -> None:
    path = tmp_path / "events.json"
    path.write_text("".join(json.dumps(event(f"node-{number}")) + "\n" for number in range(2000)))
    assert "%" not in fed(url, path).stderr
    redis.flushall()
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "gpubinder.cli", "watch", "--redis", url, "--from", str(path)]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        seen = b""
        try:
            while chunk := os.read(ours, 4096):
                seen += chunk
        except OSError:  # the terminal's other end is closed
            pass
    os.close(ours)
    assert process.returncode == 0
    total = f"{path.stat().st_size / 1000:.1f}".encode()
    assert total + b"/" + total + b" kB" in seen
    assert b"appended=2000" in seen
    assert entries(redis) == 2000
