"""Our own kinds: what is on sale, who holds it, and who may hold how much (30-api)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from model.meta import Condition, Lean, ObjectMeta
from model.taints import Toleration

MAX_UNITS = 1024
"""More than any machine holds."""


class GPUClassSpec(Lean):
    """One extended resource, and the nodes it is sold on."""

    resource_name: str
    node_selector: dict[str, str] = {}
    tolerations: tuple[Toleration, ...] = ()
    default: bool = False
    description: str = ""


class GPUClass(Lean):
    """A kind of GPU on sale."""

    metadata: ObjectMeta = ObjectMeta()
    spec: GPUClassSpec


class Phase(StrEnum):
    """The phases of a claim."""

    PENDING = "Pending"
    BOUND = "Bound"
    LOST = "Lost"


class GPUClaimSpec(Lean):
    """How many units of which class; neither ever changes."""

    class_name: str
    units: Annotated[int, Field(ge=1, le=MAX_UNITS)]


class ClaimUser(Lean):
    """The VM that uses a claim."""

    name: str = ""
    uid: str = ""


class GPUClaimStatus(Lean):
    """Where the units are held; written by the binder alone (R1)."""

    phase: Phase = Phase.PENDING
    node_name: str = ""
    bound_at: str | None = None
    lost_from: str | None = None
    lost_at: str | None = None
    vm: ClaimUser | None = None
    conditions: tuple[Condition, ...] = ()


class GPUClaim(Lean):
    """A tenant's right to units of one class."""

    metadata: ObjectMeta = ObjectMeta()
    spec: GPUClaimSpec
    status: GPUClaimStatus = GPUClaimStatus()

    @property
    def bound_node(self) -> str:
        """The node that holds it, or the empty string when it is not Bound."""
        return self.status.node_name if self.status.phase is Phase.BOUND else ""

    @property
    def placed_condition(self) -> Condition | None:
        """The condition that says whether it is placed, and why not."""
        return next((c for c in self.status.conditions if c.type == "Placed"), None)


class LabelRequirement(Lean):
    """One condition on a label."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Lean):
    """meta/v1 LabelSelector: all must hold."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelRequirement, ...] = ()


class GPUBudgetSpec(Lean):
    """Limits on a group of namespaces; budgets form a tree."""

    parent: str = ""
    namespace_selector: LabelSelector = LabelSelector()
    classes: dict[str, int] = {}
    resources: dict[str, int] = {}


class GPUBudget(Lean):
    """What a group of namespaces may hold."""

    metadata: ObjectMeta = ObjectMeta()
    spec: GPUBudgetSpec = GPUBudgetSpec()
