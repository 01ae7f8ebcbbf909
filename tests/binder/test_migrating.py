"""The target of a live migration: R19, R26, R28, case 050."""

from __future__ import annotations

from binder.core.state import ClusterState
from model.decisions import BindClaim, PinLauncher
from model.kubevirt import VirtualMachineInstance
from model.meta import Lean
from model.names import LABEL_MIGRATION_JOB
from model.pods import Pod
from model.reasons import Reason
from tests.binder.deciding import decide, placed_on, reason_of
from tests.builders import (
    gpu_class,
    launcher,
    node,
    pinned_to,
    raw_pod,
    started_vm,
    state,
    template_claim,
    vm,
    vmi,
)


def migrating(on: str = "gpu-a", pods: tuple[str, ...] = ("pod-vm1", "pod-target")) -> VirtualMachineInstance:
    """A VMI that runs on a node and lists source and target."""
    running = vmi("vm1", phase="Running")
    status = running.status.model_copy(update={"node_name": on, "active_pods": dict.fromkeys(pods, "")})
    return running.model_copy(update={"status": status})


def target(**changes: object) -> Pod:
    """The pod that virt-controller makes for the migration."""
    pod = launcher("vm1", 1, **changes)  # type: ignore[arg-type]
    labels = pod.metadata.labels | {LABEL_MIGRATION_JOB: "job"}
    meta = pod.metadata.model_copy(update={"uid": "pod-target", "name": "virt-launcher-t", "labels": labels})
    return pod.model_copy(update={"metadata": meta})


def source(phase: str = "Running") -> Pod:
    return launcher("vm1", 1, gates=[], node="gpu-a", phase=phase)


def stand(*more: Lean, units: int = 1, on: str = "gpu-a") -> ClusterState:
    """Two nodes and the VM on its way between them."""
    return state(node("gpu-a", units), node("gpu-b", 1), gpu_class(), vm(), migrating(on), *more)


def test_gated_target_is_pinned_to_another_node_and_no_claim_is_written() -> None:
    """Not to the source's node, though there is a free unit: the VMI is to leave it."""
    (found,) = decide(stand(source(), target(), units=2), template_claim("vm1", node="gpu-a")).decisions
    assert isinstance(found, PinLauncher)
    assert (found.pod.uid, found.node) == ("pod-target", "gpu-b")


def test_target_takes_its_unit_beside_the_claim_of_the_source_from_its_pin_on() -> None:
    """R26: one on each node while both run; a VM that waits gets neither."""
    pinned = target(gates=[], terms=pinned_to("gpu-b"))
    for on_its_way in (pinned, target(gates=[], node="gpu-b", phase="Running")):
        cluster = stand(source(), on_its_way, *started_vm("vm2"))
        result = decide(cluster, template_claim("vm1", node="gpu-a"))
        assert placed_on(result) == {}
        assert reason_of(result) is Reason.NO_ROOM


def test_claims_follow_the_vmi_when_it_has_arrived() -> None:
    """R19; the source has ended and holds nothing."""
    there = target(gates=[], node="gpu-b", phase="Running")
    (bind,) = decide(
        stand(source("Succeeded"), there, on="gpu-b"), template_claim("vm1", node="gpu-a")
    ).decisions
    assert isinstance(bind, BindClaim)
    assert bind.node == "gpu-b"
    after = stand(source("Succeeded"), there, *started_vm("vm2"), on="gpu-b")
    assert placed_on(decide(after, template_claim("vm1", node="gpu-b"))) == {"default/vm2": "gpu-a"}


def test_target_that_ends_releases_nothing() -> None:
    """The migration has failed: the claim stays where the VMI runs, the target's node is free."""
    failed = target(gates=[], node="gpu-b", phase="Failed")
    assert decide(stand(source(), failed), template_claim("vm1", node="gpu-a")).decisions == ()
    other = decide(stand(source(), failed, *started_vm("vm2")), template_claim("vm1", node="gpu-a"))
    assert placed_on(other) == {"default/vm2": "gpu-b"}


def test_target_without_room_waits_and_its_vmi_is_told() -> None:
    """The only other node is full."""
    blocked = stand(source(), target(), raw_pod("r", "gpu-b"), units=2)
    result = decide(blocked, template_claim("vm1", node="gpu-a"))
    assert placed_on(result) == {}
    assert reason_of(result) is Reason.NO_ROOM
    (waiting,) = result.waiting
    assert "on 1 nodes: 1 without enough free units" in waiting.message  # its own is not among them
