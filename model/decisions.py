"""What a pass decides: plain values that the binder records first and carries out afterwards.

Each names the set it belongs to; decisions of one set are carried out in order, and a failed one stops the
rest of its set only. Must not know: how a decision is carried out.
"""

from __future__ import annotations

from dataclasses import dataclass

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
class WarnVmi:
    """Tell the VMI's tenant, once per change of reason (R12)."""

    set: str
    vmi: ObjectRef
    reason: Reason
    message: str
    at: str


@dataclass(frozen=True, slots=True)
class DeleteClaim:
    """Give back the units of a template claim whose VMI has ended."""

    set: str
    claim: ObjectRef


@dataclass(frozen=True, slots=True)
class KeepClass:
    """Put our finalizer on a class: it must not go while a claim names it (R30)."""

    set: str
    gpu_class: ObjectRef


@dataclass(frozen=True, slots=True)
class LetClassGo:
    """Take our finalizer off a class that is being deleted and that no claim names (R30)."""

    set: str
    gpu_class: ObjectRef


Decision = (
    CreateClaim | BindClaim | PinLauncher | MarkWaiting | WarnVmi | DeleteClaim | KeepClass | LetClassGo
)
