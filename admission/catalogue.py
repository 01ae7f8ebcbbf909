"""What an operator should hear about a GPUClass or a GPUBudget that is written or deleted. Pure.

Nothing is refused here: the schema and its rules refuse what can never be right, and the order in which
objects are applied is the operator's. What the API server's own rules cannot see, since it takes the other
objects to see it, is said as a warning; conditions and refusals say the same later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from admission.review import named
from model.claims import GPUBudget, GPUClass
from model.reasons import Reason
from projections.folds.ledger import BudgetEntry


def class_warnings(new: GPUClass, classes: Iterable[GPUClass]) -> tuple[str, ...]:
    """What a class that is written does to VMs that name no class (R7)."""
    resource, name = new.spec.resource_name, new.metadata.name
    others = [
        one
        for one in classes
        if one.spec.resource_name == resource
        and one.metadata.name != name
        and not one.metadata.deletion_timestamp
    ]
    defaults = [one.metadata.name for one in (*others, new) if one.spec.default]
    then = f"a VM that asks for {resource} and names no class waits with {Reason.CLASS_AMBIGUOUS}"
    if len(defaults) > 1:
        return (f"GPUClasses {named(defaults)} are each the default of {resource}: {then}",)
    if others and not defaults:
        selling = named([one.metadata.name for one in (*others, new)])
        return (f"GPUClasses {selling} sell {resource} and none is the default: {then}",)
    return ()


def budget_warnings(
    new: GPUBudget, budgets: Iterable[GPUBudget], classes: Iterable[GPUClass], entry: BudgetEntry | None
) -> tuple[str, ...]:
    """What is odd about a budget that is written, beside the other budgets, what is sold and what is used."""
    by_name = {one.metadata.name: one for one in budgets} | {new.metadata.name: new}
    sale = list(classes)
    return (
        *_way_warnings(new, by_name),
        *_typing_warnings(new, sale),
        *(_use_warnings(new, entry) if entry is not None else ()),
    )


def orphan_warnings(name: str, budgets: Iterable[GPUBudget]) -> tuple[str, ...]:
    """Who is left without a parent when a budget is deleted."""
    children = [one.metadata.name for one in budgets if one.spec.parent == name and one.metadata.name != name]
    if not children:
        return ()
    return (f"without their parent {name} these budgets allow nothing new: {named(children)}",)


def _way_warnings(new: GPUBudget, by_name: Mapping[str, GPUBudget]) -> Iterable[str]:
    """A parent that does not exist, a cycle, or limits that a budget above does not allow."""
    name, way = new.metadata.name, [new]
    while parent := way[-1].spec.parent:
        if parent in {one.metadata.name for one in way}:
            yield f"the parents of GPUBudget {name} form a cycle through {parent}: it allows nothing new"
            return
        if parent not in by_name:
            yield f"parent {parent} does not exist: until it does, GPUBudget {name} allows nothing new"
            return
        way.append(by_name[parent])
    for above in way[1:]:
        for limits, theirs, what in (
            (new.spec.classes, above.spec.classes, "class "),
            (new.spec.resources, above.spec.resources, ""),
        ):
            for key in sorted(limits.keys() & theirs.keys()):
                if limits[key] > theirs[key]:
                    yield (
                        f"{limits[key]} of {what}{key} are more than the {theirs[key]} that "
                        f"GPUBudget {above.metadata.name} above it allows"
                    )


def _typing_warnings(new: GPUBudget, classes: list[GPUClass]) -> Iterable[str]:
    """Limits on what nobody sells: mistyped, or applied too early."""
    names = {one.metadata.name for one in classes}
    resources = {one.spec.resource_name for one in classes}
    for name in sorted(new.spec.classes.keys() - names):
        yield f"GPUClass {name} does not exist: the limit on it limits nothing yet"
    for resource in sorted(new.spec.resources.keys() - resources):
        yield f"no GPUClass sells {resource}: the limit on it limits nothing yet"


def _use_warnings(new: GPUBudget, entry: BudgetEntry) -> Iterable[str]:
    """Limits below what is used already (case 040)."""
    then = "nothing is taken away, and nothing new is allowed"
    for limits, used, what in (
        (new.spec.classes, entry.class_units, "class "),
        (new.spec.resources, entry.resource_units, ""),
    ):
        for key, limit in sorted(limits.items()):
            if used.get(key, 0) > limit:
                yield f"{used[key]} of {what}{key} in use, more than the {limit} allowed: {then}"
