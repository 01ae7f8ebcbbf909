"""A VM whose launcher its node or the scheduler has refused."""

from __future__ import annotations

from typing import Any

from binder.core.state import ClusterState
from model.meta import Lean
from tests.builders import (
    gpu_class,
    launcher,
    node,
    pinned_launcher,
    starting_vm,
    state,
    template_claim,
    vm,
    vmi,
)

REFUSED = {"phase": "Failed", "reason": "UnexpectedAdmissionError"}
UNSCHEDULABLE = {
    "phase": "Pending",
    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
}


def refused_vm(node_name: str = "gpu-1", *, strategy: str = "Always", **status: Any) -> tuple[Lean, ...]:
    """A VM whose pinned launcher the kubelet of that node has refused."""
    uid = f"pod-on-{node_name}"
    pod = pinned_launcher("vm1", node_name, node=node_name, status=REFUSED | status, uid=uid)
    return (vm("vm1", strategy=strategy), vmi("vm1", pods=[uid]), pod)


def next_run(**changes: object) -> tuple[Lean, ...]:
    """The VM's next VMI, with a gated launcher."""
    pod = launcher("vm1", vmi_uid="vmi-2", uid="pod-2", pod="virt-launcher-vm1-next", **changes)  # type: ignore[arg-type]
    return (vm("vm1"), vmi("vm1", uid="vmi-2", pods=["pod-2"]), pod)


def two_nodes(*objects: Lean, **changes: object) -> ClusterState:
    """gpu-1, which is fuller and so comes first, and gpu-2."""
    return state(node("gpu-1", 2, **changes), node("gpu-2", 4), gpu_class(), *objects)  # type: ignore[arg-type]


def stuck_vm(*, strategy: str = "Always", **changes: object) -> tuple[Lean, ...]:
    """A VM whose launcher the scheduler cannot place on its pin."""
    return starting_vm("vm1", strategy=strategy, status=UNSCHEDULABLE | changes)


HELD = template_claim("vm1", node="gpu-1")
