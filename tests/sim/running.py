"""Many lives over the cores, each in a process that has nothing else to do."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from tests.sim.drawing import draw_script
from tests.sim.lives import Report, run_life

LIVES_PER_WORKER = 50
"""After which a worker is a new one: no life knows of many before it."""

What = TypeVar("What")


def live(seed: int) -> Report:
    """The life of a seed."""
    return run_life(draw_script(seed))


def reports(play: Callable[[What], Report], of: Iterable[What], jobs: int) -> Iterator[tuple[What, Report]]:
    """Each with what it is a report of, as they end."""
    if jobs == 1:
        yield from ((one, play(one)) for one in of)
        return
    with multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=LIVES_PER_WORKER) as pool:
        yield from pool.imap_unordered(_Playing(play), of)


class _Playing:
    """What a worker does; a method of a module's class can be sent to it."""

    def __init__(self, play: Callable[[What], Report]) -> None:
        self.play = play

    def __call__(self, of: What) -> tuple[What, Report]:
        return of, self.play(of)
