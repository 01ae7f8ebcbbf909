"""The ledger as metrics, read when somebody asks: a pass over thousands of budgets sets no gauge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from projections.folds.ledger import BUDGET, CLASS, BudgetEntry, ClassEntry, Entry

STATES = ("allocatable", "bound", "raw", "lost", "pending", "free")


class LedgerCollector(Collector):
    """What the active binder's last pass has counted; nothing while another is active."""

    def __init__(self) -> None:
        self.ledger: Mapping[str, Entry] = {}

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Units of classes by state, and of budgets used and allowed; a class that has gone has none."""
        units = GaugeMetricFamily("gpubinder_units", "Units of a class", labels=["class", "state"])
        budgets = GaugeMetricFamily(
            "gpubinder_budget_units",
            "Units of a class or resource that a budget's namespaces use, and may",
            labels=["budget", "key", "kind"],
        )
        for field, entry in sorted(self.ledger.items()):
            if isinstance(entry, ClassEntry):
                for state in STATES:
                    units.add_metric([field.removeprefix(CLASS), state], getattr(entry, state))
            elif isinstance(entry, BudgetEntry):
                for kind, key, amount in _amounts(entry):
                    budgets.add_metric([field.removeprefix(BUDGET), key, kind], amount)
        yield units
        yield budgets


def _amounts(entry: BudgetEntry) -> Iterator[tuple[str, str, int]]:
    """What is limited and not used is used zero times."""
    pairs = ((entry.class_limits, entry.class_units), (entry.resource_limits, entry.resource_units))
    for limits, used in pairs:
        for key in sorted(limits.keys() | used.keys()):
            yield "used", key, used.get(key, 0)
        for key, limit in sorted(limits.items()):
            yield "limit", key, limit
