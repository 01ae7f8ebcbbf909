"""Our own kinds: what is on sale, who holds it, and who may hold how much (30-api).

The models are the single source of the CRDs: types, bounds, patterns and rules here become the schema there.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from model.meta import Condition, Lean, ObjectMeta
from model.resource_names import EXTENDED_NAME
from model.schema import Rule, immutable
from model.taints import Toleration

MAX_UNITS = 1024
"""More than any machine holds."""
Name = Annotated[str, Field(min_length=1, max_length=253)]
"""Of an object (RFC 1123 subdomain)."""
Units = Annotated[int, Field(ge=1, le=MAX_UNITS)]
Limit = Annotated[int, Field(ge=0, le=1_000_000)]


class GPUClassSpec(Lean):
    """One extended resource, and the nodes it is sold on."""

    resource_name: Annotated[
        str,
        Field(
            min_length=3, max_length=317, pattern=EXTENDED_NAME, description="The extended resource it sells."
        ),
        immutable("resourceName"),
        Rule(
            "!self.contains('kubernetes.io/')",
            "names of kubernetes.io are native resources, not extended ones",
        ),
    ]
    node_selector: Annotated[
        dict[str, str], Field(max_length=64, description="Labels that a node must carry.")
    ] = {}
    tolerations: Annotated[
        tuple[Toleration, ...],
        Field(max_length=64, description="Taints that its nodes may have; launchers are given the same."),
    ] = ()
    default: Annotated[
        bool, Field(description="Whether a VM gets this class when several sell the same resource.")
    ] = False
    description: Annotated[str, Field(max_length=1024, description="For people.")] = ""


class GPUClassStatus(Lean):
    """Units of the class in the whole cluster."""

    nodes: int = 0
    allocatable: int = 0
    bound: int = 0
    raw: int = 0
    lost: int = 0
    pending: int = 0
    free: int = 0
    conditions: tuple[Condition, ...] = ()


class GPUClass(Lean):
    """A kind of GPU on sale, backed by one extended resource."""

    metadata: ObjectMeta = ObjectMeta()
    spec: GPUClassSpec
    status: GPUClassStatus = GPUClassStatus()


class Phase(StrEnum):
    """The phases of a claim."""

    PENDING = "Pending"
    BOUND = "Bound"
    LOST = "Lost"


class GPUClaimSpec(Lean):
    """How many units of which class; neither ever changes."""

    class_name: Annotated[Name, Field(description="The GPUClass."), immutable("className")]
    units: Annotated[Units, Field(description="How many, all on one node."), immutable("units")]


class ClaimUser(Lean):
    """The VM that uses a claim."""

    name: str = ""
    uid: str = ""


class GPUClaimStatus(Lean):
    """Where the units are held; written by the binder alone (R1)."""

    phase: Phase = Phase.PENDING
    node_name: Annotated[str, Field(description="The node that holds it while it is Bound.")] = ""
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
    """One condition on a label: In, NotIn, Exists or DoesNotExist."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Lean):
    """meta/v1 LabelSelector: all must hold."""

    match_labels: Annotated[dict[str, str], Field(max_length=64)] = {}
    match_expressions: Annotated[tuple[LabelRequirement, ...], Field(max_length=64)] = ()


class GPUBudgetSpec(Lean):
    """Limits on a group of namespaces; budgets form a tree, and a claim must fit every one up to the root."""

    parent: Annotated[str, Field(max_length=253, description="Another GPUBudget, or empty at the root.")] = ""
    namespace_selector: Annotated[LabelSelector, Field(description="Which namespaces it covers.")] = (
        LabelSelector()
    )
    classes: Annotated[
        dict[str, Limit],
        Field(max_length=256, description="Units per class; a class not named is not limited."),
    ] = {}
    resources: Annotated[
        dict[str, Limit], Field(max_length=256, description="Units per resource that raw pods may ask for.")
    ] = {}


class BudgetUse(Lean):
    """What the budget's namespaces hold."""

    classes: dict[str, int] = {}
    resources: dict[str, int] = {}


class GPUBudgetStatus(Lean):
    """Use, and whether the budget is valid."""

    used: BudgetUse = BudgetUse()
    conditions: tuple[Condition, ...] = ()


class GPUBudget(Lean):
    """What a group of namespaces may hold."""

    metadata: ObjectMeta = ObjectMeta()
    spec: GPUBudgetSpec = GPUBudgetSpec()
    status: GPUBudgetStatus = GPUBudgetStatus()
