"""A world kept up equals one built from nothing while one of everything comes, changes and goes (R4).

`properties/test_incremental.py` says the same of histories that are drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pytest

from model.names import GATE
from tests.binder.properties import raw
from tests.binder.properties.life import Life
from tests.binder.properties.raw import H, Raw, T
from tests.binder.properties.test_incremental import assert_books_equal_usage, assert_equals_from_nothing
from tests.binder.test_order import put_one_of_everything

Object = tuple[str, Raw]
WANTS = {"gpus": {H: "1"}}
VMI = "VirtualMachineInstance"
ON_SPARE = {"pin": "spare", "node": "spare", "phase": "Running"} | WANTS


def base() -> Life:
    life = Life()
    for name, resource in (("h", H), ("t", T)):
        life.put("GPUClass", raw.gpu_class(name, resource))
    for name in ("spare", "other"):
        life.put("Node", raw.node(name, 0, {H: "2", T: "2"}))
    return life


def everything() -> list[Object]:
    """One of everything that a pass has something to do for."""
    life = Life()
    put_one_of_everything(life, "a")
    of_all = [(kind, one) for (kind, _), one in life.objects.items()]
    named = [
        ("GPUClaim", raw.claim("x", "o1", "h", 1)),
        ("GPUClaim", raw.claim("x", "o2", "t", 1, phase="Bound", node="other", vm_uid="vm0-x-b")),
        ("VirtualMachine", raw.vm("x", "b", 0, "Always", "o1,o2")),
        ("VirtualMachine", raw.vm("x", "c", 0, "Always", "o1", created="2020-01-01T00:00:00Z")),
        (
            "VirtualMachineInstance",
            raw.vmi("x", "b", 0, "Scheduling", vm_life=0, orders="o1,o2", pods=("b0",)),
        ),
        ("Pod", raw.launcher("x", "b0", "b", 0, gates=[GATE], **WANTS)),
        ("Pod", raw.raw_pod("x", "raw", "other", {H: "1"}, "Running")),
        ("GPUBudget", raw.budget("all", "", {"h": 3}, {})),
        ("GPUBudget", raw.budget("team", "all", {"h": 2}, {"team": "red"})),
        ("Namespace", raw.namespace("x", {"team": "red"})),
    ]
    return [*of_all, *named]


def changed() -> list[Object]:
    """Most of it again, as something else."""
    return [
        ("Node", raw.node("n-a", 0, {H: "1", T: "1"})),
        ("Node", raw.node("other", 1, {H: "1"}, labels={"pool": "x"})),
        ("Node", raw.node("spare", 0, {T: "2"}, unschedulable=True)),
        ("GPUClaim", raw.claim("x", "held-a", "h", 1, phase="Bound", node="other")),
        ("GPUClaim", raw.claim("x", "lost-a", "h", 9, phase="Lost", life=1)),
        ("GPUClaim", raw.claim("x", "o1", "h", 1, phase="Bound", node="spare", vm_uid="vm0-x-c")),
        ("GPUClaim", raw.claim("x", "o2", "t", 1, phase="Lost", vm_uid="vm0-x-b")),
        ("GPUClaim", raw.claim("x", "unkept-a", "h", 1, deleted=True)),
        ("VirtualMachine", raw.vm("x", "b", 0, "Always", "o2")),
        ("VirtualMachine", raw.vm("x", "c", 1, "Halted", "o2")),
        (VMI, raw.vmi("x", "b", 0, "Running", vm_life=0, orders="o2", pods=("b0",), node="other")),
        ("Pod", raw.launcher("x", "b0", "b", 0, pin="other", node="other", phase="Running", **WANTS)),
        ("Pod", raw.raw_pod("x", "raw", "spare", {T: "1"}, "Running")),
        (VMI, raw.vmi("x", "moving-a", 0, "Running", vm_life=0, pods=("to-a",), node="spare")),
        ("Pod", raw.launcher("x", "to-a", "moving-a", 0, migration=True, **ON_SPARE)),
        ("Pod", raw.launcher("x", "gated-a-0", "gated-a", 0, pin="other", **WANTS)),
        (VMI, raw.vmi("x", "stuck-a", 1, "Scheduling", vm_life=0, pods=("stuck-a-0",))),
        (VMI, raw.vmi("x", "gated-a", 0, "Failed", vm_life=0)),
        ("Pod", raw.launcher("x", "stranger-a", "nobody", 0, gates=[], **WANTS)),
        ("GPUBudget", raw.budget("team", "gone", {"h": 2}, {"team": "red"})),
        ("Namespace", raw.namespace("x", {"team": "blue"})),
        ("GPUClass", raw.gpu_class("h", H, kept=False)),
    ]  # fmt: skip


def key_of(one: Object) -> tuple[str, tuple[str, str]]:
    kind, body = one
    return kind, (body["metadata"]["namespace"], body["metadata"]["name"])


def histories(life: Life) -> Iterator[None]:
    """Everything comes, most of it changes, all of it goes, and comes again in the opposite order."""
    for kind, body in (*everything(), *changed()):
        yield life.put(kind, body)
    for one in everything():
        yield life.delete(*key_of(one))
    for kind, body in reversed(everything()):
        yield life.put(kind, body)
    for one in reversed(everything()):
        yield life.delete(*key_of(one))


@pytest.mark.parametrize("every", [2, 7])
def test_world_after_some_changes_equals_one_from_nothing(every: int) -> None:
    """R4: however many are taken in at once."""
    life = base()
    history = histories(life)
    while list(islice(history, every)):
        assert_equals_from_nothing(life)
        assert_books_equal_usage(life.world)
        life.pass_time(1)
