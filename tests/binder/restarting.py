"""A VM that has run on a node, its next run, and a rival for its unit."""

from __future__ import annotations

from typing import Any

from model.meta import Lean
from tests.binder.deciding import Binder
from tests.builders import gpu_class, launcher, node, running_vm, started_vm, state, template_claim, vmi

ONE = node("gpu-1", 1)
HOLD_S = 300
HELD = template_claim("vm1", node="gpu-1")
RIVAL = tuple(started_vm("rival", created="2020-01-01T00:00:00Z", priority=9))
"""Older and more important: it still has to wait."""


def ran(binder: Binder, *objects: Lean, **policy: int) -> None:
    """vm1 has run on gpu-1 with one unit."""
    there = state(ONE, gpu_class(), *(objects or running_vm()))
    assert binder.passes(there, HELD, **policy).decisions == ()


def next_run(number: int = 2, **changes: Any) -> tuple[Lean, ...]:
    """The VM's next VMI, with a gated launcher."""
    uid = f"run-{number}"
    return (
        vmi("vm1", uid=uid, pods=[f"pod-{uid}"]),
        launcher("vm1", vmi_uid=uid, uid=f"pod-{uid}", **changes),
    )
