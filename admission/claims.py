"""May this claim be made? Checked against the ledger when a GPUClaim is created. Pure.

Orders are held to all of it. The claim that the binder makes for a VMI is not: the binder has checked its
budgets itself, against what is placed and not against what waits (decision 0032), and knows more than the
ledger says; refused here, its VM would wait for nothing.
"""

from __future__ import annotations

from enum import StrEnum

from admission.ledger import Ledger
from admission.review import Refusal, named
from model.claims import GPUClaim
from model.reasons import Reason
from model.resources import VIRTUAL_MACHINE_INSTANCES
from projections.folds.ledger import ClassEntry

MAX_CLAIM_NAME = 253 - len("gpuclaim-")
"""Its usage record is named `gpuclaim-<claim>` (R31), which must be a name, too."""


class Orders(StrEnum):
    """What becomes of an order that finds too few free units."""

    REFUSE = "refuse"
    QUEUE = "queue"
    """It is admitted, and waits."""


def is_of_a_vmi(claim: GPUClaim) -> bool:
    """Whether a VMI controls it, as it says itself: a template claim, if the binder wrote it."""
    owners = claim.metadata.owner_references
    return any(owner.controller and owner.kind == VIRTUAL_MACHINE_INSTANCES.kind for owner in owners)


def refuse_order(claim: GPUClaim, ledger: Ledger, orders: Orders) -> Refusal | None:
    """Why this order may not be made, or None. The first of: its class, its size, budgets, free units."""
    class_name, units = claim.spec.class_name, claim.spec.units
    entry = ledger.classes.get(class_name)
    if entry is None:
        return unknown_class(class_name, ledger)
    if entry.is_leaving:
        return _refused(
            Reason.CLASS_NOT_FOUND, f"GPUClass {class_name} is being deleted and sells nothing new"
        )
    return (
        _refuse_name(claim.metadata.name)
        or _refuse_size(class_name, units, entry)
        or _refuse_budgets(claim, ledger)
        or (_refuse_room(class_name, units, entry) if orders is Orders.REFUSE else None)
    )


def unknown_class(class_name: str, ledger: Ledger) -> Refusal:
    """The refusal of a class that does not exist."""
    sale = [name for name, entry in ledger.classes.items() if not entry.is_leaving]
    others = f"on sale are {named(sale)}" if sale else "no class is on sale"
    return _refused(Reason.CLASS_NOT_FOUND, f"GPUClass {class_name} does not exist; {others}")


def _refuse_name(name: str) -> Refusal | None:
    if len(name) <= MAX_CLAIM_NAME:
        return None
    text = f"the name has {len(name)} characters, and a GPUClaim's {MAX_CLAIM_NAME} at most"
    return Refusal("Invalid", f"{text}: its usage record is named gpuclaim-<name>", 422)


def _refuse_size(class_name: str, units: int, entry: ClassEntry) -> Refusal | None:
    if units <= entry.largest:
        return None
    if entry.largest == 0:
        text = f"no node that class {class_name} selects offers any {entry.resource}, {units} wanted"
    else:
        text = f"no node that class {class_name} selects offers more than {entry.largest}, {units} wanted"
    return _refused(Reason.TOO_LARGE, f"{text}: a claim is held by one node")


def _refuse_budgets(claim: GPUClaim, ledger: Ledger) -> Refusal | None:
    class_name, units = claim.spec.class_name, claim.spec.units
    for name, budget in ledger.over(claim.metadata.namespace):
        if budget.fault:
            return _refused(
                Reason.BUDGET_EXCEEDED,
                f"GPUBudget {name} is invalid ({budget.fault}): it allows nothing new",
            )
        limit, used = budget.class_limits.get(class_name), budget.class_units.get(class_name, 0)
        if limit is not None and used + units > limit:
            return _refused(
                Reason.BUDGET_EXCEEDED,
                f"GPUBudget {name} allows {limit} of class {class_name}: {used} claimed, {units} more wanted",
            )
    return None


def _refuse_room(class_name: str, units: int, entry: ClassEntry) -> Refusal | None:
    if units <= entry.free:
        return None
    return _refused(
        Reason.NO_ROOM,
        f"class {class_name} has {entry.free} of {entry.allocatable} free now, {units} wanted",
    )


def _refused(reason: Reason, message: str) -> Refusal:
    return Refusal(str(reason), message)
