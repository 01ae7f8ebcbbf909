"""A ledger for tests: what is in it as dataclasses, and as the fields that stand in the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace

import orjson

from admission.ledger import Ledger, read_ledger
from projections.folds.ledger import BudgetEntry, ClassEntry
from tests.builders import H100

CLASS = ClassEntry(H100, nodes=4, allocatable=16, bound=10, raw=2, free=4, largest=4)


def fields_of(
    classes: Mapping[str, ClassEntry] | None = None,
    budgets: Mapping[str, BudgetEntry] | None = None,
    over: Mapping[str, list[str]] | None = None,
    position: str = "",
) -> dict[str, bytes]:
    """As the binder writes them: JSON of the dataclasses."""
    found: dict[str, object] = {
        f"class/{name}": asdict(entry)
        for name, entry in ({"h100": CLASS} if classes is None else classes).items()
    }
    found |= {f"budget/{name}": asdict(entry) for name, entry in (budgets or {}).items()}
    found |= {f"namespace/{name}": names for name, names in (over or {}).items()}
    table = {name: orjson.dumps(value) for name, value in found.items()}
    return table | ({"@position": position.encode()} if position else {})


def ledger(**parts: Mapping[str, object]) -> Ledger:
    return read_ledger(fields_of(**parts))  # type: ignore[arg-type]


def one_class(**changes: object) -> dict[str, ClassEntry]:
    return {"h100": replace(CLASS, **changes)}  # type: ignore[arg-type]


def under(**budgets: BudgetEntry) -> Ledger:
    """The usual class, and these budgets over the namespace `default`."""
    return ledger(budgets=budgets, over={"default": sorted(budgets)})
