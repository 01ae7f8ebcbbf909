"""The decisions that place, lose or leave a set: plain values, in the order of writing (R10)."""

from __future__ import annotations

from binder.core.claims import user_uid
from binder.core.launchers import VMI_KIND, Launcher
from binder.core.pin import spec_digest
from binder.core.sets import ClaimSet, Member, Obstacle
from model.claims import GPUClaim, Phase
from model.decisions import (
    BindClaim,
    CreateClaim,
    Decision,
    LoseClaim,
    MarkWaiting,
    ObjectRef,
    PinLauncher,
)
from model.instants import rfc3339
from model.meta import OwnerReference
from model.reasons import Reason


def placement(claim_set: ClaimSet, node: str, now_ms: int) -> list[Decision]:
    """R10: the claims are written Bound, then a gated launcher is pinned, tolerates and is ungated."""
    bindings = [_binding(claim_set, member, node, now_ms) for member in claim_set.members]
    pins = [pin(claim_set, claim_set.launcher, node)] if claim_set.launcher and _is_gated(claim_set) else []
    return [*creations(claim_set), *(binding for binding in bindings if binding), *pins]


def creations(claim_set: ClaimSet) -> list[Decision]:
    """The template claims that do not exist yet (R7)."""
    return [_creation(claim_set, member) for member in claim_set.members if member.claim is None]


def losses(claim_set: ClaimSet, why: str, now_ms: int) -> list[Decision]:
    """R22: every member that is held becomes Lost; those that are Lost already stay as they are."""
    at = rfc3339(now_ms)
    return [
        LoseClaim(
            claim_set.key, member.ref, member.node, at, claim_set.vm, why, member.claim.metadata.generation
        )
        for member in claim_set.members
        if member.claim is not None and member.node
    ]


def marks(claim_set: ClaimSet, obstacle: Obstacle, now_ms: int) -> list[Decision]:
    """R12: the condition on each claim that waits; one that is held or Lost keeps its own."""
    now, reason, message = rfc3339(now_ms), obstacle.reason, obstacle.message
    new = [member.ref for member in claim_set.members if member.claim is None]
    if reason is Reason.BUDGET_EXCEEDED:
        new = []  # none is created: it would count against others
    found: list[Decision] = [
        MarkWaiting(claim_set.key, ref, reason, message, now, generation=1) for ref in new
    ]
    waiting = [(member.ref, member.claim) for member in claim_set.members if member.claim is not None]
    for ref, claim in (*waiting, *((_ref(one), one) for one in claim_set.unsold)):
        placed = claim.placed_condition
        says_so = placed is not None and (placed.reason, placed.message) == (reason, message)
        if claim.status.phase is not Phase.PENDING or says_so:
            continue
        since = placed.last_transition_time if placed is not None and placed.status == "False" else now
        found.append(MarkWaiting(claim_set.key, ref, reason, message, since, claim.metadata.generation))
    return found


def marked_reason(claim_set: ClaimSet) -> str:
    """The reason that the set's claims carry."""
    for member in claim_set.members:
        placed = member.claim.placed_condition if member.claim else None
        if placed is not None and placed.status == "False":
            return placed.reason
    return ""


def pod_ref(launcher: Launcher) -> ObjectRef:
    """The version of the launcher that the pass has seen."""
    meta = launcher.pod.metadata
    return ObjectRef(meta.namespace, meta.name, meta.uid, meta.resource_version)


def whereabouts(phase: str, node: str) -> str:
    """What must be as it was when something is deleted for it."""
    return f"{phase} on {node}" if node else f"{phase} on no node"


def pod_whereabouts(launcher: Launcher) -> str:
    """Of the launcher."""
    return whereabouts(launcher.pod.status.phase, launcher.pod.spec.node_name)


def vmi_whereabouts(launcher: Launcher) -> str:
    """Of its VMI."""
    return whereabouts(launcher.vmi.status.phase, launcher.vmi.status.node_name)


def vmi_ref(launcher: Launcher) -> ObjectRef:
    """The version of its VMI that the pass has seen."""
    meta = launcher.vmi.metadata
    return ObjectRef(meta.namespace, meta.name, meta.uid, meta.resource_version)


def _is_gated(claim_set: ClaimSet) -> bool:
    return claim_set.launcher is not None and claim_set.launcher.is_placeable


def _creation(claim_set: ClaimSet, member: Member) -> CreateClaim:
    assert claim_set.vmi is not None
    meta = claim_set.vmi.metadata
    owner = OwnerReference(
        api_version="kubevirt.io/v1", kind=VMI_KIND, name=meta.name, uid=meta.uid, controller=True
    )
    return CreateClaim(claim_set.key, member.ref, member.gpu_class.metadata.name, member.units, owner)


def _binding(claim_set: ClaimSet, member: Member, node: str, now_ms: int) -> BindClaim | None:
    """The write that makes the member Bound, or None where it already says so."""
    claim = member.claim
    user = claim_set.vm.uid if claim_set.vm else ""
    if claim is not None and member.node == node and user_uid(claim) == user:
        return None
    generation = claim.metadata.generation if claim else 1
    since = claim.status.bound_at if claim is not None and member.node == node else None
    at, vm = since or rfc3339(now_ms), claim_set.vm
    return BindClaim(claim_set.key, member.ref, node, vm, at, generation, claim_set.caution)


def pin(claim_set: ClaimSet, launcher: Launcher, node: str) -> PinLauncher:
    """Tie the launcher to the node, with the tolerations of its classes (R10)."""
    wanted = dict.fromkeys(t for one in claim_set.shape.constraints.classes for t in one.spec.tolerations)
    missing = tuple(t for t in wanted if t not in launcher.pod.spec.tolerations)
    return PinLauncher(claim_set.key, pod_ref(launcher), node, spec_digest(launcher.pod.spec), missing)


def _ref(claim: GPUClaim) -> ObjectRef:
    meta = claim.metadata
    return ObjectRef(meta.namespace, meta.name, meta.uid, meta.resource_version)
