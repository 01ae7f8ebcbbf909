"""The process's metrics, and the loops' observers that feed them and the log lines."""

from __future__ import annotations

import logging
import time
from collections import Counter as Tally
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from binder.consumer import PassReport
from binder.effects.carry_out import Outcome
from eventlog.errors import LogError, LogReplaced, LogUnavailable
from eventlog.port import LogInfo
from gpubinder.ledger_metrics import LedgerCollector
from gpubinder.logs import Repeats, say
from ingest.causes import Cause

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
"""From a pass over one set to far beyond what 5,000 nodes may cost."""

SAID = 5
"""Lines about the same cause in a minute; the rest is counted."""
AWAY_S = 30.0
"""A store that has not answered for longer makes the process not ready."""
DEAF_S = 120.0
"""So does an API server that tells nothing of a kind: its streams are reopened every 80 s."""


class Metrics:
    """Every metric of this process, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        to = self.registry
        self.passes = Counter("gpubinder_passes", "Passes by result", ["result"], registry=to)
        self.pass_s = Histogram(
            "gpubinder_pass_duration_seconds", "Duration by phase", ["phase"], buckets=_BUCKETS, registry=to
        )
        self.batch = Histogram("gpubinder_pass_batch_entries", "Log entries that woke a pass", registry=to)
        self.effects = Counter("gpubinder_effects", "Writes", ["verb", "result"], registry=to)
        self.waiting = Gauge("gpubinder_sets", "Sets by state and reason", ["state", "reason"], registry=to)
        self.leader = Gauge("gpubinder_leader", "1 while this process is the active binder", registry=to)
        self.epoch = Gauge("gpubinder_leader_epoch", "Epoch of the term as leader", registry=to)
        lag = "gpubinder_stream_lag"
        self.lag_entries = Gauge(f"{lag}_entries", "Entries not yet acknowledged", registry=to)
        self.lag_s = Gauge(f"{lag}_seconds", "From the last entry read to the newest", registry=to)
        self.age_s = Gauge(
            "gpubinder_watch_age_seconds", "Since the API server told of a kind", ["kind"], registry=to
        )
        labels = ["kind", "type", "result"]
        self.events = Counter("gpubinder_watch_events", "Watched changes", labels, registry=to)
        self.restarts = Counter(
            "gpubinder_watch_restarts", "Restarts of a watch loop", ["kind", "cause"], registry=to
        )
        self.holdings = LedgerCollector()
        to.register(self.holdings)
        self.drift = Gauge(
            "gpubinder_ledger_drift_units", "Books against a count from nothing; must be 0", registry=to
        )
        self.quarantined = Counter("gpubinder_quarantined", "Objects and entries not read", registry=to)


class Observer:
    """Hears of passes, watches and terms; writes log lines and counts."""

    def __init__(self, metrics: Metrics, clock: Callable[[], float] = time.monotonic) -> None:
        self._metrics = metrics
        self._clock = clock
        self._last_blocked: str | None = None
        self._heard_s: dict[str, float] = {}
        self._unlisted: set[str] = set()
        self._log_away_s: float | None = None
        self._unwritten_s: float | None = None
        """Since when the heart has not been able to write."""
        self._repeats = Repeats(clock)
        self._unsaid_epoch: int | None = None
        """Of a term that follows one without a pass: said once it has one."""
        self._has_served = True
        self.is_ready = False
        """Whether the term's last pass could decide; whoever stands by has none."""

    @property
    def is_watching(self) -> bool:
        """Whether each of our kinds is in the log, and neither store has been away for long."""
        now_s = self._clock()
        is_log_away = any(
            since is not None and now_s - since > AWAY_S for since in (self._log_away_s, self._unwritten_s)
        )
        return not (
            is_log_away or self._unlisted or any(now_s - at > DEAF_S for at in self._heard_s.values())
        )

    def kind_taken(self, kind: str) -> None:
        """A loop of ours begins to watch the kind."""
        self._unlisted.add(kind)
        self.heard(kind)
        self._metrics.age_s.labels(kind).set_function(lambda: self._clock() - self._heard_s.get(kind, 0.0))

    def kind_given_up(self, kind: str) -> None:
        """Another replica has it now."""
        self._unlisted.discard(kind)
        self._heard_s.pop(kind, None)
        with suppress(KeyError):
            self._metrics.age_s.remove(kind)

    def heard(self, kind: str) -> None:
        """The API server has told something of the kind."""
        self._heard_s[kind] = self._clock()

    def listed(self, kind: str) -> None:
        """A complete list of the kind is in the log."""
        self._unlisted.discard(kind)

    def beat_ended(self, fault: LogError | None) -> None:
        """A heartbeat is in the log, or why not: the first to notice a log that can be read alone."""
        if fault is not None:
            self._unwritten_s = self._clock() if self._unwritten_s is None else self._unwritten_s
            self.log_failed(fault)
        elif self._unwritten_s is not None:
            say(logging.INFO, "log_written_again", after_s=self._clock() - self._unwritten_s)
            self._unwritten_s = None

    def log_failed(self, fault: LogError) -> None:
        """Something could not be written to the log or read from it; who tried will try again."""
        if isinstance(fault, LogReplaced):
            self._repeats.say(logging.WARNING, "log_replaced", str(fault), 1,
                cause=fault, next="every kind is listed again")  # fmt: skip
        else:
            self._repeats.say(logging.WARNING, "log_failed", str(fault), 1,
                cause=fault, next="tried again every few seconds")  # fmt: skip

    def log_asked(self, info: LogInfo | None) -> None:
        """How the log is, or None: it did not answer."""
        self._repeats.tell_left_out()
        if info is None:
            self._log_away_s = self._clock() if self._log_away_s is None else self._log_away_s
            return
        self._log_away_s = None
        self._metrics.lag_entries.set(info.pending)
        self._metrics.lag_s.set(info.lag_ms / 1000)

    def pass_done(self, report: PassReport) -> None:
        """One info line per pass that did or blocked something; decisions at debug."""
        m = self._metrics
        m.passes.labels("blocked" if report.result.blocked else "failed" if report.failed else "done").inc()
        m.batch.observe(report.entries)
        m.pass_s.labels("decide").observe(report.decide_s)
        m.pass_s.labels("total").observe(report.total_s)
        m.waiting.clear()
        for reason, count in Tally(w.reason for w in report.result.waiting).items():
            m.waiting.labels("waiting", reason).set(count)
        m.waiting.labels("failing", "").set(len(report.failing))
        for outcome in report.outcomes:
            verb = type(outcome.decision).__name__
            m.effects.labels(verb, _result(outcome)).inc()
            self._say_outcome(verb, outcome, report)
        self.is_ready = not report.result.blocked
        self._note_served()
        m.holdings.ledger = report.ledger
        self._note_drift(report.drift_units)
        self._say_pass(report)

    def entry_unreadable(self, entry_id: str, why: str) -> None:
        """A log entry was passed over."""
        self._metrics.quarantined.inc()
        self._repeats.say(logging.ERROR, "entry_unreadable", why, SAID,
            id=entry_id, cause=why, next="the entry is passed over")  # fmt: skip

    def claim_unreadable(self, name: str, why: str) -> None:
        """A live claim was left out of a pass."""
        self._metrics.quarantined.inc()
        self._repeats.say(logging.ERROR, "claim_unreadable", f"{name}: {why}", 1,
            object=name, cause=why, next="correct or delete the claim")  # fmt: skip

    def event_seen(self, kind: str, change: str, *, is_appended: bool) -> None:
        """A watched change."""
        self._metrics.events.labels(kind, change, "appended" if is_appended else "duplicate").inc()

    def object_malformed(self, kind: str, raw: dict[str, Any], why: str) -> None:
        """A watched object was passed over."""
        meta = raw.get("metadata")
        name = f"{meta.get('namespace', '')}/{meta.get('name')}" if isinstance(meta, dict) else "?"
        self._metrics.quarantined.inc()
        self._repeats.say(logging.ERROR, "object_malformed", f"{kind}: {why}", SAID,
            object=f"{kind} {name}", cause=why, next="correct the object")  # fmt: skip

    def watch_restarted(self, kind: str, cause: Cause, why: str, wait_s: float) -> None:
        """A watch loop waits and begins again."""
        self._metrics.restarts.labels(kind, cause).inc()
        match cause:
            case Cause.REPLACED:
                self.log_failed(LogReplaced())
            case Cause.LOG:  # the same for every kind
                self.log_failed(LogUnavailable(why))
            case _:
                self._repeats.say(logging.WARNING, "watch_restarted", f"{kind}: {cause}", SAID,
                    kind=kind, cause=why, again_in_s=wait_s)  # fmt: skip

    def lease_unreachable(self, why: str) -> None:
        """The Lease can be neither taken nor renewed."""
        self._repeats.say(logging.WARNING, "lease_unreachable", why, 1,
            cause=why, next="tried again; check --lease-namespace")  # fmt: skip

    def term_began(self, epoch: int) -> None:
        """We are the active binder now."""
        self._metrics.leader.set(1)
        self._metrics.epoch.set(epoch)
        if self._has_served:
            say(logging.INFO, "term_began", epoch=epoch)
        else:
            self._unsaid_epoch = epoch
        self._has_served = False

    def term_ended(self, why: str) -> None:
        """We are not any more."""
        self._metrics.leader.set(0)
        self._metrics.holdings.ledger = {}
        self._unsaid_epoch, self.is_ready = None, False
        self._repeats.say(logging.WARNING, "term_ended", why, 1, cause=why)

    def _note_served(self) -> None:
        if self._unsaid_epoch is not None:
            say(logging.INFO, "term_began", epoch=self._unsaid_epoch)
        self._unsaid_epoch, self._has_served = None, True

    def _note_drift(self, units: int | None) -> None:
        if units is None:
            return
        self._metrics.drift.set(units)
        if units:
            next_step = "restart the binder: it counts anew; report it"
            say(logging.ERROR, "ledger_drifted", units=units, cause="a fault of the books", next=next_step)

    def _say_pass(self, report: PassReport) -> None:
        if report.result.blocked != self._last_blocked:
            say(logging.INFO, "pass_blocked" if report.result.blocked else "pass_unblocked",
                cause=report.result.blocked or "none")  # fmt: skip
            self._last_blocked = report.result.blocked
        if report.outcomes:
            say(
                logging.INFO,
                "pass",
                entries=report.entries,
                decisions=len(report.result.decisions),
                failed=len(report.failed),
                waiting=len(report.result.waiting),
                decide_s=report.decide_s,
                total_s=report.total_s,
            )

    def _say_outcome(self, verb: str, outcome: Outcome, report: PassReport) -> None:
        name, failing = outcome.decision.set, report.failing.get(outcome.decision.set)
        if not outcome.error:
            say(logging.DEBUG, "effect_done", verb=verb, set=name)
        elif failing is None or not outcome.is_tried:
            say(logging.DEBUG, "effect_put_off", verb=verb, set=name, cause=outcome.error)
        else:
            next_step = f"decided again {failing.wait_s:.1f} s after failure {failing.times}"
            say(logging.WARNING, "effect_failed", verb=verb, set=name, cause=outcome.error, next=next_step)


def _result(outcome: Outcome) -> str:
    if not outcome.error:
        return "done"
    return "failed" if outcome.is_tried else "put off"
