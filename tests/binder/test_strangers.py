"""Pods with our gate that are nobody's launcher: told once, never let through (R28, 30-api)."""

from __future__ import annotations

import pytest

from binder.core.strangers import STRANGER_GRACE_S
from model.decisions import ObjectRef, WarnPod
from model.instants import rfc3339
from model.meta import Lean
from model.reasons import Reason
from tests.binder.deciding import Binder, decide
from tests.builders import NOW, NOW_MS, gpu_class, launcher, node, state, vm, vmi


def warned(result: object) -> list[str]:
    return [one.pod.uid for one in getattr(result, "decisions", ()) if isinstance(one, WarnPod)]


def forged(**changes: object) -> Lean:
    return launcher("evil", vmi_uid="vmi-vm1", uid="forged", **changes)


def test_gated_pod_that_no_vmi_lists_is_warned_once_after_the_grace() -> None:
    """R28: not listed yet means wait; who waits for longer is told why, once, also across a crash."""
    binder = Binder()
    there = state(node(), gpu_class(), vm(), vmi(), forged(created=NOW))
    first = binder.passes(there)
    assert (warned(first), first.wake_at_ms) == ([], NOW_MS + STRANGER_GRACE_S * 1000)
    assert warned(binder.passes(there, after_s=STRANGER_GRACE_S - 1)) == []
    (warning,) = binder.passes(there, after_s=1).decisions
    assert isinstance(warning, WarnPod)
    pod = ObjectRef("default", "virt-launcher-evil-abcde", "forged")
    assert (warning.set, warning.pod, warning.reason) == (f"pod {pod}", pod, Reason.NOT_A_LAUNCHER)
    assert warning.message.startswith("no VirtualMachineInstance lists this pod as its launcher")
    assert warning.at == rfc3339(binder.now_ms)
    assert warned(binder.passes(there, after_s=600)) == []


def test_what_is_remembered_of_a_stranger_goes_with_it() -> None:
    """Memory is bounded by what there is."""
    binder = Binder()
    binder.passes(state(node(), gpu_class(), forged()))
    assert binder.memory.troubles.keys() == {"told pod forged"}
    binder.passes(state(node(), gpu_class()))
    assert not binder.memory.troubles


@pytest.mark.parametrize(
    "pod",
    [
        launcher("vm1"),
        forged(gates=["example.com/other"]),
        forged(gates=[]),
        forged(deleting=True),
        forged(phase="Failed"),
    ],
    ids=["a launcher", "another gate", "no gate", "going away", "ended"],
)
def test_nobody_else_is_told(pod: Lean) -> None:
    """R28."""
    assert warned(decide(state(node(), gpu_class(), vm(), vmi(), pod))) == []


def test_stranger_is_told_too_while_placement_is_switched_off() -> None:
    """R30: launchers go on then, it does not."""
    assert warned(decide(state(node(), gpu_class(), vm(), vmi(), forged()), is_enabled=False)) == ["forged"]


def test_stranger_that_is_still_young_hides_no_other() -> None:
    """R28."""
    there = state(node(), gpu_class(), forged(created=NOW), launcher("b", vmi_uid="vmi-b", uid="z-old"))
    assert warned(decide(there)) == ["z-old"]


def test_strangers_are_told_in_one_order() -> None:
    """R4: equal states give equal bytes."""
    two = [launcher(name, vmi_uid=f"vmi-{name}", uid=name) for name in ("b", "a")]
    assert warned(decide(state(node(), gpu_class(), *two))) == ["a", "b"]


def test_stranger_whose_age_cannot_be_read_is_young() -> None:
    """R28: not listed yet means wait."""
    result = decide(state(node(), gpu_class(), forged(created="")))
    assert (warned(result), result.wake_at_ms) == ([], NOW_MS + STRANGER_GRACE_S * 1000)
