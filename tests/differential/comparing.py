"""Where our predicates and the scheduler's verdicts differ, in words."""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from tests.differential.running import Case
from tests.differential.verdicts import Judge


def disagreements(judge: Judge, cases: Iterable[Case]) -> list[str]:
    """One line a pod that some node takes for the one and refuses for the other.

    A cordoned node is refused by a rule of ours (R8a), also where a pod tolerates it.
    """
    return [text for case in cases if (text := _difference(judge, case))]


def _difference(judge: Judge, case: Case) -> str:
    ours, theirs = judge.accepted(case.pod), case.nodes - judge.cordoned
    if ours == theirs:
        return ""
    more, less = sorted(ours - theirs), sorted(theirs - ours)
    name, spec = case.pod["metadata"]["name"], orjson.dumps(case.pod["spec"]).decode()
    return f"{name}: only we accept {more}, only the scheduler accepts {less}: {spec}"
