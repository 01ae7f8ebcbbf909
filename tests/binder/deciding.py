"""One pass over a built cluster, and what a test asks of its result."""

from __future__ import annotations

from binder.core.policy import Policy
from binder.core.run_pass import PassResult, run_pass
from binder.core.state import ClusterState
from binder.core.world import look_at
from model.claims import GPUClaim
from model.decisions import PinLauncher
from model.reasons import Reason
from projections.folds import vm_history
from projections.folds.memory import Lesson, Memory
from projections.folds.vm_history import Run
from tests.builders import NOW_MS, claims


def decide(
    cluster: ClusterState, *live: GPUClaim, memory: Memory | None = None, **policy: int | bool
) -> PassResult:
    """One pass at NOW_MS over a world built from nothing."""
    world = look_at(cluster, claims(*live))
    return run_pass(world, memory or Memory(), Policy(**policy), NOW_MS)  # type: ignore[arg-type]


def told(uid: str, reason: Reason) -> Memory:
    """The memory of having told a VMI's tenant."""
    memory = Memory()
    name = uid.removeprefix("vmi-")
    memory.learn([Lesson(vm_history.NAME, uid, Run("default", name, f"vm-{name}", told=str(reason)))])
    return memory


def placed_on(result: PassResult) -> dict[str, str]:
    return {d.set: d.node for d in result.decisions if isinstance(d, PinLauncher)}


def reason_of(result: PassResult) -> Reason:
    (waiting,) = result.waiting
    return waiting.reason
