"""By hand: `python -m tests.differential [SEED [CASES]]` judges random pods and keeps the telling ones."""

from __future__ import annotations

import secrets
import sys

from tests.cluster.assets import find
from tests.differential.comparing import disagreements
from tests.differential.recorded import worth_keeping, write
from tests.differential.running import run
from tests.differential.verdicts import judge_of


def main(seed: str, count: int) -> int:
    """1 where the scheduler and we disagree."""
    found = run(find(), seed, count)
    wrong = disagreements(judge_of(found.objects), found.cases)
    print(*wrong, sep="\n")
    kept = worth_keeping(seed, found)
    path = write(seed, found, kept)
    print(f"seed {seed}: {len(found.cases)} cases, {len(wrong)} disagree, {len(kept)} kept in {path}")
    return 1 if wrong else 0


if __name__ == "__main__":
    seed, count = (*sys.argv[1:], *("", "2100")[len(sys.argv) - 1 :])[:2]
    sys.exit(main(seed or secrets.token_hex(4), int(count)))
