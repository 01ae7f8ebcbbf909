"""The ledger as admission reads it: what the binder's last pass has counted (R26, R27). Pure.

It may be a second old and two replicas may read the same one: what is admitted against it is checked again by
the binder when it places, so a race never becomes a booking (R1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

import orjson

from projections.folds.ledger import BUDGET, CLASS, NAMESPACE, BudgetEntry, ClassEntry

POSITION = "@position"
"""The field with the place in the log that the ledger stands at."""
Entry = TypeVar("Entry", ClassEntry, BudgetEntry)


class LedgerUnreadable(ValueError):
    """The fields are none of a ledger that this version knows."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """Classes and budgets by name, and the budgets over a namespace."""

    classes: Mapping[str, ClassEntry] = field(default_factory=dict)
    budgets: Mapping[str, BudgetEntry] = field(default_factory=dict)
    namespaces: Mapping[str, bytes] = field(default_factory=dict)
    """As they stand in the ledger: of thousands, one is asked for."""

    def sold(self) -> frozenset[str]:
        """The resources that classes sell."""
        return frozenset(entry.resource for entry in self.classes.values())

    def over(self, namespace: str) -> tuple[tuple[str, BudgetEntry], ...]:
        """The budgets over a namespace up to the root, by name. Raises LedgerUnreadable."""
        body = self.namespaces.get(namespace)
        names = _json(f"{NAMESPACE}{namespace}", body) if body is not None else []
        if not isinstance(names, list):
            raise LedgerUnreadable(f"{NAMESPACE}{namespace} is no list of budgets")
        return tuple((name, self.budgets[name]) for name in names if name in self.budgets)


def read_ledger(table: Mapping[str, bytes]) -> Ledger:
    """The ledger in a read model's fields; what a newer binder adds is passed over.

    Raises LedgerUnreadable.
    """
    classes, budgets, namespaces = {}, {}, {}
    for name, body in table.items():
        if name.startswith(CLASS):
            classes[name.removeprefix(CLASS)] = _entry(ClassEntry, name, body)
        elif name.startswith(BUDGET):
            budgets[name.removeprefix(BUDGET)] = _entry(BudgetEntry, name, body)
        elif name.startswith(NAMESPACE):
            namespaces[name.removeprefix(NAMESPACE)] = body
    return Ledger(classes, budgets, namespaces)


def _entry(shape: type[Entry], name: str, body: bytes) -> Entry:
    values = _json(name, body)
    known = {one.name for one in fields(shape)}
    try:
        return shape(**{key: value for key, value in values.items() if key in known})
    except (TypeError, AttributeError) as error:
        raise LedgerUnreadable(f"{name}: {error}") from None


def _json(name: str, body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise LedgerUnreadable(f"{name}: {error}") from None
