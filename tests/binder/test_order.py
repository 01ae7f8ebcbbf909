"""A pass decides in one order, whatever order things came in (R4)."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from binder.core.policy import Policy
from binder.core.run_pass import run_pass
from binder.core.state import ClusterState, fold_entries
from binder.core.world import World, look_at
from model.decisions import DeleteClaim, DeletePod, Keep, LetGo, UngateLauncher, WarnPod
from model.names import GATE
from projections.folds import deletions, rejections, targets, troubles, vm_history
from projections.folds.memory import Lesson, Memory
from projections.folds.rejections import Rejection
from projections.folds.vm_history import Run
from tests.binder.properties import raw
from tests.binder.properties.life import NOW_MS, Life
from tests.binder.properties.raw import H, T

NAMES = ("z", "m", "a")
GATED = {"gates": [GATE]}


def put_one_of_everything(life: Life, n: str) -> None:
    """What each step of a pass has something to do for, under one letter."""
    life.put("Node", raw.node(f"n-{n}", 0, {H: "1", T: "1"}, ready="False"))
    life.put("GPUClaim", raw.claim("x", f"unkept-{n}", "h", 1, kept=False))
    life.put("GPUClaim", raw.claim("x", f"leaving-{n}", "h", 1, deleted=True))
    life.put("GPUClaim", raw.claim("x", f"lost-{n}", "h", 9, phase="Lost"))
    life.put("GPUClaim", raw.claim("x", f"held-{n}", "h", 1, phase="Bound", node=f"n-{n}"))
    life.put(
        "GPUClaim", raw.claim("x", f"ended-{n}-h", "h", 1, phase="Bound", node="spare", vmi=(f"ended-{n}", 0))
    )
    life.put("GPUClaim", raw.claim("x", f"left-{n}-t", "t", 1, vmi=(f"left-{n}", 0)))
    put_vm(life, f"ended-{n}", "Succeeded")
    put_vm(life, f"gated-{n}", "Scheduling", **GATED)
    put_vm(life, f"refused-{n}", "Scheduling", pin="spare", node="spare", phase="Failed", reason="OutOfcpu")
    put_vm(life, f"stuck-{n}", "Scheduling", pin="spare", unschedulable=True)
    put_vm(life, f"moving-{n}", "Running", pin="other", node="other", phase="Running")
    life.put("Pod", raw.launcher("x", f"to-{n}", f"moving-{n}", 0, gpus={H: "1"}, migration=True, **GATED))
    life.put("Pod", raw.launcher("x", f"stranger-{n}", "nobody", 0, gpus={H: "1"}, **GATED))


def put_vm(life: Life, name: str, of_vmi: str, **look: object) -> None:
    pods = (f"{name}-0", name.replace("moving", "to"))
    node = str(look.get("node", ""))
    life.put("VirtualMachine", raw.vm("x", name, 0, "Always"))
    life.put("VirtualMachineInstance", raw.vmi("x", name, 0, of_vmi, vm_life=0, pods=pods, node=node))
    if look:
        life.put("Pod", raw.launcher("x", f"{name}-0", name, 0, gpus={H: "1"}, **look))


def kept_up() -> Life:
    """A world into which the last came first."""
    life = Life()
    life.put("GPUClass", raw.gpu_class("h", H))
    life.put("GPUClass", raw.gpu_class("t", T))
    for n in NAMES:
        life.put("GPUClass", raw.gpu_class(f"unkept-{n}", f"example.com/{n}", kept=False))
        life.put("GPUClass", raw.gpu_class(f"going-{n}", f"example.com/{n}", deleted=True))
    for node in ("spare", "other"):
        life.put("Node", raw.node(node, 0, {H: "2", T: "2"}))
    for name in NAMES:
        put_one_of_everything(life, name)
        life.look()
    for n in NAMES:
        life.put("GPUClaim", raw.claim("x", f"left-{n}-h", "h", 1, vmi=(f"left-{n}", 0)))
    life.look()
    return life


def remembered(names: Iterable[str]) -> Memory:
    """As much of each, learned in that order."""
    memory, old = Memory(), NOW_MS - 2 * 3_600_000
    gone = Rejection("no node", "no look", NOW_MS + 1, "", "")
    for n in names:
        memory.learn(
            [
                Lesson(deletions.NAME, f"old-{n}", old),
                Lesson(deletions.NAME, f"ahead-{n}", NOW_MS + 5_000),
                Lesson(targets.NAME, f"gone-{n}", "spare"),
                Lesson(troubles.NAME, f"over-{n}", old),
                Lesson(troubles.NAME, f"VMI x/{raw.vmi_uid('x', f'left-{n}', 0)} gone", old),
                Lesson(rejections.NAME, f"x/vm-{n}", {"n-z": gone, "n-a": gone}),
                Lesson(vm_history.NAME, f"ended-{n}", Run("x", f"v-{n}", f"vm-{n}", ended_ms=old)),
                Lesson(vm_history.NAME, f"live-{n}", Run("x", f"w-{n}", f"vm-w-{n}", told="NoRoom")),
            ]
        )
    return memory


def from_the_other_end(life: Life) -> World:
    """A world built from nothing, into which the first came first."""
    state = ClusterState()
    fold_entries(state, reversed(life.entries))
    return look_at(state, dict(reversed(life.claims.items())))


@pytest.mark.parametrize("is_enabled", [True, False])
def test_decisions_lessons_and_reasons_come_in_one_order_whatever_came_first(is_enabled: bool) -> None:
    """R4: same inputs, same bytes out."""
    life, policy = kept_up(), Policy(is_enabled=is_enabled)
    result = run_pass(life.look(), remembered(NAMES), policy, life.now_ms)
    other = run_pass(from_the_other_end(life), remembered(sorted(NAMES)), policy, life.now_ms)
    assert repr(result) == repr(other)
    decided = {type(one) for one in result.decisions}
    assert decided >= {Keep, LetGo, DeleteClaim, WarnPod, DeletePod if is_enabled else UngateLauncher}
