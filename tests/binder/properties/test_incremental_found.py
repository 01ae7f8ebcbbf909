"""What random histories and a second look at the index have found, each as its smallest history."""

from __future__ import annotations

from model.decisions import BindClaim
from model.names import GATE
from model.reasons import Reason
from tests.binder.properties import raw
from tests.binder.properties.life import Life
from tests.binder.properties.raw import H, T
from tests.binder.properties.test_incremental import assert_equals_from_nothing


def started(life: Life, name: str = "a") -> None:
    """A VM that wants one unit of H."""
    life.put("VirtualMachine", raw.vm("x", name, 0, "Always"))
    life.put("VirtualMachineInstance", raw.vmi("x", name, 0, "Scheduling", vm_life=0, pods=(f"{name}0",)))
    life.put("Pod", raw.launcher("x", f"{name}0", name, 0, gpus={H: "1"}, gates=[GATE]))


def with_node() -> Life:
    life = Life()
    life.put("Node", raw.node("n0", 0, {H: "2", T: "2"}))
    life.put("GPUClass", raw.gpu_class("h", H))
    return life


def test_budget_that_goes_while_what_is_sold_changes_is_forgotten() -> None:
    life = with_node()
    life.put("GPUBudget", raw.budget("b1", "", {}, {}))
    assert_equals_from_nothing(life)
    life.delete("GPUBudget", ("", "b1"))
    life.put("GPUClass", raw.gpu_class("h", H, default=True))
    assert_equals_from_nothing(life)


def test_run_of_a_vm_that_went_with_its_vmi_is_ended_also_by_a_binder_that_has_just_begun() -> None:
    """R14: else it would be remembered for ever."""
    life = with_node()
    started(life)
    assert_equals_from_nothing(life)
    for kind, name in (("Pod", "a0"), ("VirtualMachineInstance", "a"), ("VirtualMachine", "a")):
        life.delete(kind, ("x", name))
    assert_equals_from_nothing(life)
    assert [run.ended_ms for run in life.memory.runs.values()] == [life.now_ms]


def test_claim_that_takes_the_name_of_a_template_claim_is_noticed_when_it_comes_and_goes() -> None:
    """R7: NameTaken, by a claim that nobody names."""
    life = with_node()
    started(life)
    taken = f"a-h-{raw.vmi_uid('x', 'a', 0)[:8]}"
    life.look()
    life.put("GPUClaim", raw.claim("x", taken, "h", 1))
    assert_equals_from_nothing(life)
    assert [one.reason for one in life.decide().waiting] == [Reason.NAME_TAKEN]
    life.delete("GPUClaim", ("x", taken))
    assert_equals_from_nothing(life)
    assert life.decide().waiting == ()


def test_shortages_of_a_node_come_in_one_order_however_its_claims_came() -> None:
    """R4: the first of them is the one that a decision names."""
    life = with_node()
    life.put("GPUClass", raw.gpu_class("t", T))
    life.put("GPUClaim", raw.claim("x", "o1", "t", 1, phase="Bound", node="n0"))
    life.put("GPUClaim", raw.claim("x", "o2", "h", 1, phase="Bound", node="n0"))
    life.look()
    life.put("Node", raw.node("n0", 0, {H: "0", T: "0"}))
    life.put("GPUClaim", raw.claim("x", "o2", "h", 1, phase="Bound", node="n0", kept=False))
    life.put("GPUClaim", raw.claim("x", "o1", "t", 1, phase="Bound", node="n0", kept=False))
    assert_equals_from_nothing(life)


def test_what_came_while_nothing_could_be_decided_is_learned_by_the_next_pass() -> None:
    """R14, R33: a binder that starts is blocked while the lists come in, and must not forget who runs."""
    life = with_node()
    life.now_ms += 90_000
    started(life)
    life.now_ms += 90_000
    assert life.decide().blocked
    life.pass_time(0)
    assert life.decide().lessons
    assert [run.vm_name for run in life.memory.runs.values()] == ["a"]


def test_vm_and_an_order_of_its_name_are_two_sets() -> None:
    """R20: what is decided over one of them says nothing of the other."""
    life = with_node()
    started(life)
    life.put("GPUClaim", raw.claim("x", "a", "h", 1))
    binds = [one for one in life.decide().decisions if isinstance(one, BindClaim)]
    assert sorted((one.set, one.node) for one in binds) == [("x/a", "n0"), ("x/a (order)", "n0")]
    assert_equals_from_nothing(life)
