"""Runs written down: a cluster, and pods with the nodes that kube-scheduler would take, as one JSON file.

`python -m tests.differential [SEED [CASES]]` judges random pods, tells the disagreements, and writes to
`found/SEED.json` those that disagree, those that some planted mistake would get wrong, and some others.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import orjson

from tests.differential.comparing import disagreements
from tests.differential.plantings import PLANTINGS, planted
from tests.differential.running import Case, Run
from tests.differential.verdicts import judge_of

FOUND = Path(__file__).parent / "found"
A_PLANTING, OTHERS = 3, 60
"""How many cases are kept for each planted mistake, and of the rest."""


def write(seed: str, run: Run, cases: list[Case]) -> Path:
    """Keep the cases."""
    path = FOUND / f"{seed}.json"
    parts = [
        b'{"seed":' + orjson.dumps(seed) + b',"objects":[\n',
        b",\n".join(orjson.dumps(one) for one in run.objects),
        b'\n],"cases":[\n',
        b",\n".join(orjson.dumps({"nodes": " ".join(sorted(c.nodes)), "pod": c.pod}) for c in cases),
        b"\n]}\n",
    ]
    path.write_bytes(b"".join(parts))
    return path


def read(path: Path) -> Run:
    """The run that was kept."""
    raw = orjson.loads(path.read_bytes())
    cases = (Case(one["pod"], frozenset(one["nodes"].split())) for one in raw["cases"])
    return Run(tuple(raw["objects"]), tuple(cases), ())


def worth_keeping(seed: str, run: Run) -> list[Case]:
    """In the run's order."""
    kept = set(_telling(run))
    rest = [n for n, case in enumerate(run.cases) if n not in kept and case.nodes]
    kept |= set(Random(seed).sample(rest, min(OTHERS, len(rest))))
    return [run.cases[number] for number in sorted(kept)]


def _telling(run: Run) -> Iterator[int]:
    """Cases that disagree, and for each planting the smallest that it gets wrong."""
    yield from _wrong(run)
    for name in PLANTINGS:
        with planted(name):
            wrong = list(_wrong(run))
        wrong.sort(key=lambda number: len(orjson.dumps(run.cases[number].pod)))
        yield from wrong[:A_PLANTING]


def _wrong(run: Run) -> Iterator[int]:
    judge = judge_of(run.objects)
    return (number for number, case in enumerate(run.cases) if disagreements(judge, [case]))
