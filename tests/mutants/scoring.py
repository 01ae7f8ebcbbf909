"""The score of each module, and which survivors are justified in writing.

A justification is an item of docs/mutants.md, `- module.function: before => after` with the three in
backquotes, under the sentence that says why no test can, or need, tell the two apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.mutants.running import Mutant

JUSTIFIED = re.compile(r"^- `([\w.]+)`: `([^`]*)` => `([^`]*)`$", re.MULTILINE)
Change = tuple[str, str, str]
"""Module and function, the lines before, the lines after."""


@dataclass(frozen=True)
class Score:
    """Of one module, or of all."""

    module: str
    mutants: int
    killed: int
    justified: int

    @property
    def survived(self) -> int:
        """All that no test notices, justified or not."""
        return self.mutants - self.killed

    @property
    def percent(self) -> float:
        """Killed of all; a justification raises no score."""
        return 100 * self.killed / self.mutants if self.mutants else 100.0


def change_of(mutant: Mutant) -> Change:
    """What a justification names it by: mutmut's numbers shift with every edit."""
    return f"{mutant.module}.{mutant.function}", mutant.before, mutant.after


def justified_in(text: str) -> set[Change]:
    """The changes that a document justifies."""
    return {(where, before, after) for where, before, after in JUSTIFIED.findall(text)}


def scores(mutants: Iterable[Mutant], justified: set[Change]) -> list[Score]:
    """By module, then of all."""
    by_module: dict[str, list[Mutant]] = {}
    for one in mutants:
        by_module.setdefault(one.module, []).append(one)
    each = [_score(module, found, justified) for module, found in sorted(by_module.items())]
    return [*each, _score("all", [one for found in by_module.values() for one in found], justified)]


def stale(mutants: Sequence[Mutant], justified: set[Change]) -> list[Change]:
    """Justifications in the modules that were run which no survivor needs."""
    modules = {one.module for one in mutants}
    needed = {change_of(one) for one in mutants if not one.is_killed}
    return sorted(one for one in justified - needed if one[0].partition(".")[0] in modules)


def table(rows: Iterable[Score]) -> str:
    """For people, and for docs/mutants.md."""
    head = ["| module | mutants | killed | survived | justified | score |", "| --- " + "| --: " * 5 + "|"]
    cells = [
        (row.module, row.mutants, row.killed, row.survived, row.justified, f"{row.percent:.1f} %")
        for row in rows
    ]
    return "\n".join([*head, *("| " + " | ".join(map(str, row)) + " |" for row in cells)])


def _score(module: str, mutants: Sequence[Mutant], justified: set[Change]) -> Score:
    alive = [one for one in mutants if not one.is_killed]
    known = sum(change_of(one) in justified for one in alive)
    return Score(module, len(mutants), len(mutants) - len(alive), known)
