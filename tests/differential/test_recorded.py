"""Verdicts of a real kube-scheduler, kept: our predicates give the same, and no planted mistake would."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.differential.comparing import disagreements
from tests.differential.passing import wrong_pins
from tests.differential.plantings import PLANTINGS, planted
from tests.differential.recorded import FOUND, read
from tests.differential.verdicts import judge_of

FILES = sorted(FOUND.glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_recorded_verdicts_of_the_scheduler_are_ours(path: Path) -> None:
    """R8, R26, R29."""
    run = read(path)
    assert len(run.cases) > 50
    assert disagreements(judge_of(run.objects), run.cases) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_pass_pins_launchers_only_where_the_recorded_scheduler_took_them(path: Path) -> None:
    """R8, R10."""
    run = read(path)
    count, wrong = wrong_pins(run.objects, run.cases)
    assert count > 10
    assert wrong == []


@pytest.mark.parametrize("name", PLANTINGS)
def test_planted_mistake_is_found(name: str) -> None:
    """Each in some recorded run: a predicate that is deliberately broken disagrees with the scheduler."""
    with planted(name):
        assert any(disagreements(judge_of(run.objects), run.cases) for run in map(read, FILES))
