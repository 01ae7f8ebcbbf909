"""A few lives in the fast tier; `make sim` has many."""

from __future__ import annotations

import os
import subprocess
import sys

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


@pytest.mark.sim
@pytest.mark.timeout(300)
def test_same_seed_gives_the_same_life_in_every_process() -> None:
    """R4: no order of a set, which changes from process to process, decides anything."""
    told = []
    for hash_seed in ("1", "2"):
        command = [sys.executable, "-m", "tests.sim", "--seeds", "12", "--jobs", "1", "--json", "--quick"]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        told.append(done.stdout.splitlines()[:-1])  # the last line says how long it took
    assert told[0] == told[1]
    assert len(told[0]) > 20
