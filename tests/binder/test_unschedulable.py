"""Launchers that the scheduler cannot place on their pin (R13 ii)."""

from __future__ import annotations

import pytest

from model.claims import GPUClaim
from model.decisions import DeletePod, WarnVmi
from model.meta import Lean
from model.reasons import Reason
from model.storage import PersistentVolumeClaim
from tests.binder.deciding import Binder, kinds_of, placed_on, warnings
from tests.binder.refusing import HELD, UNSCHEDULABLE, next_run, stuck_vm, two_nodes
from tests.builders import (
    gpu_class,
    launcher,
    node,
    pinned_launcher,
    starting_vm,
    state,
    vm,
    vmi,
)


@pytest.mark.parametrize("strategy", ["Always", "Manual"])
def test_unschedulable_launcher_whose_claims_have_gone_is_deleted_or_told_of(strategy: str) -> None:
    """R13 (ii): whatever became of the claims, only the VM's strategy decides."""
    binder = Binder()
    binder.passes(two_nodes(*stuck_vm(strategy=strategy)))
    result = binder.passes(two_nodes(*stuck_vm(strategy=strategy)), after_s=120)
    (is_deleted,) = (isinstance(one, DeletePod) for one in result.decisions)
    assert is_deleted is (strategy == "Always")
    assert warnings(result) == ([] if is_deleted else [Reason.NODES_REFUSED])


def test_scheduler_has_two_minutes_to_find_room_on_the_pin() -> None:
    """R13 (ii)."""
    binder = Binder()
    first = binder.passes(two_nodes(*stuck_vm()), HELD)
    assert (first.decisions, first.wake_at_ms) == ((), binder.now_ms + 120_000)
    assert binder.passes(two_nodes(*stuck_vm()), HELD, after_s=119.999).decisions == ()
    second = binder.passes(two_nodes(*stuck_vm()), HELD, after_s=0.001)
    (deletion,) = second.decisions
    assert isinstance(deletion, DeletePod)
    assert deletion.seen == "Pending on no node"
    assert deletion.why == "the scheduler cannot place the launcher on gpu-1, where its GPUs are held"
    assert placed_on(binder.passes(two_nodes(*next_run()))) == {"default/vm1": "gpu-2"}


def test_scheduler_that_came_round_begins_the_two_minutes_anew() -> None:
    """R13 (ii): *for longer than* means without a break."""
    binder = Binder()
    binder.passes(two_nodes(*stuck_vm()), HELD)
    binder.passes(two_nodes(*starting_vm()), HELD, after_s=100)
    assert binder.passes(two_nodes(*stuck_vm()), HELD, after_s=100).decisions == ()


@pytest.mark.parametrize(
    "pod",
    [
        pinned_launcher("vm1", status=UNSCHEDULABLE | {"nominatedNodeName": "gpu-1"}),
        pinned_launcher("vm1", status=UNSCHEDULABLE, gates=["other.io/gate"]),
        pinned_launcher("vm1", status=UNSCHEDULABLE, node="gpu-1"),
        pinned_launcher(
            "vm1",
            status={
                "phase": "Pending",
                "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}],
            },
        ),
        launcher("vm1", gates=[], status=UNSCHEDULABLE),
    ],
    ids=["nominated", "foreign gate", "bound", "another reason", "no pin"],
)
def test_launcher_that_the_scheduler_has_not_given_up_is_no_refusal(pod: Lean) -> None:
    """R13 (ii)."""
    binder = Binder()
    for after_s in (0, 3600):
        assert binder.passes(two_nodes(vm(), vmi(), pod), HELD, after_s=after_s).decisions == ()


@pytest.mark.parametrize(("bound", "deleted"), [("", False), ("pv-1", True)])
def test_volume_that_is_being_bound_is_not_held_against_the_node(bound: str, deleted: bool) -> None:
    """R13 (ii)."""
    disk = PersistentVolumeClaim.model_validate(
        {"metadata": {"name": "disk", "namespace": "default", "uid": "u"}, "spec": {"volumeName": bound}}
    )
    volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": "disk"}}]
    pod = pinned_launcher("vm1", status=UNSCHEDULABLE, volumes=volumes)
    binder = Binder()
    binder.passes(two_nodes(vm(), vmi(), pod, disk), HELD)
    result = binder.passes(two_nodes(vm(), vmi(), pod, disk), HELD, after_s=121)
    assert (DeletePod in kinds_of(result)) is deleted


@pytest.mark.parametrize(
    ("strategy", "deleted"),
    [
        ("Always", True),
        ("RerunOnFailure", True),
        ("Manual", False),
        ("Once", False),
        ("Halted", False),
        ("", False),
    ],
)
def test_unschedulable_launcher_goes_only_where_its_vm_comes_back(strategy: str, deleted: bool) -> None:
    """R13 (ii): for others it stays, and the tenant is told once."""
    binder = Binder()
    cluster = two_nodes(*stuck_vm(strategy=strategy))
    binder.passes(cluster, HELD)
    result = binder.passes(cluster, HELD, after_s=121)
    assert (DeletePod in kinds_of(result)) is deleted
    assert warnings(result) == ([] if deleted else [Reason.NODES_REFUSED])
    assert warnings(binder.passes(cluster, HELD, after_s=1)) == []


@pytest.mark.parametrize(("after_s", "node_name"), [(20, "gpu-2"), (600, "gpu-1")])
def test_a_vm_that_its_tenant_restarts_is_placed_elsewhere_for_ten_minutes(
    after_s: int, node_name: str
) -> None:
    """R13 (ii): the node is skipped for a VM whose launcher stayed, too; the warning says for how long."""
    binder = Binder()
    cluster = two_nodes(*stuck_vm(strategy="Manual"))
    binder.passes(cluster, HELD)
    (told,) = (one for one in binder.passes(cluster, HELD, after_s=121).decisions if isinstance(one, WarnVmi))
    assert told.message.endswith("restart the VM within 600 s to have it placed elsewhere")
    again = (
        vm(strategy="Manual"),
        vmi(uid="vmi-2", pods=["pod-2"]),
        launcher(uid="pod-2", vmi_uid="vmi-2"),
    )
    assert placed_on(binder.passes(two_nodes(*again), after_s=after_s)) == {"default/vm1": node_name}


def test_unschedulable_vmi_without_a_vm_stays() -> None:
    """R13 (ii): nobody would start it again."""
    binder = Binder()
    cluster = two_nodes(vmi(vm_uid=""), pinned_launcher("vm1", status=UNSCHEDULABLE))
    binder.passes(cluster, HELD)
    assert warnings(binder.passes(cluster, HELD, after_s=121)) == [Reason.NODES_REFUSED]


def test_two_troubles_of_one_launcher_are_one_warning() -> None:
    """R12, R13 (ii), R22: unschedulable on a node that has gone; one set has one reason."""
    binder = Binder()
    cluster = state(node("gpu-2", 0), gpu_class(), *stuck_vm(strategy="Manual"))
    lost = GPUClaim.model_validate(
        HELD.model_dump(by_alias=True) | {"status": {"phase": "Lost", "vm": HELD.status.vm}}
    )
    binder.passes(cluster, lost)
    told = [warnings(binder.passes(cluster, lost, after_s=121)) for _ in range(3)]
    assert told[1:] == [[], []]
