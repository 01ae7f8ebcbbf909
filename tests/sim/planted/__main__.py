"""`python -m tests.sim.planted`: which seeds find which planted bug, one line each."""

from __future__ import annotations

import sys
from collections import Counter

import pytest

from tests.sim.planted.bugs import BUGS
from tests.sim.running import live

LIMIT = 200
WANTED = 2


def main() -> int:
    """Seeds from the first on, until some have found the bug."""
    missed = 0
    for bug in BUGS:
        found: list[tuple[int, str]] = []
        others: Counter[str] = Counter()
        with pytest.MonkeyPatch.context() as patch:
            bug.plant(patch)
            for seed in range(1, LIMIT + 1):
                broken = live(seed).broken
                if broken in bug.checks:
                    found.append((seed, broken))
                elif broken:
                    others[broken] += 1
                if len(found) == WANTED:
                    break
        missed += not found
        print(f"{bug.name:40} {found} others {dict(others)}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
