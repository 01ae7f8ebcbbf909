"""Which sets wait after failures, and until when: one that fails again and again holds up nobody else.

A set's next try comes 0.2 s after its first failure, then doubling to 30 s; the first success ends that. Its
decisions stand in the journal all the same: every pass decides for all. Pure; the time comes in.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from binder.effects.carry_out import Outcome
from model.decisions import (
    CreateClaim,
    Decision,
    PinLauncher,
    UngateLauncher,
    WarnPod,
)
from model.reasons import Reason

RETRY_FIRST_S = 0.2
RETRY_LIMIT_S = 30.0
COMPLAIN_AFTER = 5
"""Failures in a row after which people are told: some 3 s."""
MAX_WORDS = 500
"""Kept of what the server says: it goes into memory, and to people."""
_EVERYONE = ""
"""Stands for all sets: the server served none."""


@dataclass(frozen=True, slots=True)
class Failing:
    """One set that failed: how often in a row, and how long it waits now."""

    times: int
    wait_s: float
    again_at_s: float
    """On the loop's clock."""


@dataclass(slots=True)
class Patience:
    """Changed by `note` only."""

    failing: dict[str, Failing] = field(default_factory=dict)

    def may_try(self, decisions: Iterable[Decision], now_s: float) -> list[Decision]:
        """Those whose sets need not wait; none while the server itself is given time."""
        waiting = {name for name, one in self.failing.items() if one.again_at_s > now_s}
        return [one for one in decisions if not waiting & {one.set, _EVERYONE}]

    def note(self, outcomes: Iterable[Outcome], began_s: float, now_s: float) -> None:
        """How a round has ended that began then. A set that was due and has not failed is forgotten."""
        before = self.failing
        self.failing = {name: one for name, one in before.items() if one.again_at_s > began_s}
        for outcome in outcomes:
            if not outcome.error:
                continue
            name = outcome.decision.set if outcome.is_tried else _EVERYONE
            times = before[name].times + 1 if name in before else 1
            grown_s = min(RETRY_LIMIT_S, RETRY_FIRST_S * 2.0 ** min(times - 1, 16))
            wait_s = max(grown_s, outcome.retry_after_s)
            self.failing[name] = Failing(times, wait_s, now_s + wait_s)

    def due_at_s(self) -> float | None:
        """When something is to be tried again."""
        return min((one.again_at_s for one in self.failing.values()), default=None)

    def complaints(self, outcomes: Iterable[Outcome], at: str) -> list[Decision]:
        """What people are told of sets that the API server has refused again and again, once each."""
        found = []
        for outcome in outcomes:
            failing = self.failing.get(outcome.decision.set)
            if outcome.is_refused and failing is not None and failing.times == COMPLAIN_AFTER:
                found += _complaint(outcome, at)
        return found

    def refused_claims(self, outcomes: Iterable[Outcome]) -> dict[str, str]:
        """The server's words of claims that it has refused again and again, by their VMI's uid."""
        found: dict[str, str] = {}
        for outcome in outcomes:
            decision, failing = outcome.decision, self.failing.get(outcome.decision.set)
            is_told = outcome.is_refused and failing is not None and failing.times >= COMPLAIN_AFTER
            if is_told and isinstance(decision, CreateClaim):
                found[decision.owner.uid] = outcome.error[:MAX_WORDS]
        return found


def _complaint(outcome: Outcome, at: str) -> list[Decision]:
    """To whom it may concern. Of a claim that cannot be created the next pass speaks (R12)."""
    message = f"it is tried again and again: {outcome.error}"
    match outcome.decision:
        case PinLauncher(set=name, pod=pod) | UngateLauncher(set=name, pod=pod):
            return [WarnPod(name, pod, Reason.WRITE_REFUSED, message, at)]
        case _:
            return []
