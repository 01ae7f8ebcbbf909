"""One measured figure, and how it is shown."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """A rate of ours beside the rate it is compared with; `wanted` is the least ratio, or None."""

    name: str
    ours: float
    unit: str
    against: str = ""
    theirs: float = 0.0
    wanted: float | None = None

    @property
    def ratio(self) -> float | None:
        """Ours to theirs."""
        return self.ours / self.theirs if self.theirs else None


def best_of(times: int, work: Callable[[], object]) -> float:
    """Seconds of the quickest of some runs: the least disturbed one."""
    best = float("inf")
    for _ in range(times):
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return best
