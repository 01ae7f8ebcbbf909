"""Sets whose claims the API server refuses: they wait for that, and take no room (R12, decision 0096)."""

from __future__ import annotations

from binder.core.policy import Policy
from binder.core.run_pass import PassResult, run_pass
from binder.core.world import look_at
from model.claims import GPUClaim
from model.meta import Lean
from model.reasons import Reason
from projections.folds import refused_claims
from projections.folds.memory import Lesson, Memory
from tests.binder.deciding import placed_on
from tests.builders import NOW_MS, claims, gpu_class, node, started_vm, state, template_claim, vm, vmi
from tests.builders import launcher as pod

WORDS = "exceeded quota"
MOUNTED = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "missing"}}]}


def decide_refused(*objects: Lean, live: tuple[GPUClaim, ...] = ()) -> tuple[PassResult, Memory]:
    """One pass that remembers a refusal of vm1's claim, and what it remembers then."""
    memory = Memory()
    memory.learn([Lesson(refused_claims.NAME, "vmi-vm1", WORDS)])
    there = state(node(units=1), gpu_class(), *objects)
    result = run_pass(look_at(there, claims(*live)), memory, Policy(), NOW_MS)
    memory.learn(result.lessons)
    return result, memory


def reasons(result: PassResult) -> dict[str, Reason]:
    return {one.set: one.reason for one in result.waiting}


def test_set_waits_in_the_words_of_the_server_and_others_have_the_unit() -> None:
    younger = started_vm("vm2", created="2030-01-01T00:00:00Z")
    result, memory = decide_refused(*started_vm("vm1"), *younger)
    assert placed_on(result) == {"default/vm2": "gpu-1"}
    assert reasons(result) == {"default/vm1": Reason.WRITE_REFUSED}
    assert WORDS in result.waiting[0].message
    assert memory.refused_claims == {"vmi-vm1": WORDS}


def test_what_else_is_in_its_way_is_said_first() -> None:
    """A quota that is raised would not help it."""
    result, _ = decide_refused(vm(), vmi(), pod(**MOUNTED))
    assert reasons(result) == {"default/vm1": Reason.VOLUME_PENDING}


def test_set_whose_claims_exist_is_one_like_any_other_and_the_refusal_is_forgotten() -> None:
    result, memory = decide_refused(*started_vm("vm1"), live=(template_claim(),))
    assert placed_on(result) == {"default/vm1": "gpu-1"}
    assert memory.refused_claims == {}


def test_set_that_lacks_one_of_its_claims_still_waits() -> None:
    """Of two resources one has its claim already."""
    other = gpu_class("t4", "nvidia.com/T4")
    both = (vm(), vmi(), pod(requests={"nvidia.com/T4": "1"}))
    large = node("gpu-2", 1, more={"nvidia.com/T4": "1"})
    result, _ = decide_refused(other, large, *both, live=(template_claim(),))
    assert reasons(result) == {"default/vm1": Reason.WRITE_REFUSED}


def test_refusals_are_forgotten_with_their_vmis_in_one_order() -> None:
    """R4."""
    memory, uids = Memory(), [f"vmi-{number}" for number in range(20)]
    memory.learn([Lesson(refused_claims.NAME, uid, WORDS) for uid in uids])
    lessons = run_pass(look_at(state(node()), {}), memory, Policy(), NOW_MS).lessons
    assert [one.field for one in lessons if one.projection == refused_claims.NAME] == sorted(uids)
