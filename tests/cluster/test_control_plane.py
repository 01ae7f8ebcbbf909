"""The harness with real binaries: a taken port costs another try; nothing is left behind."""

from __future__ import annotations

import os
import socket

import pytest

from tests.cluster import control_plane as harness
from tests.cluster.control_plane import ADMIN, TENANT, ControlPlane
from tests.cluster.fixtures import control_plane
from tests.cluster.processes import free_ports

__all__ = ["control_plane"]
pytestmark = [pytest.mark.envtest, pytest.mark.allow_hosts(["127.0.0.1"])]


@pytest.mark.parametrize("position", [0, 2], ids=["etcd", "kube-apiserver"])
def test_port_that_was_taken_meanwhile_costs_another_try_and_nothing_stays_behind(
    control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch, position: int
) -> None:
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
        before = set(harness.RUNS.iterdir())
        plane = harness.start(control_plane.assets)
        pids = [process.pid for process in plane.processes]
        assert len(tries) == 2
        assert set(harness.RUNS.iterdir()) == before | {plane.folder}
        assert plane.rest().is_ready()
        plane.stop()
    assert set(harness.RUNS.iterdir()) == before
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_users_have_the_rights_that_rbac_gives_them(control_plane: ControlPlane) -> None:
    assert control_plane.rest(ADMIN).exists("/api/v1/nodes")
    with pytest.raises(OSError, match="403"):
        control_plane.rest(TENANT).exists("/api/v1/nodes")
