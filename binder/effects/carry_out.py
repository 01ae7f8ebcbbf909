"""Carries decisions out against the API server: one round for each pass.

Sets run side by side, at most `MAX_SETS_AT_ONCE`; the decisions of one set run in order, and the first that
fails stops the rest of its set. Nothing is retried here: a new pass starts from live claims. A server that
does not answer, or asks for mercy, ends the round for the sets that were not begun: they would all wait for
it one after the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from binder.effects.leased import LeaseRunsOut
from binder.effects.set_writer import SetWriter
from kube.errors import (
    ApiError,
    BadRequest,
    Forbidden,
    Invalid,
    OutcomeUnknown,
    ServerFault,
    TooManyRequests,
    Unreachable,
)
from kube.port import Client
from model.decisions import Decision, WarnPod, WarnVmi

MAX_SETS_AT_ONCE = 16
"""Enough to hide the API server's latency, few enough to leave it room for others."""
MAX_MISSES = 4
"""So many writes in a row that the server did not serve end the round."""
BUSY = (Unreachable, OutcomeUnknown, TooManyRequests, ServerFault)
"""What says more of the server than of the write."""
REFUSALS = (BadRequest, Forbidden, Invalid)
"""What the server would say again."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one decision; `error` is empty when it was carried out."""

    decision: Decision
    error: str = ""
    is_tried: bool = True
    """False: the round ended before its turn."""
    retry_after_s: float = 0.0
    """How long the server asked us to stay away."""
    is_refused: bool = False
    """The server has understood the write and will not have it: 400, 403, 422."""


@dataclass(slots=True)
class Round:
    """What the sets of one round share: whether there is anyone to write to."""

    ended: str = ""
    _misses: int = 0

    def note(self, error: ApiError | None) -> None:
        """How a write has ended."""
        if isinstance(error, LeaseRunsOut):
            self.ended = error.message
        self._misses = self._misses + 1 if isinstance(error, BUSY) else 0
        if self._misses >= MAX_MISSES:
            self.ended = f"the API server serves no writes now ({error})"


async def carry_out(client: Client, decisions: Iterable[Decision], instance: str) -> list[Outcome]:
    """Carry out all decisions; returns outcomes set by set, up to the first failure in each."""
    by_set: dict[str, list[Decision]] = {}
    for decision in decisions:
        by_set.setdefault(decision.set, []).append(decision)
    slots, this = asyncio.Semaphore(MAX_SETS_AT_ONCE), Round()

    async def one_set(chain: list[Decision]) -> list[Outcome]:
        async with slots:
            return await _carry_out_set(SetWriter(client, instance), chain, this)

    done = await asyncio.gather(*(one_set(chain) for chain in by_set.values()))
    return [outcome for outcomes in done for outcome in outcomes]


async def _carry_out_set(writer: SetWriter, chain: list[Decision], this: Round) -> list[Outcome]:
    """What is said to people is said also where something could not be done."""
    outcomes: list[Outcome] = []
    has_failed = False
    for decision in chain:
        if this.ended:
            return [*outcomes, Outcome(decision, f"not tried: {this.ended}", is_tried=False)]
        if has_failed and not isinstance(decision, WarnVmi | WarnPod):
            continue
        try:
            if not outcomes:
                await writer.check(chain)
            await writer.write(decision)
        except ApiError as error:
            this.note(error)
            outcomes.append(_failure(decision, error))
            has_failed = True
        else:
            this.note(None)
            outcomes.append(Outcome(decision))
    return outcomes


def _failure(decision: Decision, error: ApiError) -> Outcome:
    is_tried = not isinstance(error, LeaseRunsOut)
    wait_s = error.retry_after_s if isinstance(error, TooManyRequests) else 0.0
    return Outcome(decision, str(error), is_tried, wait_s, isinstance(error, REFUSALS))
