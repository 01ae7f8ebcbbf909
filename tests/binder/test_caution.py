"""What the scheduler weighs and we do not is said wherever the launcher's set is spoken of."""

from __future__ import annotations

from binder.effects.objects import bound_patch
from model.decisions import BindClaim, DeletePod, ObjectRef
from model.meta import Lean
from model.pods import Pod
from projections.folds.memory import Lesson, Memory
from tests.binder.deciding import decide
from tests.builders import NOW_MS, gpu_class, launcher, node, pinned_launcher, state, template_claim, vm, vmi

APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname"}]
    }
}
SAID = "the scheduler may still refuse: pod anti-affinity"


def apart(pod: Pod) -> Pod:
    """The pod with a constraint that speaks of other pods."""
    raw = pod.model_dump(by_alias=True)
    raw["spec"]["affinity"] = (raw["spec"].get("affinity") or {}) | APART
    return Pod.model_validate(raw)


def stand(pod: Pod, units: int = 2) -> list[Lean]:
    return [node(units=units), gpu_class(), vm(), vmi(), pod]


def test_claim_that_is_bound_says_so() -> None:
    (bind,) = (d for d in decide(state(*stand(apart(launcher())))).decisions if isinstance(d, BindClaim))
    (condition,) = bound_patch(bind, ObjectRef("default", "c"))["status"]["conditions"]
    assert condition["message"] == f"held on gpu-1; {SAID}"


def test_claim_without_such_a_constraint_says_nothing_of_it() -> None:
    (bind,) = (d for d in decide(state(*stand(launcher()))).decisions if isinstance(d, BindClaim))
    (condition,) = bound_patch(bind, ObjectRef("default", "c"))["status"]["conditions"]
    assert condition["message"] == "held on gpu-1"


def test_set_that_waits_says_so_behind_its_reason() -> None:
    (waiting,) = decide(state(*stand(apart(launcher("vm1", 3))))).waiting
    assert waiting.message.endswith(f"; {SAID}")


def test_launcher_that_the_scheduler_cannot_place_is_deleted_with_that_in_the_reason() -> None:
    """R13 (ii)."""
    raw = apart(pinned_launcher()).model_dump(by_alias=True)
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    raw["status"]["conditions"] = [unschedulable]
    memory = Memory()
    memory.learn([Lesson("troubles", "pod pod-vm1 unschedulable", NOW_MS - 121_000)])
    result = decide(state(*stand(Pod.model_validate(raw))), template_claim(node="gpu-1"), memory=memory)
    (delete,) = (d for d in result.decisions if isinstance(d, DeletePod))
    pinned = "the scheduler cannot place the launcher on gpu-1, where its GPUs are held"
    assert delete.why == f"{pinned}; {SAID}"
