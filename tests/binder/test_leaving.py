"""What people are told of a set that leaves its node, and whose turn it is (R20-R22, R24)."""

from __future__ import annotations

from typing import Any

import pytest

from model.decisions import DeletePod, DeleteVmi, LoseClaim, WarnVmi
from model.meta import Lean
from model.reasons import Reason
from tests.binder.deciding import Binder, bound_to, decide, kinds_of, warnings
from tests.binder.failing import GRACE_S, HELD, NO_EXECUTE, cluster
from tests.builders import (
    AT,
    gpu_class,
    launcher,
    node,
    order,
    pinned_launcher,
    running_vm,
    starting_vm,
    state,
    template_claim,
    vm,
    vmi,
)


def test_loss_names_node_trouble_and_what_the_others_lack() -> None:
    """R22: for people; the taint with its value."""
    result = decide(cluster(*running_vm(), spare=0, taints=[NO_EXECUTE]), template_claim(node="gpu-1"))
    lose, warn = result.decisions
    assert isinstance(lose, LoseClaim)
    assert lose.message.startswith("node gpu-1 has a NoExecute taint (broken=yes); no room for 1 of")
    assert isinstance(warn, WarnVmi)
    assert (warn.reason, warn.message) == (Reason.NODE_LOST, "node gpu-1 has a NoExecute taint (broken=yes)")


def test_pod_is_deleted_as_it_was_seen() -> None:
    """R21: uid, version, and where it was."""
    objects = starting_vm(node="gpu-1")
    (deletion,) = decide(cluster(*objects, gone=True), template_claim(node="gpu-1")).decisions
    assert isinstance(deletion, DeletePod)
    assert (deletion.set, deletion.pod.uid, deletion.pod.resource_version) == ("default/vm1", "pod-vm1", "5")
    assert (deletion.seen, deletion.why) == ("Pending on no node", "node gpu-1 is gone")


@pytest.mark.parametrize(("strategy", "word"), [("Manual", "Manual"), ("", "none")])
def test_vm_that_does_not_come_back_is_told_under_which_run_strategy(strategy: str, word: str) -> None:
    """R12, R21."""
    result = decide(cluster(*running_vm(strategy=strategy), gone=True), template_claim(node="gpu-1"))
    (waiting,) = result.waiting
    assert waiting.message == (f"node gpu-1 is gone, and run strategy {word} does not bring the VM back")


def test_volume_that_cannot_say_where_it_is_loses_the_set() -> None:
    """R8c, R22: no node can be named for it, and the claims say why."""
    mounted = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "disk"}}]}
    pod = pinned_launcher(node="gpu-1", phase="Running", **mounted)
    objects = (vm(), vmi(phase="Running", node="gpu-1"), pod)
    lose = decide(cluster(*objects, gone=True), template_claim(node="gpu-1")).decisions[0]
    assert isinstance(lose, LoseClaim)
    assert lose.message == "node gpu-1 is gone; PersistentVolumeClaim default/disk does not exist"


def test_gated_set_that_step_3_has_found_no_node_for_is_lost() -> None:
    """R21, R22: its launcher waits; nothing is deleted, and its node has nothing to hold."""
    objects = (vm(claims="o"), vmi(claims="o"), launcher())
    result = decide(cluster(*objects, gone=True, spare=0), order("o", node="gpu-1", vm_uid="vm-vm1"))
    assert kinds_of(result).count(LoseClaim) == 1


def test_what_was_lost_in_this_pass_is_not_looked_at_again_in_it() -> None:
    """R5: step 6 would say that its new order waits for a node; the next pass knows that all is Lost."""
    live = (order("o", node="gpu-1", vm_uid="vm-vm1"), order("p", vm_uid="vm-vm1"))
    result = decide(cluster(vm(claims="o,p"), gone=True, spare=0), *live)
    assert kinds_of(result) == [LoseClaim]
    assert result.waiting == ()


def test_pass_wakes_when_the_first_of_the_last_minutes_deletions_is_a_minute_old() -> None:
    """R24."""
    names = ("a", "b", "c")
    objects = {name: running_vm(name) for name in names}
    live = {name: template_claim(name, node="gpu-1") for name in names}

    def there(*left: str) -> Any:
        return cluster(*(one for name in left for one in objects[name]), gone=True, spare=9)

    binder = Binder()
    assert kinds_of(binder.passes(there("a"), live["a"], max_vmi_deletions=2)) == [DeleteVmi]
    assert kinds_of(binder.passes(there("b"), live["b"], max_vmi_deletions=2, after_s=20)) == [DeleteVmi]
    result = binder.passes(there("c"), live["c"], max_vmi_deletions=2, after_s=10)
    assert (result.decisions, result.wake_at_ms) == ((), binder.now_ms + 30_000)


def test_idle_sets_and_those_that_are_coming_leave_a_short_node_before_what_runs() -> None:
    """R20, R21: they cost nothing; also where their names come last."""
    coming = (vm("z", claims="z"), vmi("z", claims="z", pods=[]))
    run = running_vm("a")
    for objects, live in (((), order("z", node="gpu-1")), (coming, order("z", node="gpu-1", vm_uid="vm-z"))):
        short = state(node("gpu-1", 1), node("gpu-2", 8), gpu_class(), *run, *objects)
        binder = Binder()
        binder.passes(short, live, template_claim("a", node="gpu-1"))
        result = binder.passes(short, live, template_claim("a", node="gpu-1"), after_s=GRACE_S)
        assert bound_to(result) == {"z": "gpu-2"}
        assert DeleteVmi not in kinds_of(result)


def test_set_of_a_vmi_that_has_ended_is_idle() -> None:
    """R21: it ran once, and runs no more."""
    ended = (vm("z", claims="z"), vmi("z", claims="z", phase="Succeeded", seen=["Running"], pods=[]))
    short = state(node("gpu-1", 1), node("gpu-2", 8), gpu_class(), *running_vm("a"), *ended)
    live = (order("z", node="gpu-1", vm_uid="vm-z"), template_claim("a", node="gpu-1"))
    binder = Binder()
    binder.passes(short, *live)
    assert bound_to(binder.passes(short, *live, after_s=GRACE_S)) == {"z": "gpu-2"}


def test_two_that_left_a_short_node_needlessly_stay() -> None:
    """R20: as many as must; the large one alone is enough, however late the two small ones were bound."""
    bound = [("large", 4, "2026-11-01T05:00:00Z"), ("b", 1, "2026-12-01T05:01:00Z"), ("c", 1, AT)]
    live = [order(name, units, node="gpu-1", boundAt=at) for name, units, at in bound]
    short = state(node("gpu-1", 2), node("gpu-2", 8), gpu_class())
    binder = Binder()
    binder.passes(short, *live)
    assert set(bound_to(binder.passes(short, *live, after_s=GRACE_S))) == {"large"}


@pytest.mark.parametrize("objects", [(), running_vm(claims="o")], ids=["idle", "running"])
def test_set_that_stays_is_told_nothing(objects: tuple[Lean, ...]) -> None:
    """R12: a grace that runs is nobody's news."""
    held = HELD if not objects else order("o", node="gpu-1", vm_uid="vm-vm1")
    assert warnings(decide(cluster(*objects, ready="False"), held)) == []


def test_gated_launcher_keeps_its_claims_off_nodes_that_it_does_not_fit_on() -> None:
    """R8e, R21: units are free on gpu-2, memory is not; its claims do not go there without it."""
    objects = (vm(claims="o"), vmi(claims="o"), launcher(requests={"memory": "600Gi"}))
    result = decide(cluster(*objects, gone=True), order("o", node="gpu-1", vm_uid="vm-vm1"))
    assert (kinds_of(result).count(LoseClaim), bound_to(result)) == (1, {})


def test_seconds_of_a_taint_without_a_time_run_for_each_node_alone() -> None:
    """R20, R24: the second is tolerated longer, and so is no part of an outage yet."""
    timed = {"key": "broken", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}

    def there(*tainted: str) -> Any:
        nodes = [node(name, taints=[NO_EXECUTE] if name in tainted else []) for name in ("a", "b", "c")]
        return state(*nodes, gpu_class(tolerations=[timed]))

    live = [order(f"o-{name}", node=name) for name in "ab"]
    binder = Binder()
    binder.passes(there("a"), *live)
    assert binder.passes(there("a", "b"), *live, after_s=59).decisions == ()
    result = binder.passes(there("a", "b"), *live, after_s=1)
    assert (bound_to(result), result.notices) == ({"o-a": "c"}, ())
