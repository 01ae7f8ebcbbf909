"""One term of the active binder: drain, fold, list claims, run the pass, commit, carry out, conclude.

Begins from the newest snapshot, folds the rest of the log, then what is new; a log that has lost entries
which were not read yet begins anew. An entry is acknowledged with the outcome of the pass that has seen it,
so a crash anywhere repeats a pass and loses nothing: the next one starts from live claims. Must not know: how
decisions are made, or how they are written.
"""

from __future__ import annotations

import asyncio
import gc
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from binder.core.policy import Policy
from binder.core.run_pass import PassResult, run_pass
from binder.core.snapshot import decode_state, encode_state
from binder.core.state import ClusterState, fold_entry
from binder.core.usage import drift_units
from binder.core.world import World
from binder.effects.carry_out import Outcome, carry_out
from binder.effects.leased import WRITE_TIMEOUT_S, LeasedClient
from binder.effects.patience import Failing, Patience
from binder.journal import intent_body, outcome_body
from binder.leader import Leader
from binder.live import list_claims
from eventlog.entries import EntryType, Stored, Unreadable, id_order
from eventlog.errors import LogReplaced
from eventlog.port import (
    START,
    EventReader,
    Journal,
    Quarantine,
    Quarantined,
    Retention,
    Snapshot,
    Snapshots,
)
from kube.port import Client
from model.decisions import Decision, WarnPod, WarnVmi
from model.instants import rfc3339
from projections.folds import ledger, refused_claims
from projections.folds.ledger import Entry
from projections.folds.memory import PROJECTIONS, Lesson, Memory, as_fields, recalled

MAX_BATCH = 5000
QUIET_S = 0.05
DRAIN_LIMIT_S = 0.5
"""A batch ends after 50 ms without an entry, at 5,000 entries, or after twice the time that the last pass
took to decide, listing included, 500 ms at most: where a pass is cheap nobody waits for a larger batch."""
IDLE_S = 2.0
"""How long one read waits for the first entry; the lease is looked at in between."""
HEARTBEATS_KEPT = 100
"""Entries that decide nothing wait for the next pass to be acknowledged; so many wait for nobody."""
KEEP = Retention()
MAX_QUARANTINED = 64 * 1024
"""Bytes kept of one entry."""
SNAPSHOT_S = 600.0
SNAPSHOT_ENTRIES = 20_000
"""A snapshot is due after ten minutes or 20,000 entries: what a start then folds takes no time."""
MAX_UNSAID = 1000
"""Warnings that could not be written and are tried again; more are dropped: the claims say the same."""


class PassObserver(Protocol):
    """Told of every pass: for logs and metrics."""

    def pass_done(self, report: PassReport) -> None:
        """A pass has been carried out and concluded."""
        ...

    def entry_unreadable(self, entry_id: str, why: str) -> None:
        """An entry could not be read, and was passed over."""
        ...

    def claim_unreadable(self, name: str, why: str) -> None:
        """A live claim could not be read, and was left out of the pass."""
        ...


class BinderLog(EventReader, Journal, Snapshots, Quarantine, Protocol):
    """The log as the binder uses it."""

    async def identity(self) -> str:
        """See EventAppender."""
        ...

    async def begin_anew(self, identity: str) -> None:
        """See EventAppender."""
        ...


@dataclass(frozen=True, slots=True)
class PassReport:
    """One pass, for people and metrics; times in seconds."""

    entries: int
    result: PassResult
    outcomes: tuple[Outcome, ...]
    failing: Mapping[str, Failing]
    """Sets that wait after a failure, and until when (s on the loop's clock)."""
    decide_s: float
    total_s: float
    ledger: Mapping[str, Entry] = field(default_factory=dict)
    """As it stands now; the next pass changes it."""
    drift_units: int | None = None
    """How far the books were from what is counted from nothing, when that was counted."""

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """The outcomes with an error."""
        return tuple(outcome for outcome in self.outcomes if outcome.error)


@dataclass(frozen=True, slots=True)
class Post:
    """What a binder works with, term after term."""

    client: Client
    log: BinderLog
    leader: Leader
    policy: Policy
    now_ms: Callable[[], int]
    observer: PassObserver
    instance: str
    retention: Retention = KEEP


@dataclass(slots=True)
class Term:
    """From the fold of the whole log until the lease is lost or a store is away."""

    post: Post
    state: ClusterState = field(default_factory=ClusterState)
    memory: Memory = field(default_factory=Memory)
    position: str = START
    _identity: str = ""
    _unacknowledged: list[str] = field(default_factory=list)
    _patience: Patience = field(default_factory=Patience)
    _unsaid: list[Decision] = field(default_factory=list)
    _heard: list[Lesson] = field(default_factory=list)
    """What outcomes have told since the last pass."""
    _reported: dict[str, str] = field(default_factory=dict)
    _snapshot_at_s: float = 0.0
    _since_snapshot: int = 0
    _wake_at_ms: int | None = None
    _is_blocked: bool = False
    """Whether the last pass could not decide (R33): then a sign of life is news."""
    _deciding_s: float = 0.0
    """How long the last pass took until its decisions stood."""
    _world: World = field(init=False)

    def __post_init__(self) -> None:
        """The world is an index of the state."""
        self._world = World(self.state)

    async def serve(self) -> None:
        """Pass after pass. Raises LogError, ApiError; returns when the lease is not safely ours."""
        self._identity = await self.post.log.identity()
        self._unacknowledged += await self.post.log.take_over()
        with _all_stays():
            await self._begin()
            while batch := await self.post.log.read_range(self.position, MAX_BATCH):
                await self._fold(batch)
            for shelf in self.state.shelves.values():
                shelf.decoded()
                await asyncio.sleep(0)  # seconds, on a large cluster: the lease is renewed meanwhile
            await self._pass(entries=0)
        while self.post.leader.is_ours_for(WRITE_TIMEOUT_S):
            entries = await self._drain()
            if entries or self._is_time():
                await self._pass(entries)
            elif len(self._unacknowledged) > HEARTBEATS_KEPT:
                await self._conclude(())
                await self._save_snapshot_when_due()

    async def _begin(self) -> None:
        """From the snapshot, if there is one that we can read."""
        snapshot = await self.post.log.load_snapshot()
        state = decode_state(snapshot.body) if snapshot else None
        if snapshot is not None and state is not None:
            self.state, self.position = state, snapshot.position
            self._world = World(state)
        tables = {name: await self.post.log.recall(name) for name in PROJECTIONS}
        self.memory, unreadable = recalled(tables)
        for name in unreadable:
            self.post.observer.entry_unreadable(name, "cannot be read as the binder's memory; forgotten")
        self._snapshot_at_s = _now_s()
        await self._check_nothing_lost()

    async def _check_nothing_lost(self) -> None:
        """A fold that lacks entries must not decide: everybody lists again then. Raises LogReplaced."""
        if await self.post.log.has_lost(self.position):
            await self.post.log.begin_anew(self._identity)
            raise LogReplaced

    async def _save_snapshot_when_due(self) -> None:
        """After a concluded pass: nothing up to our position is unacknowledged then."""
        if not self._is_snapshot_due():
            return
        await self._check_nothing_lost()
        post = self.post
        await post.log.save_snapshot(post.leader.epoch, Snapshot(self.position, encode_state(self.state)))
        await post.log.trim(post.retention, post.now_ms())
        self._snapshot_at_s, self._since_snapshot = _now_s(), 0

    def _is_snapshot_due(self) -> bool:
        is_old = _now_s() - self._snapshot_at_s > SNAPSHOT_S and self._since_snapshot > 0
        return is_old or self._since_snapshot >= SNAPSHOT_ENTRIES

    async def _drain(self) -> int:
        """Read until it is quiet; returns how many entries say more than that a watcher lives."""
        wait_s, ends_s = self._sleep_s(), math.inf
        room, telling = MAX_BATCH, 0
        while room > 0 and _now_s() < ends_s:
            batch = await self.post.log.read_new(room, max(1, int(wait_s * 1000)), self._identity)
            if not batch:
                break
            if ends_s == math.inf:
                ends_s = _now_s() + min(DRAIN_LIMIT_S, max(QUIET_S, 2 * self._deciding_s))
            self._unacknowledged += [stored.id for stored in batch]
            telling += await self._fold(batch)
            room -= len(batch)
            wait_s = QUIET_S
        return telling

    async def _fold(self, batch: Sequence[Stored]) -> int:
        """Take in what is after our position; returns how many entries may change a decision."""
        telling = 0
        for stored in batch:
            if id_order(stored.id) <= id_order(self.position):
                continue
            self.position = stored.id
            self._since_snapshot += 1
            if isinstance(stored, Unreadable):
                self.post.observer.entry_unreadable(stored.id, stored.why)
                await self.post.log.quarantine(
                    Quarantined(f"entry {stored.id}", stored.why, _bytes_of(stored))
                )
                continue
            was_blocked = self._is_blocked or bool(self.state.missing_kinds())
            fold_entry(self.state, stored.entry, id_order(stored.id)[0])
            telling += stored.entry.type is not EntryType.HEARTBEAT or was_blocked
        return telling

    async def _pass(self, entries: int) -> None:
        post, began = self.post, _now_s()
        live = await list_claims(post.client, post.observer.claim_unreadable, self._world.relations.claims)
        decide_began = _now_s()
        now_ms = post.now_ms()
        self._world.update(*live)
        self.memory.learn(self._heard)
        result = run_pass(self._world, self.memory, post.policy, now_ms)
        decide_s, self._deciding_s = _now_s() - decide_began, _now_s() - began
        self._report_unreadable()
        await self._commit(result, now_ms)
        if not post.leader.is_ours_for(WRITE_TIMEOUT_S):
            return
        outcomes = await self._carry_out(result.decisions, now_ms)
        await self._conclude(outcomes)
        failing = dict(self._patience.failing)
        drift = drift_units(self._world) if self._is_snapshot_due() else None
        took_s, kept = _now_s() - began, self.memory.ledger
        post.observer.pass_done(PassReport(entries, result, outcomes, failing, decide_s, took_s, kept, drift))
        await self._save_snapshot_when_due()

    async def _carry_out(self, decisions: Sequence[Decision], now_ms: int) -> tuple[Outcome, ...]:
        """One round, in which sets that failed before may have to wait for a later one."""
        post, began_s = self.post, _now_s()
        client = LeasedClient(post.client, post.leader.is_ours_for)
        chosen = self._patience.may_try((*self._unsaid, *decisions), began_s)
        unsaid = [one for one in (*self._unsaid, *decisions) if _is_warning(one) and one not in chosen]
        outcomes = await carry_out(client, chosen, post.instance)
        self._patience.note(outcomes, began_s, _now_s())
        self._heard = [
            Lesson(refused_claims.NAME, uid, words)
            for uid, words in self._patience.refused_claims(outcomes).items()
            if self.memory.refused_claims.get(uid) != words
        ]
        unsaid += [one.decision for one in outcomes if one.error and _is_warning(one.decision)]
        unsaid += self._patience.complaints(outcomes, rfc3339(now_ms))
        self._unsaid = unsaid[:MAX_UNSAID]
        return tuple(outcomes)

    async def _commit(self, result: PassResult, now_ms: int) -> None:
        """Intent and memory in one transaction: what was learned is durable before its effect (R14)."""
        heard, self._heard = self._heard, []
        tables = as_fields((*heard, *result.lessons))
        if not result.blocked:
            tables.setdefault(ledger.NAME, {})  # it stands at this place now, also with nothing new in it
        for fields in tables.values():
            fields["@position"] = self.position.encode()
        intent = intent_body(result, self.post.policy, self.position, now_ms, heard)
        await self.post.log.commit(self.post.leader.epoch, intent, tables)
        self._is_blocked = bool(result.blocked)
        self.memory.learn(result.lessons)
        if not result.blocked:
            self._world.learned_from()
        self._wake_at_ms = result.wake_at_ms

    async def _conclude(self, outcomes: tuple[Outcome, ...]) -> None:
        done, self._unacknowledged = self._unacknowledged, []
        await self.post.log.conclude(self.post.leader.epoch, outcome_body(outcomes), done)

    def _report_unreadable(self) -> None:
        """Tell of each object that could not be decoded, once per version."""
        found = {f"{kind} {'/'.join(filter(None, key))}": why for kind, key, why in self.state.unreadable()}
        for name, why in found.items():
            if self._reported.get(name) != why:
                self.post.observer.entry_unreadable(name, why)
        self._reported = found

    def _is_time(self) -> bool:
        """Whether a grace, a hold or a rejection has run out since the last pass, or a set is due again."""
        due_s = self._patience.due_at_s()
        is_due = due_s is not None and _now_s() >= due_s
        return is_due or (self._wake_at_ms is not None and self.post.now_ms() >= self._wake_at_ms)

    def _sleep_s(self) -> float:
        """How long nothing is due."""
        due_s, wait_s = self._patience.due_at_s(), IDLE_S
        if due_s is not None:
            wait_s = min(wait_s, due_s - _now_s())
        if self._wake_at_ms is not None:
            wait_s = min(wait_s, (self._wake_at_ms - self.post.now_ms()) / 1000)
        return max(0.001, wait_s)


@contextmanager
def _all_stays() -> Iterator[None]:
    """What is made within is no garbage: looking through all of it again and again would halt passes."""
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()


def _is_warning(decision: Decision) -> bool:
    return isinstance(decision, WarnVmi | WarnPod)


def _bytes_of(unreadable: Unreadable) -> bytes:
    """What stands in the log, as it stands there."""
    return b"\n".join(name + b" " + value for name, value in unreadable.fields.items())[:MAX_QUARANTINED]


def _now_s() -> float:
    """Seconds on the loop's own clock: virtual in simulations."""
    return asyncio.get_running_loop().time()
