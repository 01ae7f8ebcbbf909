"""Our own kinds: what is on sale, who holds it, and who may hold how much (30-api).

The models are the single source of the CRDs: types, bounds, patterns and rules here become the schema there.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from model.meta import Condition, Lean, ObjectMeta
from model.resource_names import DNS_SUBDOMAIN, EXTENDED_NAME, MAX_EXTENDED_NAME
from model.schema import OneOf, Rule, immutable
from model.taints import Toleration, for_pods

MAX_UNITS = 1024
"""More than any machine holds."""
Name = Annotated[str, Field(min_length=1, max_length=253, pattern=f"^{DNS_SUBDOMAIN}$")]
"""Of an object (RFC 1123 subdomain)."""
Conditions = Annotated[tuple[Condition, ...], Field(description="One of each type.")]
Units = Annotated[int, Field(ge=1, le=MAX_UNITS)]
Limit = Annotated[int, Field(ge=0, le=1_000_000)]


class GPUClassSpec(Lean):
    """One extended resource, and the nodes it is sold on."""

    resource_name: Annotated[
        str,
        Field(
            min_length=3,
            max_length=MAX_EXTENDED_NAME,
            pattern=EXTENDED_NAME,
            description="The extended resource it sells.",
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
        AfterValidator(for_pods),
    ] = ()
    default: Annotated[
        bool, Field(description="Whether a VM gets this class when several sell the same resource.")
    ] = False
    description: Annotated[str, Field(max_length=1024, description="For people.")] = ""


class GPUClassStatus(Lean):
    """Units of the class in the whole cluster."""

    nodes: Annotated[int, Field(description="Nodes that the class accepts.")] = 0
    allocatable: Annotated[int, Field(description="Units that they offer.")] = 0
    bound: Annotated[int, Field(description="Units that Bound claims hold.")] = 0
    raw: Annotated[int, Field(description="Units that pods hold without a claim.")] = 0
    lost: Annotated[int, Field(description="Units of Lost claims; they hold nothing.")] = 0
    pending: Annotated[int, Field(description="Units that Pending claims wait for.")] = 0
    free: Annotated[int, Field(description="Units that can still be had.")] = 0
    conditions: Conditions = ()


class GPUClass(Lean):
    """A kind of GPU on sale, backed by one extended resource."""

    keeps_generation: ClassVar[bool] = True

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

    name: Annotated[str, Field(description="Of the VM, in the claim's namespace.")] = ""
    uid: Annotated[str, Field(description="Of the VM: another VM of that name is another user.")] = ""


class GPUClaimStatus(Lean):
    """Where the units are held; written by the binder alone (R1)."""

    phase: Annotated[Phase, Field(description="Bound holds units; Pending and Lost hold none.")] = (
        Phase.PENDING
    )
    node_name: Annotated[str, Field(description="The node that holds it while it is Bound.")] = ""
    bound_at: Annotated[str | None, Field(description="Since when it is Bound to that node.")] = None
    lost_from: Annotated[str | None, Field(description="The node that could not keep it.")] = None
    lost_at: Annotated[str | None, Field(description="Since when it is Lost.")] = None
    vm: ClaimUser | None = None
    conditions: Conditions = ()


class GPUClaim(Lean):
    """A tenant's right to units of one class."""

    metadata: ObjectMeta = ObjectMeta()
    spec: GPUClaimSpec
    status: GPUClaimStatus = GPUClaimStatus()

    @property
    def bound_node(self) -> str:
        """The node that holds it, or the empty string when it is not Bound.

        A status that contradicts itself (Bound to no node, Pending with a node) holds nothing: it is placed
        again like a new one, so no wrong status can book a unit.
        """
        return self.status.node_name if self.status.phase is Phase.BOUND else ""

    @property
    def placed_condition(self) -> Condition | None:
        """The condition that says whether it is placed, and why not."""
        for condition in self.status.conditions:
            if condition.type == "Placed":
                return condition
        return None


class LabelRequirement(Lean):
    """One condition on a label: In, NotIn, Exists or DoesNotExist."""

    key: Annotated[str, Field(min_length=1, max_length=317, description="The label.")]
    operator: Annotated[
        str, OneOf(("In", "NotIn", "Exists", "DoesNotExist")), Field(description="How it compares.")
    ]
    values: Annotated[
        tuple[str, ...], Field(max_length=256, description="Of the label; none with Exists and DoesNotExist.")
    ] = ()


class LabelSelector(Lean):
    """meta/v1 LabelSelector: all must hold."""

    match_labels: Annotated[dict[str, str], Field(max_length=64, description="Labels to carry.")] = {}
    match_expressions: Annotated[
        tuple[LabelRequirement, ...], Field(max_length=64, description="Conditions on labels.")
    ] = ()


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

    classes: Annotated[dict[str, int], Field(description="Units of claims, per class.")] = {}
    resources: Annotated[dict[str, int], Field(description="Units of raw pods, per resource.")] = {}


class GPUBudgetStatus(Lean):
    """Use, and whether the budget is valid."""

    used: BudgetUse = BudgetUse()
    conditions: Conditions = ()


class GPUBudget(Lean):
    """What a group of namespaces may hold."""

    keeps_generation: ClassVar[bool] = True

    metadata: ObjectMeta = ObjectMeta()
    spec: GPUBudgetSpec = GPUBudgetSpec()
    status: GPUBudgetStatus = GPUBudgetStatus()
