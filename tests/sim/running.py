"""Many lives over the cores, each in a process of its own that has nothing else to do."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator

from tests.sim.drawing import draw_script
from tests.sim.lives import Report, run_life

LIVES_PER_WORKER = 50
"""After which a worker is a new one: no life knows of many before it."""


def live(seed: int) -> Report:
    """The life of a seed."""
    return run_life(draw_script(seed))


def reports(seeds: Iterable[int], jobs: int) -> Iterator[Report]:
    """As they end."""
    if jobs == 1:
        yield from map(live, seeds)
        return
    with multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=LIVES_PER_WORKER) as pool:
        yield from pool.imap_unordered(live, seeds)
