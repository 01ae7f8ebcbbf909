"""Which orders are refused when they are made, and in which words (30-api, R1, R27)."""

from __future__ import annotations

import pytest

from admission.claims import MAX_CLAIM_NAME, Orders, is_of_a_vmi, refuse_order
from admission.ledger import Ledger, LedgerUnreadable, read_ledger
from model.claims import GPUClaim
from projections.folds.ledger import BudgetEntry, ClassEntry
from tests.admission.ledgers import fields_of, ledger, one_class, under
from tests.builders import H100, order, template_claim


def said(claim: GPUClaim, held: Ledger, orders: Orders = Orders.REFUSE) -> str:
    """The reason and the sentence, or nothing."""
    refusal = refuse_order(claim, held, orders)
    return f"{refusal.reason}: {refusal.message}" if refusal else ""


TEAM = BudgetEntry(class_limits={"h100": 8}, class_units={"h100": 7})
TABLE = [
    ("fits", order(units=4), ledger(), ""),
    (
        "class that nobody sells",
        order(class_name="h200"),
        ledger(classes=one_class() | {"a100": ClassEntry("nvidia.com/A100")}),
        "ClassNotFound: GPUClass h200 does not exist; on sale are a100, h100",
    ),
    (
        "nothing on sale",
        order(class_name="h200"),
        ledger(classes=one_class(is_leaving=True)),
        "ClassNotFound: GPUClass h200 does not exist; no class is on sale",
    ),
    (
        "many classes are not all named",
        order(class_name="h200"),
        ledger(classes={f"c{n}": ClassEntry(H100) for n in range(9)}),
        "ClassNotFound: GPUClass h200 does not exist; on sale are c0, c1, c2, c3, c4 and 4 more",
    ),
    (
        "class that goes away",
        order(),
        ledger(classes=one_class(is_leaving=True)),
        "ClassNotFound: GPUClass h100 is being deleted and sells nothing new",
    ),
    (
        "more than one node holds",
        order(units=5),
        ledger(classes=one_class(free=16)),
        (
            "TooLarge: no node that class h100 selects offers more than 4, 5 wanted: "
            "a claim is held by one node"
        ),
    ),
    (
        "class without a node",
        order(units=2),
        ledger(classes={"h100": ClassEntry(H100)}),
        (
            f"TooLarge: no node that class h100 selects offers any {H100}, 2 wanted: "
            "a claim is held by one node"
        ),
    ),
    (
        "fewer free than wanted",
        order(units=3),
        ledger(classes=one_class(free=2)),
        "NoRoom: class h100 has 2 of 16 free now, 3 wanted",
    ),
    ("the last free units", order(units=2), ledger(classes=one_class(free=2)), ""),
    ("last unit of a budget", order(units=1), under(team=TEAM), ""),
    (
        "budget without room",
        order(units=2),
        under(team=TEAM),
        "BudgetExceeded: GPUBudget team allows 8 of class h100: 7 claimed, 2 more wanted",
    ),
    (
        "budget above without room",
        order(units=1),
        under(org=BudgetEntry(class_limits={"h100": 7}, class_units={"h100": 7}), team=TEAM),
        "BudgetExceeded: GPUBudget org allows 7 of class h100: 7 claimed, 1 more wanted",
    ),
    ("budget of another class", order(units=2), under(team=BudgetEntry(class_limits={"a100": 0})), ""),
    ("budget of another namespace", order(units=2, namespace="other"), under(team=TEAM), ""),
    (
        "budget that allows none",
        order(),
        under(team=BudgetEntry(class_limits={"h100": 0})),
        "BudgetExceeded: GPUBudget team allows 0 of class h100: 0 claimed, 1 more wanted",
    ),
    (
        "invalid budget",
        order(),
        under(team=BudgetEntry(fault="parent org does not exist")),
        "BudgetExceeded: GPUBudget team is invalid (parent org does not exist): it allows nothing new",
    ),
]


@pytest.mark.parametrize(("claim", "held", "want"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_order_is_refused_in_one_sentence_with_the_numbers(claim: GPUClaim, held: Ledger, want: str) -> None:
    assert said(claim, held) == want


def test_queued_order_needs_no_free_unit_now_but_a_node_that_can_hold_it_and_its_budget() -> None:
    full = ledger(classes=one_class(free=0))
    assert said(order(units=4), full, Orders.QUEUE) == ""
    assert said(order(units=5), full, Orders.QUEUE).startswith("TooLarge")
    assert said(order(units=2), under(team=TEAM), Orders.QUEUE).startswith("BudgetExceeded")


def test_name_leaves_room_for_the_usage_record() -> None:
    """R31: `gpuclaim-<claim>` is a name, too."""
    assert said(order("x" * MAX_CLAIM_NAME), ledger()) == ""
    refusal = refuse_order(order("x" * 250), ledger(), Orders.REFUSE)
    assert refusal is not None
    assert (refusal.code, refusal.reason) == (422, "Invalid")
    assert "250 characters, and a GPUClaim's 244 at most" in refusal.message


def test_claim_of_a_vmi_is_told_by_its_controller() -> None:
    assert is_of_a_vmi(template_claim())
    assert not is_of_a_vmi(order())


def test_ledger_of_a_newer_binder_is_read_and_a_broken_one_is_told() -> None:
    newer = fields_of() | {"class/h100": b'{"resource": "x/y", "colour": "red"}', "margin/h100": b"1"}
    assert read_ledger(newer).classes == {"h100": ClassEntry("x/y")}
    for broken in ({"class/h100": b"{"}, {"class/h100": b"[]"}, {"budget/a": b"1"}, {"class/h100": b"{}"}):
        with pytest.raises(LedgerUnreadable):
            read_ledger(broken)
    with pytest.raises(LedgerUnreadable):
        read_ledger({"namespace/default": b"3"}).over("default")
