"""The control plane's binaries for a test: without them it is skipped on a laptop and fails in CI."""

from __future__ import annotations

import os

import pytest

from tests.cluster.assets import Assets, AssetsMissing, find


def find_assets() -> Assets:
    """The binaries to use."""
    try:
        return find()
    except AssetsMissing as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing), pytrace=False)
        pytest.skip(str(missing))
