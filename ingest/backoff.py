"""How long to wait before the next try: doubling with jitter up to a limit, reset by success."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

FIRST_S = 0.2
LIMIT_S = 30.0
"""A server that has been away for long is asked twice a minute at least."""


@dataclass(slots=True)
class Backoff:
    """One caller's waiting times. The generator is given, so that a seed repeats a run."""

    rng: random.Random = field(default_factory=random.Random)
    failures: int = 0

    def next_s(self, at_least_s: float = 0.0, limit_s: float = LIMIT_S) -> float:
        """Seconds to wait after one more failure, between half and all of the doubled time."""
        ceiling = min(limit_s, FIRST_S * 2.0 ** min(self.failures, 16))
        self.failures += 1
        return max(at_least_s, ceiling * self.rng.uniform(0.5, 1.0))

    def reset(self) -> None:
        """It worked: start from the beginning next time."""
        self.failures = 0
