"""What lives did, as an aligned table: a life that does nothing must be seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields

from model.decisions import Decision
from model.reasons import Reason
from tests.sim.lives import Report

PARTS = ("counts", "acts", "faults", "decided", "reasons")
NEVER_WAITING = (
    Reason.FEATURE_DISABLED, Reason.STALE_LOG, Reason.MASS_OUTAGE, Reason.WAITING_FOR_LAUNCHER,
    Reason.WRITE_REFUSED, Reason.NOT_A_LAUNCHER,
)  # fmt: skip
"""Reasons of passes, launchers and writes: no set waits for them."""
_COLUMNS = 3


@dataclass(slots=True)
class Totals:
    """Sums over lives."""

    counts: Counter[str] = field(default_factory=Counter)
    acts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    decided: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, report: Report) -> None:
        for part in fields(self):
            getattr(self, part.name).update(getattr(report, part.name))

    def as_json(self) -> dict[str, dict[str, int]]:
        return {part.name: dict(getattr(self, part.name)) for part in fields(self)}

    def uncovered(self) -> list[str]:
        """Decisions and reasons that no life has met."""
        decisions = [one.__name__ for one in Decision.__args__]
        reasons = [str(one) for one in Reason if one not in NEVER_WAITING]
        return [one for one in decisions if not self.decided[one]] + [
            one for one in reasons if not self.reasons[one]
        ]


def table(totals: Totals) -> str:
    """For people."""
    titles = {"counts": "", "acts": "acts", "faults": "faults", "decided": "decisions", "reasons": "waits"}
    lines: list[str] = []
    for part, title in titles.items():
        rows = sorted(getattr(totals, part).items())
        lines += [title] if title else []
        lines += _in_columns(rows)
    missing = ", ".join(totals.uncovered()) or "none"
    return "\n".join([*lines, f"decisions and reasons never met: {missing}"])


def _in_columns(rows: list[tuple[str, int]]) -> Iterable[str]:
    for at in range(0, len(rows), _COLUMNS):
        cells = [f"{name:<24}{number:>10,}" for name, number in rows[at : at + _COLUMNS]]
        yield "  " + "    ".join(cells)
