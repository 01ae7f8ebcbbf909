"""What the stories are given: a real control plane with KubeVirt, its kubelets and virt-handlers played."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from simulator.actors.kubelet import Kubelet
from simulator.actors.virt_handler import VirtHandler
from simulator.cluster import playing
from tests.cluster import assets as plane_assets
from tests.cluster.assets import AssetsMissing
from tests.cluster.control_plane import ControlPlane
from tests.kubevirt import assets
from tests.kubevirt.judge import judging
from tests.kubevirt.plane import start
from tests.stories.conftest import Stage, now_ms, redis
from tests.stories.conftest import stage as story

__all__ = ["redis", "story"]
pytest.register_assert_rewrite("tests.kubevirt.lives")

LIMIT_S = 120.0
"""A failed start alone costs a VM 10 to 15 s, a second one 40 to 60."""
_RUNNING = pytest.StashKey[ControlPlane]()


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest) -> ControlPlane:
    """One for all stories; its logs stay in `tests/cluster/runs/` when one failed."""
    stash = request.config.stash
    if _RUNNING not in stash:
        try:
            built, servers = assets.find(assets.source()), plane_assets.find()
        except AssetsMissing as missing:
            pytest.skip(str(missing))
        stash[_RUNNING] = plane = start(servers, built)
        session = request.session

        def stop() -> None:
            plane.stop(keep_logs=session.testsfailed > 0)
            if session.testsfailed:
                print(f"\nlogs of the control plane: {plane.folder}")

        request.config.add_cleanup(stop)
    return stash[_RUNNING]


@pytest.fixture
async def stage(story: Stage, control_plane: ControlPlane) -> AsyncIterator[Stage]:
    """A corner of the cluster, judged all the while; KubeVirt takes longer than its stand-in."""
    patient = replace(story, limit_s=LIMIT_S, check=control_plane.check)
    async with playing(patient.client, now_ms, (Kubelet(), VirtHandler())), judging(patient):
        yield patient
