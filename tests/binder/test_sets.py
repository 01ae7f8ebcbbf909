"""What a set is of: its members, what is new in it, who uses it (R16, R18, R20, R26)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from binder.core.launchers import Launcher
from binder.core.sets import MAX_MESSAGE, ClaimSet, Constraints, Member, Obstacle, Shape, Stage, units_of
from model.claims import GPUClaim
from model.decisions import ObjectRef, VmRef
from model.reasons import Reason
from tests.builders import H100, T4, gpu_class, launcher, order, template_claim, vmi

CLASS = gpu_class()
NEW = Member(ObjectRef("default", "new"), gpu_class("t4", T4), 1)


def member(claim: GPUClaim, units: int = 1) -> Member:
    return Member(ObjectRef("default", claim.metadata.name), CLASS, units, claim)


def set_of(*members: Member, **more: object) -> ClaimSet:
    return replace(ClaimSet("default/vm1", members), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(("length", "is_cut"), [(MAX_MESSAGE, False), (MAX_MESSAGE + 1, True)])
def test_message_is_cut_where_an_event_would_not_take_it(length: int, is_cut: bool) -> None:
    """R12."""
    said = Obstacle(Reason.CLAIM_NOT_FOUND, "x" * length).message
    assert len(said) == MAX_MESSAGE
    assert said.endswith("…") is is_cut


def test_set_is_bound_since_its_last_claim_was() -> None:
    """R20: latest bound first; what does not say when was bound before all others."""
    early, late = (order("o", node="n", boundAt=f"2026-12-0{day}T00:00:00Z") for day in (1, 2))
    assert set_of(member(early), member(late), NEW).bound_at() == "2026-12-02T00:00:00Z"
    assert set_of(member(order("o", node="n"))).bound_at() == ""
    assert set_of(NEW).bound_at() == ""


@pytest.mark.parametrize(
    ("claim", "uid", "is_unrecorded"),
    [
        (order("o", node="n"), "vm-vm1", True),
        (order("o", node="n", vm_uid="vm-vm1"), "vm-vm1", False),
        (order("o", node="n", vm_uid="vm-other"), "vm-vm1", True),
        (order("o"), "vm-vm1", False),
        (template_claim(vmi_uid="vmi-2"), "vm-vm1", False),
        (order("o", node="n"), "", False),
        (order("o", node="n", vm_uid="vm-gone"), "", True),
    ],
    ids=["nobody's", "its", "another's", "not held", "template claim", "no VM", "no VM any more"],
)
def test_held_order_that_names_another_user_is_unrecorded(
    claim: GPUClaim, uid: str, is_unrecorded: bool
) -> None:
    """R18, R26: it would not cover the launcher."""
    assert set_of(member(claim), vm=VmRef("vm1", uid) if uid else None).is_unrecorded is is_unrecorded


def test_user_is_a_vm_of_a_namespace() -> None:
    """R18: an order of nobody has none."""
    assert set_of(vm=VmRef("vm1", "u")).user == ("default", "u")
    assert ClaimSet("default/o (order)", ()).user == ("default", "")


@pytest.mark.parametrize("stage", list(Stage))
def test_what_was_placed_before_goes_on_without_its_launcher(stage: Stage) -> None:
    """R20: a gated launcher waits for other things, so its claims are free to go anywhere."""
    held, lost = (member(order(name, node="n"), 2) for name in ("a", "b"))
    pending = member(order("p"), 4)
    one = Launcher(launcher(), vmi())
    obstacle = Obstacle(Reason.CLAIM_NOT_FOUND, "one is missing")
    shape = Shape(Constraints((NEW.gpu_class, CLASS)), {H100: 8, T4: 1}, {"memory": 1})
    whole = set_of(held, lost, pending, NEW, stage=stage, launcher=one, obstacle=obstacle, shape=shape)
    old = whole.without_new()
    assert old.members == (held, lost)
    assert (old.launcher, old.obstacle, old.shape) == (None, None, Shape(Constraints((CLASS,)), {H100: 4}))
    assert old.stage is (Stage.IDLE if stage is Stage.GATED else stage)


def test_units_are_by_resource_and_member_that_is_new_is_on_no_node() -> None:
    """R8e: in one order, so that equal sets want the same."""
    other = Member(NEW.ref, NEW.gpu_class, 3)
    assert list(units_of([other, NEW, member(order("o"), 2)]).items()) == sorted([(T4, 4), (H100, 2)])
    assert list(units_of([member(order("o"), 2), other]).items()) == sorted([(T4, 3), (H100, 2)])
    assert (NEW.node, NEW.is_lost) == ("", False)
