"""The `control_plane` fixture: one real control plane per test run, however many test folders import it.

Missing binaries skip a test on a laptop and fail it where CI=true, so that CI never passes by skipping.
"""

from __future__ import annotations

import os

import pytest

from tests.cluster.assets import AssetsMissing, find
from tests.cluster.control_plane import ControlPlane, start

_RUNNING = pytest.StashKey[ControlPlane]()


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest) -> ControlPlane:
    """A running control plane; its logs stay in `tests/cluster/runs/` when a test failed."""
    stash = request.config.stash
    # Two conftest files that import this fixture make two of it: the run's stash keeps it one control plane.
    if _RUNNING not in stash:
        stash[_RUNNING] = plane = _start()
        session = request.session

        def stop() -> None:
            plane.stop(keep_logs=session.testsfailed > 0)
            if session.testsfailed:
                print(f"\nlogs of the control plane: {plane.folder}")

        request.config.add_cleanup(stop)
    return stash[_RUNNING]


def _start() -> ControlPlane:
    try:
        assets = find()
    except AssetsMissing as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing), pytrace=False)
        pytest.skip(str(missing))
    return start(assets)
