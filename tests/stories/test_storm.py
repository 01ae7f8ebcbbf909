"""A short storm: three binders, churn, and everything killed (R1, R3, and the invariants of the proof)."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventlog.adapters.embedded import EmbeddedServer
from tests.cluster.control_plane import ControlPlane
from tests.stories.mistreated import own_plane, own_redis
from tests.stories.storm import Size, Storm, report

__all__ = ["own_plane", "own_redis"]
pytestmark = [pytest.mark.envtest, pytest.mark.allow_hosts(["127.0.0.1"]), pytest.mark.timeout(300)]
SHORT = Size(seconds=40, vms=60, nodes=6)


async def test_nothing_is_booked_twice_and_nothing_stays_stuck(
    own_plane: ControlPlane, own_redis: EmbeddedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R1, R3; judged by the API server's own objects."""
    tally = await Storm(own_plane, own_redis, tmp_path, SHORT).run()
    with capsys.disabled():
        print(f"\n{report(tally, SHORT)}")
    assert tally.twice == []
    assert tally.stuck == []
    assert tally.most_booked > SHORT.nodes
    assert tally.checks > SHORT.seconds / 4
