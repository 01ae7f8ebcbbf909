"""What an operator hears about classes and budgets (30-api, R7, R27, case 040)."""

from __future__ import annotations

from admission.catalogue import budget_warnings, class_warnings, orphan_warnings
from model.claims import GPUBudget
from projections.folds.ledger import BudgetEntry
from tests.builders import H100, T4, gpu_class

AMBIGUOUS = f"a VM that asks for {H100} and names no class waits with ClassAmbiguous"


def budget(name: str, parent: str = "", **spec: object) -> GPUBudget:
    return GPUBudget.model_validate({"metadata": {"name": name}, "spec": {"parent": parent, **spec}})


def heard(new: GPUBudget, *others: GPUBudget, entry: BudgetEntry | None = None) -> tuple[str, ...]:
    return budget_warnings(new, others, [gpu_class()], entry)


def test_second_default_of_a_resource_is_told() -> None:
    spot = gpu_class("spot", default=True)
    assert class_warnings(gpu_class(default=True), [spot]) == (
        f"GPUClasses h100, spot are each the default of {H100}: {AMBIGUOUS}",
    )
    assert class_warnings(gpu_class(), [spot]) == ()
    assert class_warnings(gpu_class(default=True), [gpu_class("t4", T4, default=True)]) == ()


def test_second_class_of_a_resource_without_a_default_is_told() -> None:
    assert class_warnings(gpu_class(), [gpu_class("spot")]) == (
        f"GPUClasses h100, spot sell {H100} and none is the default: {AMBIGUOUS}",
    )


def test_class_that_is_written_again_or_goes_away_is_no_second_one() -> None:
    gone = gpu_class("old", default=True)
    gone = gone.model_copy(update={"metadata": gone.metadata.model_copy(update={"deletion_timestamp": "x"})})
    assert class_warnings(gpu_class(default=True), [gpu_class(), gone]) == ()


def test_parent_that_is_missing_is_told() -> None:
    assert heard(budget("team", "org")) == (
        "parent org does not exist: until it does, GPUBudget team allows nothing new",
    )
    assert heard(budget("team", "org"), budget("org")) == ()


def test_cycle_of_parents_is_told() -> None:
    said = "the parents of GPUBudget team form a cycle through team: it allows nothing new"
    assert heard(budget("team", "team")) == (said,)
    assert heard(budget("team", "org"), budget("org", "team")) == (said,)
    assert heard(budget("team", "org"), budget("org", "org")) == (
        said.replace("through team", "through org"),
    )


def test_limit_that_a_budget_above_does_not_allow_is_told() -> None:
    wide = budget("team", "unit", classes={"h100": 16}, resources={H100: 2})
    assert heard(wide, budget("unit", "org"), budget("org", classes={"h100": 8}, resources={H100: 2})) == (
        "16 of class h100 are more than the 8 that GPUBudget org above it allows",
    )


def test_limit_on_what_nobody_sells_is_told() -> None:
    assert heard(budget("team", classes={"h10": 1}, resources={T4: 1})) == (
        "GPUClass h10 does not exist: the limit on it limits nothing yet",
        f"no GPUClass sells {T4}: the limit on it limits nothing yet",
    )


def test_limit_below_what_is_used_is_told() -> None:
    """Case 040: nothing is evicted."""
    entry = BudgetEntry(class_units={"h100": 9}, resource_units={H100: 1})
    assert heard(budget("team", classes={"h100": 8}, resources={H100: 1}), entry=entry) == (
        "9 of class h100 in use, more than the 8 allowed: nothing is taken away, and nothing new is allowed",
    )


def test_budgets_that_lose_their_parent_are_told() -> None:
    tree = [budget("org"), budget("b", "org"), budget("a", "org"), budget("c", "a")]
    assert orphan_warnings("org", tree) == ("without their parent org these budgets allow nothing new: a, b",)
    assert orphan_warnings("c", tree) == ()
