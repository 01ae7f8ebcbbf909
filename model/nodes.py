"""The Node, with the fields that decide what it can take and keep (R8, R20)."""

from __future__ import annotations

from model.meta import Lean, ObjectMeta, Quantities
from model.taints import Taint


class NodeSpec(Lean):
    """What an operator or a controller asks of the node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeCondition(Lean):
    """A condition without its heartbeat time, which changes every few seconds and decides nothing."""

    type: str = ""
    status: str = ""
    last_transition_time: str | None = None


class NodeStatus(Lean):
    """What the kubelet reports. `allocatable` is the total, not what is left."""

    allocatable: Quantities = {}
    conditions: tuple[NodeCondition, ...] = ()


class Node(Lean):
    """A machine. `capacity` is left out on purpose: only `allocatable` can be handed out."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def is_ready(self) -> bool:
        """Whether its Ready condition is True; a node without one is not."""
        return any(c.type == "Ready" and c.status == "True" for c in self.status.conditions)
