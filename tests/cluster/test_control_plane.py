"""The harness with real binaries: a taken port costs another try; nothing is left behind."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

from tests.cluster import control_plane as harness
from tests.cluster.control_plane import ADMIN, TENANT, ControlPlane
from tests.cluster.fixtures import control_plane
from tests.cluster.processes import free_ports

__all__ = ["control_plane"]
pytestmark = [pytest.mark.envtest, pytest.mark.allow_hosts(["127.0.0.1"])]


@pytest.mark.parametrize("position", [0, 2], ids=["etcd", "kube-apiserver"])
def test_port_that_was_taken_meanwhile_costs_another_try_and_nothing_stays_behind(
    control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, position: int
) -> None:
    monkeypatch.setattr(harness, "RUNS", tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        tries = []

        def ports(count: int) -> list[int]:
            found = free_ports(count)
            if not tries:
                found[position] = taken.getsockname()[1]
            tries.append(found)
            return found

        monkeypatch.setattr(harness, "free_ports", ports)
        plane = harness.start(control_plane.assets)
        pids = [process.pid for process in plane.processes]
        try:
            assert len(tries) == 2
            assert list(tmp_path.iterdir()) == [plane.folder]
            assert plane.rest().is_ready()
        finally:
            plane.stop()
    assert list(tmp_path.iterdir()) == []
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_logs_of_failed_runs_are_kept_for_some_days(
    control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(harness, "RUNS", tmp_path)
    old, recent = tmp_path / "run-old", tmp_path / "run-recent"
    for folder in (old, recent):
        folder.mkdir()
    long_ago = time.time() - 8 * 24 * 3600
    os.utime(old, (long_ago, long_ago))
    plane = harness.start(control_plane.assets)
    plane.stop(keep_logs=True)
    assert set(tmp_path.iterdir()) == {recent, plane.folder}
    assert (plane.folder / "kube-apiserver.log").stat().st_size > 0


def test_users_have_the_rights_that_rbac_gives_them(control_plane: ControlPlane) -> None:
    assert control_plane.rest(ADMIN).exists("/api/v1/nodes")
    with pytest.raises(OSError, match="403"):
        control_plane.rest(TENANT).exists("/api/v1/nodes")
