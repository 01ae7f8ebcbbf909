"""A control plane whose accounts, roles and policies are gpubinder's own, as it prints them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.cluster.assets import AssetsMissing, find
from tests.cluster.control_plane import ControlPlane, start
from tests.rights.applying import set_up


@pytest.fixture(scope="session")
def own_plane() -> Iterator[ControlPlane]:
    """Its policies stop everybody else: not for other tests."""
    try:
        plane = start(find())
    except AssetsMissing as missing:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(str(missing))
    try:
        set_up(plane)
        yield plane
    finally:
        plane.stop()
