"""Budgets: a tree of limits on groups of namespaces (R27).

A claim must fit every budget that selects its namespace, and every one above it. What is broken (a cycle, a
parent that does not exist) limits to nothing: it refuses what is new. Nothing that is held is ever taken
away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from model.claims import GPUBudget, LabelSelector
from model.namespaces import Namespace


class Fault(NamedTuple):
    """Why a budget allows nothing new: one word for programs, one line for people."""

    reason: str
    text: str


CYCLE, NO_PARENT = "Cycle", "ParentNotFound"


@dataclass(slots=True)
class BudgetTree:
    """Which budgets each namespace is under, and which namespaces each budget covers."""

    budgets: dict[str, GPUBudget] = field(default_factory=dict)
    faults: dict[str, Fault] = field(default_factory=dict)
    """What is wrong with a budget, for those with something wrong on their way to the root."""
    over: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By namespace: the names of its budgets up to the root, sorted."""
    covers: dict[str, list[str]] = field(default_factory=dict)
    """By budget: its namespaces and those of the budgets below it."""
    known: set[str] = field(default_factory=set)
    """The namespaces that the log has told of."""

    def may_limit(self, namespace: str) -> bool:
        """Whether a budget is over the namespace, or may turn out to be: its labels are not known yet."""
        return namespace in self.over or (bool(self.budgets) and namespace not in self.known)


def plant(budgets: Iterable[GPUBudget], namespaces: Iterable[Namespace]) -> BudgetTree:
    """The tree over these namespaces."""
    by_name = {budget.metadata.name: budget for budget in budgets}
    ways = {name: _way_to_root(name, by_name) for name in by_name}
    tree = BudgetTree(by_name, {name: fault for name, (_, fault) in ways.items() if fault})
    for namespace in namespaces:
        tree.known.add(namespace.metadata.name)
        selected = [n for n, b in by_name.items() if selects(b.spec.namespace_selector, namespace)]
        above = sorted({name for one in selected for name in ways[one][0]})
        if above:
            tree.over[namespace.metadata.name] = tuple(above)
        for name in above:
            tree.covers.setdefault(name, []).append(namespace.metadata.name)
    return tree


def selects(selector: LabelSelector, namespace: Namespace) -> bool:
    """meta/v1 LabelSelector: all must hold, an empty one selects everything, an unknown operator nothing."""
    labels = namespace.metadata.labels
    if any(labels.get(key) != value for key, value in selector.match_labels.items()):
        return False
    return all(_holds(one.operator, one.key, one.values, labels) for one in selector.match_expressions)


def refusal(
    tree: BudgetTree, namespace: str, wanted: Mapping[str, int], held: Mapping[str, Mapping[str, int]]
) -> str:
    """Why units by class may not be added in a namespace, in one line, or the empty string.

    `held` are the units by namespace and class that are placed already.
    """
    if tree.budgets and namespace not in tree.known:
        return f"namespace {namespace} is not known yet, nor which GPUBudget is over it"
    for name in tree.over.get(namespace, ()):
        if name in tree.faults:
            return f"GPUBudget {name} is invalid ({tree.faults[name].text}): it allows nothing new"
        for class_name, units in sorted(wanted.items()):
            limit = tree.budgets[name].spec.classes.get(class_name)
            if limit is None or units == 0:
                continue
            used = sum(held.get(one, {}).get(class_name, 0) for one in tree.covers[name])
            if used + units > limit:
                return (
                    f"GPUBudget {name} allows {limit} of class {class_name}: {used} held, {units} more wanted"
                )
    return ""


def _way_to_root(name: str, by_name: Mapping[str, GPUBudget]) -> tuple[tuple[str, ...], Fault | None]:
    """The budgets from here up, and what is wrong on the way."""
    way = dict.fromkeys([name])
    last = name
    while parent := by_name[last].spec.parent:
        if parent in way:
            return tuple(way), Fault(CYCLE, f"its parents form a cycle through {parent}")
        if parent not in by_name:
            return tuple(way), Fault(NO_PARENT, f"parent {parent} does not exist")
        way[parent] = None
        last = parent
    return tuple(way), None


def _holds(operator: str, key: str, values: tuple[str, ...], labels: Mapping[str, str]) -> bool:
    match operator:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case _:
            return False
