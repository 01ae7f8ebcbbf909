"""What the metrics say of classes and budgets: the ledger of the last pass, while this binder is active."""

from __future__ import annotations

import logging

import pytest
from prometheus_client import generate_latest

from binder.consumer import PassReport
from binder.core.run_pass import PassResult
from gpubinder.logs import LOGGER
from gpubinder.metrics import Metrics, Observer
from projections.folds.ledger import BudgetEntry, ClassEntry, Entry

LEDGER: dict[str, Entry] = {
    "class/h100": ClassEntry("nvidia.com/H", nodes=2, allocatable=8, bound=3, raw=1, pending=2, free=4),
    "budget/team": BudgetEntry(
        class_limits={"h100": 9, "never": 1}, class_units={"h100": 3}, resource_units={"nvidia.com/H": 1}
    ),
    "namespace/default": ("team",),
}


def told(ledger: dict[str, Entry], drift: int | None = None) -> tuple[Metrics, Observer]:
    metrics = Metrics()
    observer = Observer(metrics)
    observer.pass_done(PassReport(1, PassResult(), (), {}, 0.1, 0.2, ledger, drift))
    return metrics, observer


def lines(metrics: Metrics, *prefixes: str) -> set[str]:
    page = generate_latest(metrics.registry).decode().splitlines()
    return {line for line in page if line.startswith(prefixes)}


def test_units_of_each_class_are_shown_by_state() -> None:
    metrics, _ = told(LEDGER)
    want = {"allocatable": 8, "bound": 3, "raw": 1, "lost": 0, "pending": 2, "free": 4}
    assert lines(metrics, "gpubinder_units{") == {
        f'gpubinder_units{{class="h100",state="{state}"}} {units}.0' for state, units in want.items()
    }


def test_budgets_show_what_is_used_and_allowed() -> None:
    """What is limited and not used is there with zero; what is not limited has no limit."""
    metrics, _ = told(LEDGER)
    assert lines(metrics, "gpubinder_budget_units{") == {
        f'gpubinder_budget_units{{budget="team",key="{key}",kind="{kind}"}} {units}.0'
        for key, kind, units in (
            ("h100", "used", 3),
            ("h100", "limit", 9),
            ("never", "used", 0),
            ("never", "limit", 1),
            ("nvidia.com/H", "used", 1),
        )
    }


def test_class_that_has_gone_leaves_the_metrics() -> None:
    ledger = dict(LEDGER)
    metrics, _ = told(ledger)
    del ledger["class/h100"]
    assert lines(metrics, "gpubinder_units{") == set()


def test_binder_that_is_not_active_any_more_shows_nothing_old() -> None:
    metrics, observer = told(LEDGER)
    observer.term_ended("")
    assert lines(metrics, "gpubinder_units{", "gpubinder_budget_units{") == set()


def test_drift_is_shown_and_told(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """It must be 0; where it was not counted it stands."""
    monkeypatch.setattr(LOGGER, "propagate", False)
    monkeypatch.setattr(LOGGER, "handlers", [caplog.handler])  # whatever the tests before have left there
    with caplog.at_level(logging.INFO, LOGGER.name):
        metrics, observer = told(LEDGER, drift=4)
        observer.pass_done(PassReport(1, PassResult(), (), {}, 0.1, 0.2, LEDGER))
    assert lines(metrics, "gpubinder_ledger_drift_units") == {"gpubinder_ledger_drift_units 4.0"}
    assert sum("ledger_drifted" in record.getMessage() for record in caplog.records) == 1
