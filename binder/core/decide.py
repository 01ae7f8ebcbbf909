"""From one set to decisions: place and pin it (R10), or keep it waiting with a reason (R12)."""

from __future__ import annotations

from dataclasses import dataclass

from binder.core.catalogue import is_template_claim
from binder.core.launchers import VMI_KIND, Launcher, controller_uid
from binder.core.pin import spec_digest
from binder.core.placement import choose_node
from binder.core.room import book_set, other_request
from binder.core.scene import Scene
from binder.core.sets import ClaimSet, Member, Obstacle, claim_ref
from binder.core.volumes import volume_reach
from model.claims import GPUClaim, Phase
from model.decisions import (
    BindClaim,
    CreateClaim,
    Decision,
    DeleteClaim,
    KeepClass,
    LetClassGo,
    MarkWaiting,
    ObjectRef,
    PinLauncher,
    WarnVmi,
)
from model.instants import rfc3339
from model.kubevirt import VirtualMachineInstance
from model.meta import OwnerReference
from model.names import FINALIZER
from model.reasons import Reason


@dataclass(frozen=True, slots=True)
class Waiting:
    """A set that cannot be placed now, and why; `vmi_uid` is empty for orders."""

    set: str
    reason: Reason
    message: str
    vmi_uid: str = ""


def place_set(claim_set: ClaimSet, scene: Scene) -> tuple[list[Decision], list[Waiting]]:
    """Place the whole set on one node and book it there, or say why it waits."""
    outcome = claim_set.obstacle or _find_node(claim_set, scene)
    creations = [_creation(claim_set, member) for member in claim_set.members if member.claim is None]
    if isinstance(outcome, Obstacle):
        return _wait(claim_set, outcome, creations, scene)
    book_set(scene.room, claim_set, outcome, other_request(claim_set))
    bindings = [_binding(claim_set, member, outcome, scene) for member in claim_set.members]
    pins = [_pin(claim_set, claim_set.launcher, outcome)] if claim_set.launcher else []
    return [*creations, *(binding for binding in bindings if binding), *pins], []


def release_ended(scene: Scene) -> list[Decision]:
    """Template claims of a VMI that has ended, and whose launchers have too, are given back.

    Those of a deleted VMI go with it by garbage collection; this serves VMIs that stay when they have ended.
    """
    vmis = {vmi.metadata.uid: vmi for vmi in scene.state.of(VirtualMachineInstance).values()}
    alive = {one.vmi.metadata.uid for one in scene.launchers.values() if not one.pod.is_terminal}
    released: list[Decision] = []
    for _, claim in sorted(scene.shop.claims.items()):
        vmi = vmis.get(controller_uid(claim.metadata, VMI_KIND))
        if vmi is not None and vmi.is_final and vmi.metadata.uid not in alive and _stays(claim):
            released.append(DeleteClaim(f"{vmi.metadata.namespace}/{vmi.metadata.name}", claim_ref(claim)))
    return released


def keep_classes(scene: Scene) -> list[Decision]:
    """A class stays until the last claim that names it has gone: who would count its units? (R30)."""
    named = {claim.spec.class_name for claim in scene.shop.claims.values()}
    decisions: list[Decision] = []
    for name, gpu_class in sorted(scene.shop.classes.items()):
        ref = ObjectRef("", name, gpu_class.metadata.uid)
        is_kept = FINALIZER in gpu_class.metadata.finalizers
        if gpu_class.metadata.deletion_timestamp is None and not is_kept:
            decisions.append(KeepClass(f"class {name}", ref))
        elif gpu_class.metadata.deletion_timestamp is not None and is_kept and name not in named:
            decisions.append(LetClassGo(f"class {name}", ref))
    return decisions


def _stays(claim: GPUClaim) -> bool:
    return is_template_claim(claim) and claim.metadata.deletion_timestamp is None


def _find_node(claim_set: ClaimSet, scene: Scene) -> str | Obstacle:
    reach = volume_reach(claim_set.launcher, scene.state) if claim_set.launcher else ()
    return reach if isinstance(reach, Obstacle) else choose_node(claim_set, scene.nodes, scene.room, reach)


def _creation(claim_set: ClaimSet, member: Member) -> CreateClaim:
    assert claim_set.launcher is not None
    meta = claim_set.launcher.vmi.metadata
    owner = OwnerReference(
        api_version="kubevirt.io/v1", kind=VMI_KIND, name=meta.name, uid=meta.uid, controller=True
    )
    return CreateClaim(claim_set.key, member.ref, member.gpu_class.metadata.name, member.units, owner)


def _binding(claim_set: ClaimSet, member: Member, node: str, scene: Scene) -> BindClaim | None:
    """The write that makes the member Bound, or None where it already says so."""
    claim = member.claim
    if (
        claim is not None
        and member.node == node
        and _user_uid(claim) == (claim_set.vm.uid if claim_set.vm else "")
    ):
        return None
    generation = claim.metadata.generation if claim else 1
    return BindClaim(claim_set.key, member.ref, node, claim_set.vm, rfc3339(scene.now_ms), generation)


def _user_uid(claim: GPUClaim) -> str:
    return claim.status.vm.uid if claim.status.vm else ""


def _pin(claim_set: ClaimSet, launcher: Launcher, node: str) -> PinLauncher:
    meta = launcher.pod.metadata
    ref = ObjectRef(meta.namespace, meta.name, meta.uid, meta.resource_version)
    wanted = dict.fromkeys(t for member in claim_set.members for t in member.gpu_class.spec.tolerations)
    missing = tuple(t for t in wanted if t not in launcher.pod.spec.tolerations)
    return PinLauncher(claim_set.key, ref, node, spec_digest(launcher.pod.spec), missing)


def _wait(
    claim_set: ClaimSet, obstacle: Obstacle, creations: list[CreateClaim], scene: Scene
) -> tuple[list[Decision], list[Waiting]]:
    now = rfc3339(scene.now_ms)
    marks = [_mark(claim_set, member, obstacle, now) for member in claim_set.members]
    vmi = claim_set.launcher.vmi if claim_set.launcher else None
    uid = vmi.metadata.uid if vmi else ""
    warnings: list[Decision] = []
    if vmi is not None and scene.told.get(uid, _marked_reason(claim_set)) != obstacle.reason:
        ref = ObjectRef(vmi.metadata.namespace, vmi.metadata.name, uid)
        warnings.append(WarnVmi(claim_set.key, ref, obstacle.reason, obstacle.message, now))
    waiting = Waiting(claim_set.key, obstacle.reason, obstacle.message, uid)
    return [*creations, *(mark for mark in marks if mark), *warnings], [waiting]


def _mark(claim_set: ClaimSet, member: Member, obstacle: Obstacle, now: str) -> MarkWaiting | None:
    """The condition to write, or None where the claim already says so, or is held and keeps its place."""
    claim = member.claim
    if claim is None:
        return MarkWaiting(claim_set.key, member.ref, obstacle.reason, obstacle.message, now, generation=1)
    placed = claim.placed_condition
    says_so = placed is not None and (placed.reason, placed.message) == (obstacle.reason, obstacle.message)
    if claim.status.phase is Phase.BOUND or says_so:
        return None
    since = placed.last_transition_time if placed is not None and placed.status == "False" else now
    return MarkWaiting(
        claim_set.key, member.ref, obstacle.reason, obstacle.message, since, claim.metadata.generation
    )


def _marked_reason(claim_set: ClaimSet) -> str:
    """The reason that the set's claims carry: what was told before this process began."""
    conditions = (member.claim.placed_condition for member in claim_set.members if member.claim)
    return next((c.reason for c in conditions if c is not None and c.status == "False"), "")
