"""Who holds how much: the read model that admission checks against, written with every pass (R1, R26, R27).

It says what the last pass has counted. What is admitted against it is checked again by the binder when it
places, so a stale ledger never becomes a booking.

Fields: `class/NAME` -> ClassEntry, `budget/NAME` -> BudgetEntry, `namespace/NAME` -> the names of the budgets
over that namespace, up to the root, sorted; a namespace that no budget is over has no field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

NAME = "ledger"
"""Of the read model in the log."""
CLASS, BUDGET, NAMESPACE = "class/", "budget/", "namespace/"
"""What the names of the fields begin with."""


@dataclass(frozen=True, slots=True)
class ClassEntry:
    """One class; amounts in units. Classes of one resource share allocatable, raw and free."""

    resource: str
    is_leaving: bool = False
    """It is being deleted: nothing new is sold."""
    nodes: int = 0
    """Nodes that the class accepts and that offer its resource."""
    allocatable: int = 0
    bound: int = 0
    raw: int = 0
    """What pods hold there that no claim covers."""
    lost: int = 0
    pending: int = 0
    free: int = 0
    largest: int = 0
    """The most that one node of the class could hold, were it empty."""


@dataclass(frozen=True, slots=True)
class BudgetEntry:
    """One budget: its limits, and what its namespaces and those below it use."""

    fault: str = ""
    """What is wrong with it or above it; a budget with a fault allows nothing new."""
    class_limits: Mapping[str, int] = field(default_factory=dict)
    class_units: Mapping[str, int] = field(default_factory=dict)
    """Units of claims by class, whatever their phase."""
    resource_limits: Mapping[str, int] = field(default_factory=dict)
    resource_units: Mapping[str, int] = field(default_factory=dict)
    """Units of pods by resource that no claim of their VMI covers."""


Entry = ClassEntry | BudgetEntry | tuple[str, ...]
"""The value of a field."""
SHAPES: Mapping[str, Any] = {CLASS: ClassEntry, BUDGET: BudgetEntry, NAMESPACE: tuple[str, ...]}
"""Of the value, by what the field's name begins with."""


def kind_of(field: str) -> str:
    """What a field's name begins with: CLASS, BUDGET or NAMESPACE, or the empty string for neither."""
    return next((kind for kind in SHAPES if field.startswith(kind)), "")
