"""When a watching process is ready, and what its metrics say of that."""

from __future__ import annotations

from prometheus_client import generate_latest

from eventlog.port import LogInfo
from gpubinder.metrics import AWAY_S, DEAF_S, Metrics, Observer
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
