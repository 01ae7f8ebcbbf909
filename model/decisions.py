"""What a pass decides: plain values that the binder records first and carries out afterwards.

Each names the set it belongs to; decisions of one set are carried out in order, and a failed one stops the
rest of its set only. Must not know: how a decision is carried out.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from model.claims import GPUBudgetStatus, GPUClassStatus
from model.meta import OwnerReference
from model.reasons import Reason
from model.taints import Toleration


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """One object and the version of it that a decision was made on; an empty uid: to be created before."""

    namespace: str
    name: str
    uid: str = ""
    resource_version: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class VmRef:
    """The VM that uses a claim; a VMI without a VM stands for itself."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class CreateClaim:
    """Create a template claim (R7), controller-owned by the VMI."""

    set: str
    claim: ObjectRef
    class_name: str
    units: int
    owner: OwnerReference


@dataclass(frozen=True, slots=True)
class BindClaim:
    """Write the claim Bound to the node (R10)."""

    set: str
    claim: ObjectRef
    node: str
    vm: VmRef | None
    bound_at: str
    generation: int = 0
    caution: str = ""
    """What the scheduler may still refuse the node for; for people."""


@dataclass(frozen=True, slots=True)
class PinLauncher:
    """Tie the launcher to the node, tolerate what its classes do, take our gate off: one patch (R10)."""

    set: str
    pod: ObjectRef
    node: str
    spec_digest: str
    """Of the pod's spec as the pass saw it: a launcher that has changed since is not pinned."""
    tolerations: tuple[Toleration, ...] = ()


@dataclass(frozen=True, slots=True)
class MarkWaiting:
    """Say on the claim why it is not placed (R12)."""

    set: str
    claim: ObjectRef
    reason: Reason
    message: str
    since: str
    generation: int = 0


@dataclass(frozen=True, slots=True)
class LoseClaim:
    """Write the claim Lost: its node could not keep it, no other can take it yet (R22)."""

    set: str
    claim: ObjectRef
    lost_from: str
    lost_at: str
    vm: VmRef | None
    message: str
    generation: int = 0


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete a launcher that its node refused, or that its node cannot keep and that never ran (R13, R21)."""

    set: str
    pod: ObjectRef
    seen: str
    """Its phase and node as the pass saw them: a launcher that has gone on since is not deleted."""
    why: str


@dataclass(frozen=True, slots=True)
class DeleteVmi:
    """Delete a running VMI whose node cannot keep it, so that its VM starts it on another (R21)."""

    set: str
    vmi: ObjectRef
    seen: str
    """Its phase and node as the pass saw them."""
    why: str


@dataclass(frozen=True, slots=True)
class UngateLauncher:
    """Take our gate off without a pin: placement is switched off (R30)."""

    set: str
    pod: ObjectRef


@dataclass(frozen=True, slots=True)
class WarnVmi:
    """Tell the VMI's tenant, once per change of reason (R12)."""

    set: str
    vmi: ObjectRef
    reason: Reason
    message: str
    at: str


@dataclass(frozen=True, slots=True)
class WarnPod:
    """Tell whoever looks at the pod why it does not go on."""

    set: str
    pod: ObjectRef
    reason: Reason
    message: str
    at: str


@dataclass(frozen=True, slots=True)
class DeleteClaim:
    """Give back the units of a template claim whose VMI has ended, or is gone."""

    set: str
    claim: ObjectRef
    gone: ObjectRef | None = None
    """The VMI that must not be there any more."""


class Kept(StrEnum):
    """The kinds that carry our finalizer (R30)."""

    CLAIM = "GPUClaim"
    CLASS = "GPUClass"


@dataclass(frozen=True, slots=True)
class Keep:
    """Put our finalizer on an object that must not go while it is in use (R30)."""

    set: str
    kind: Kept
    ref: ObjectRef


@dataclass(frozen=True, slots=True)
class LetGo:
    """Take our finalizer off an object that is being deleted and no longer in use (R30)."""

    set: str
    kind: Kept
    ref: ObjectRef


@dataclass(frozen=True, slots=True)
class WriteClassStatus:
    """Say on the class who has its units; of the spec of that generation, 0 for one that is not known."""

    set: str
    ref: ObjectRef
    status: GPUClassStatus
    generation: int


@dataclass(frozen=True, slots=True)
class WriteBudgetStatus:
    """Say on the budget what its namespaces use, and whether it is valid."""

    set: str
    ref: ObjectRef
    status: GPUBudgetStatus
    generation: int


Decision = (
    CreateClaim
    | BindClaim
    | PinLauncher
    | MarkWaiting
    | LoseClaim
    | DeletePod
    | DeleteVmi
    | UngateLauncher
    | WarnVmi
    | WarnPod
    | DeleteClaim
    | Keep
    | LetGo
    | WriteClassStatus
    | WriteBudgetStatus
)
