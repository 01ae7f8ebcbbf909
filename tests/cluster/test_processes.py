"""The harness's promises: a server that ends is noticed, with its last words, and nothing is left behind."""

from __future__ import annotations

import fcntl
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from tests.cluster.assets import AssetsMissing, cache_folder, find
from tests.cluster.processes import NotReady, Process, ProcessDied, wait_for

ROOT = Path(__file__).parents[2]


def script(tmp_path: Path, code: str) -> Process:
    return Process([sys.executable, "-c", code], tmp_path / "log", tmp_path)


def test_process_that_ends_is_reported_with_its_last_words(tmp_path: Path) -> None:
    process = script(tmp_path, "print('bind: address already in use'); raise SystemExit(3)")
    with pytest.raises(ProcessDied, match=r"exit code 3(.|\n)*address already in use"):
        wait_for("it", lambda: False, [process])


def test_waiting_is_bounded(tmp_path: Path) -> None:
    process = script(tmp_path, "import time; time.sleep(60)")
    try:
        with pytest.raises(NotReady, match="it did not become ready"):
            wait_for("it", lambda: False, [process], limit_s=0.1)
    finally:
        process.stop()


def test_stopping_takes_the_whole_group_along(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    take = f"import fcntl, time; f = open({str(lock)!r}, 'w'); fcntl.flock(f, fcntl.LOCK_EX)"
    child = f"{take}; print('child is up', flush=True); time.sleep(60)"
    process = script(tmp_path, f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])")
    wait_for("the child", lambda: b"child is up" in (tmp_path / "log").read_bytes(), [process])
    process.stop()
    with lock.open("w") as file:
        wait_for("the child's end", lambda: is_free(file), [], limit_s=5)


def test_killed_run_leaves_no_server_behind(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    take = f"import fcntl, time; f = open({str(lock)!r}, 'w'); fcntl.flock(f, fcntl.LOCK_EX)"
    server = f"{take}; print('server is up', flush=True); time.sleep(60)"
    run = (
        "import sys, time; from pathlib import Path; from tests.cluster.processes import Process;"
        "from tests.cluster.watchdog import Watchdog; dog = Watchdog(); here = Path(sys.argv[1]);"
        f"dog.add(Process([sys.executable, '-c', {server!r}], here / 'server.log', here).pid); time.sleep(60)"
    )
    killed = subprocess.Popen([sys.executable, "-c", run, str(tmp_path)], cwd=ROOT)
    log = tmp_path / "server.log"
    wait_for("the server", lambda: log.exists() and b"server is up" in log.read_bytes(), [])
    killed.kill()
    killed.wait()
    with lock.open("w") as file:
        wait_for("the server's end", lambda: is_free(file), [], limit_s=5)


def is_free(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def test_stopping_works_on_a_process_that_is_stopped(tmp_path: Path) -> None:
    process = script(tmp_path, "import time; time.sleep(60)")
    process.signal(signal.SIGSTOP)
    process.stop()
    with pytest.raises(ProcessDied):
        process.check()


def test_missing_binaries_name_the_next_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder().is_relative_to(tmp_path)
    with pytest.raises(AssetsMissing, match=r"^run `make envtest-assets`$"):
        find()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    (tmp_path / "etcd").touch(mode=0o755)
    with pytest.raises(AssetsMissing, match=r"lacks kube-apiserver, kube-controller-manager, kube-scheduler"):
        find()
