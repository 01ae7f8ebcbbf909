"""When a watching process is ready, and what its metrics say of that."""

from __future__ import annotations

import pytest
from prometheus_client import generate_latest

from binder.consumer import PassReport
from binder.core.run_pass import PassResult
from eventlog.errors import LogReplaced, LogUnavailable
from eventlog.port import LogInfo
from gpubinder.logs import LOGGER, REPEAT_S
from gpubinder.metrics import AWAY_S, DEAF_S, SAID, Metrics, Observer
from ingest.causes import Cause

FINE = LogInfo("log", 10, "5000-0", 3, lag_ms=1500)


class Clock:
    """Seconds, moved by hand."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def watching(*kinds: str) -> tuple[Metrics, Observer, Clock]:
    metrics, clock = Metrics(), Clock()
    observer = Observer(metrics, clock)
    for kind in kinds:
        observer.kind_taken(kind)
    return metrics, observer, clock


def page(metrics: Metrics) -> str:
    return generate_latest(metrics.registry).decode()


def test_watcher_is_ready_when_each_of_its_kinds_is_listed() -> None:
    _, observer, _ = watching("Node", "Pod")
    assert not observer.is_watching
    observer.listed("Node")
    assert not observer.is_watching
    observer.listed("Pod")
    assert observer.is_watching


def test_kind_that_another_replica_has_taken_over_is_not_waited_for() -> None:
    metrics, observer, _ = watching("Node", "Pod")
    observer.listed("Node")
    observer.kind_given_up("Pod")
    assert observer.is_watching
    assert 'kind="Pod"' not in page(metrics)


def test_redis_that_is_away_for_long_makes_it_not_ready_until_it_answers() -> None:
    _, observer, clock = watching()
    observer.log_asked(None)
    clock.now_s += AWAY_S - 1
    observer.log_asked(None)
    assert observer.is_watching
    clock.now_s += 2
    assert not observer.is_watching
    observer.log_asked(FINE)
    assert observer.is_watching


def test_api_server_that_tells_nothing_for_long_makes_it_not_ready() -> None:
    metrics, observer, clock = watching("Node")
    observer.listed("Node")
    clock.now_s += DEAF_S + 1
    assert not observer.is_watching
    assert 'gpubinder_watch_age_seconds{kind="Node"} 121.0' in page(metrics)
    observer.heard("Node")
    assert observer.is_watching
    assert 'gpubinder_watch_age_seconds{kind="Node"} 0.0' in page(metrics)


def test_lag_of_the_log_and_causes_of_restarts_are_metrics() -> None:
    metrics, observer, _ = watching()
    observer.log_asked(FINE)
    observer.watch_restarted("Node", Cause.EXPIRED, "410", 0.2)
    told = page(metrics)
    assert "gpubinder_stream_lag_entries 3.0" in told
    assert "gpubinder_stream_lag_seconds 1.5" in told
    assert 'gpubinder_watch_restarts_total{cause="expired",kind="Node"} 1.0' in told


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> pytest.LogCaptureFixture:
    """Of the process, as event names with their keys."""
    monkeypatch.setattr(LOGGER, "propagate", True)
    caplog.set_level("INFO", LOGGER.name)
    return caplog


def said(lines: pytest.LogCaptureFixture) -> list[tuple[str, dict[str, object]]]:
    told = [(record.getMessage(), getattr(record, "keys", {})) for record in lines.records]
    lines.clear()
    return told


FULL = LogUnavailable("Redis at redis://there is full")


def test_heart_that_cannot_write_is_told_and_makes_it_not_ready_although_the_log_can_be_read(
    lines: pytest.LogCaptureFixture,
) -> None:
    """A full Redis while nothing happens in the cluster: nobody else would write, nor notice."""
    _, observer, clock = watching()
    observer.beat_ended(None)
    assert said(lines) == []
    for _ in range(4):
        observer.beat_ended(FULL)
        observer.log_asked(FINE)
        clock.now_s += 10
    assert not observer.is_watching
    assert [(event, keys["cause"]) for event, keys in said(lines)] == [("log_failed", FULL)]
    observer.beat_ended(None)
    assert observer.is_watching
    assert said(lines) == [("log_written_again", {"after_s": 40.0})]


def test_log_that_is_away_is_one_line_a_minute_for_all_kinds(lines: pytest.LogCaptureFixture) -> None:
    metrics, observer, clock = watching("Node", "Pod")
    for _ in range(25):
        for kind in ("Node", "Pod"):
            observer.watch_restarted(kind, Cause.LOG, str(FULL), 2.5)
            observer.watch_restarted(kind, Cause.REPLACED, str(LogReplaced()), 0.1)
        clock.now_s += 2.5
    events = [event for event, _ in said(lines)]
    assert events == [
        "log_failed",
        "log_replaced",
        "log_failed_again",
        "log_replaced_again",
        "log_failed",
        "log_replaced",
    ]
    assert 'gpubinder_watch_restarts_total{cause="log",kind="Pod"} 25.0' in page(metrics)


def test_flood_of_unreadable_entries_is_counted_and_not_told_one_by_one(
    lines: pytest.LogCaptureFixture,
) -> None:
    metrics, observer, clock = watching()
    for number in range(20_000):
        observer.entry_unreadable(f"{number}-0", "field v is missing")
    observer.entry_unreadable("1-1", "something else")
    assert [event for event, _ in said(lines)] == ["entry_unreadable"] * (SAID + 1)
    clock.now_s += REPEAT_S
    observer.log_asked(FINE)
    ((event, keys),) = said(lines)
    assert (event, keys["times"], keys["cause"]) == (
        "entry_unreadable_again",
        20_000 - SAID,
        "field v is missing",
    )
    assert "gpubinder_quarantined_total 20001.0" in page(metrics)


def a_pass(blocked: str = "") -> PassReport:
    return PassReport(1, PassResult((), blocked=blocked), (), {}, 0.1, 0.2)


def test_terms_that_end_for_the_same_cause_before_their_first_pass_are_one_line_a_minute(
    lines: pytest.LogCaptureFixture,
) -> None:
    _, observer, clock = watching()
    observer.term_began(7)
    observer.pass_done(a_pass())
    for _ in range(12):
        observer.term_ended("gpuclaims: 500")
        assert not observer.is_ready
        clock.now_s += 15
        observer.log_asked(FINE)
        observer.term_began(7)
    observer.pass_done(a_pass())
    assert observer.is_ready
    told = said(lines)
    assert told[-1] == ("term_began", {"epoch": 7})
    events = [event for event, _ in told]
    assert (events.count("term_began"), events.count("term_ended")) == (3, 3)
    assert {"times": 3, "cause": "gpuclaims: 500"} in [keys for _, keys in told]


def test_lease_out_of_reach_for_one_cause_is_one_line_a_minute(lines: pytest.LogCaptureFixture) -> None:
    """Also when it is reached in between, half of the time."""
    _, observer, _ = watching()
    for _ in range(20):
        observer.lease_unreachable("cut")
    assert [event for event, _ in said(lines)] == ["lease_unreachable"]


def test_causes_without_number_are_kept_apart_and_bounded(lines: pytest.LogCaptureFixture) -> None:
    _, observer, _ = watching()
    for number in range(2_000):
        observer.entry_unreadable("1-0", f"cause {number}")
    assert len(said(lines)) == 2_000
