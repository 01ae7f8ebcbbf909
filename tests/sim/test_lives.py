"""A few lives in the fast tier; `make sim` has many."""

from __future__ import annotations

import pytest

from tests.sim.drawing import draw_script
from tests.sim.lives import run_life
from tests.sim.script import as_json, of_json


@pytest.mark.parametrize("seed", [1, 3, 5])
def test_nothing_that_must_always_hold_is_broken(seed: int) -> None:
    report = run_life(draw_script(seed))
    assert report.failures == []
    assert report.counts["passes"] > 5


def test_same_script_gives_the_same_life() -> None:
    """What a seed has found it finds again, also when the script has gone through a file."""
    script = draw_script(5)
    assert of_json(as_json(script)) == script
    assert run_life(script) == run_life(of_json(as_json(script)))
