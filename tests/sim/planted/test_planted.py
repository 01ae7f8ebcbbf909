"""The simulation can fail: it finds each planted bug within 200 seeds, and says by which rule."""

from __future__ import annotations

from itertools import chain

import pytest

from tests.sim.planted.bugs import BUGS, Bug
from tests.sim.running import live

LIMIT = 200


@pytest.mark.sim
@pytest.mark.timeout(900)
@pytest.mark.parametrize("bug", BUGS, ids=[bug.name for bug in BUGS])
def test_planted_bug_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    """The seeds that found it last are tried first: after a change it may be others."""
    bug.plant(monkeypatch)
    seeds = chain(bug.seeds, (seed for seed in range(1, LIMIT + 1) if seed not in bug.seeds))
    broken = next((report.broken for report in map(live, seeds) if report.broken in bug.checks), "")
    assert broken, f"none of {LIMIT} lives has found it"
