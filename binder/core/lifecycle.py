"""Step 0: what is in use stays, what has ended gives its units back (R30)."""

from __future__ import annotations

from binder.core.claims import claim_ref, is_template_claim, key_of, user_uid
from binder.core.launchers import VMI_KIND, controller_of, controller_uid
from binder.core.scene import Scene
from binder.core.world import Queue
from binder.core.writing import pod_ref
from model.claims import GPUClaim, GPUClass
from model.decisions import DeleteClaim, Keep, Kept, LetGo, ObjectRef, UngateLauncher
from model.kubevirt import VirtualMachineInstance
from model.names import FINALIZER

LEFT_S = 60
"""Garbage collection takes the claims of a VMI that has gone within a second, or has missed that it went."""


def keep_classes(scene: Scene) -> None:
    """A class stays until the last claim that names it has gone: who would count its units (R30)."""
    for (_, name), gpu_class in sorted(scene.world.state.of(GPUClass).items()):
        meta = gpu_class.metadata
        ref, is_kept = ObjectRef("", name, meta.uid), FINALIZER in meta.finalizers
        if meta.deletion_timestamp is None and not is_kept:
            scene.decisions.append(Keep(f"class {name}", Kept.CLASS, ref))
        elif meta.deletion_timestamp is not None and is_kept and name not in scene.world.claimed:
            scene.decisions.append(LetGo(f"class {name}", Kept.CLASS, ref))


def keep_claims(scene: Scene) -> None:
    """A claim stays until the launcher of its VMI has ended."""
    world = scene.world
    for key in sorted(world.unkept):
        claim = world.relations.claims[key]
        scene.decisions.append(Keep(f"claim {'/'.join(key)}", Kept.CLAIM, claim_ref(claim)))
    for key in sorted(world.leaving):
        claim = world.relations.claims[key]
        if not _is_in_use(claim, scene):
            scene.decisions.append(LetGo(f"claim {'/'.join(key)}", Kept.CLAIM, claim_ref(claim)))


def release_ended(scene: Scene) -> None:
    """Template claims of a VMI that has ended, and whose launchers have too, are given back.

    Those of a deleted VMI go with it by garbage collection; this serves VMIs that stay when they have ended.
    """
    for _, claim_set in sorted(scene.world.queues[Queue.ENDED].items()):
        for member in claim_set.members:
            if member.claim is None or not is_template_claim(member.claim):
                continue
            scene.settled.add(claim_set.key)  # nothing is placed with claims that are on their way out
            if member.claim.metadata.deletion_timestamp is None:
                scene.decisions.append(DeleteClaim(claim_set.key, member.ref))


def collect_left(scene: Scene) -> None:
    """Template claims of a VMI that has been gone for a minute: nobody else will delete them."""
    links, unreadable = scene.world.relations, _unreadable_vmis(scene)
    for namespace, uid in sorted(links.left):
        owned = sorted(links.template_claims[namespace, uid].items())
        staying = [(key, claim) for key, claim in owned if claim.metadata.deletion_timestamp is None]
        if not staying or uid in unreadable:
            continue
        until_ms = scene.since_ms(f"VMI {namespace}/{uid} gone") + 1000 * LEFT_S
        if scene.now_ms < until_ms:
            scene.wake_by(until_ms)
            continue
        for key, claim in staying:
            owner = controller_of(claim.metadata, VMI_KIND)
            assert owner is not None
            gone = ObjectRef(namespace, owner.name, uid)
            scene.decisions.append(DeleteClaim(f"claim {'/'.join(key)}", claim_ref(claim), gone))


def open_gates(scene: Scene) -> None:
    """Switched off: every gate goes without a pin, nothing is placed, moved or lost."""
    for _, claim_set in sorted(scene.world.queues[Queue.GATED].items()):
        if claim_set.launcher is not None:
            scene.decisions.append(UngateLauncher(claim_set.key, pod_ref(claim_set.launcher)))
    for _, target in sorted(scene.world.relations.targets.items()):
        if target.is_placeable:
            meta = target.pod.metadata
            scene.decisions.append(UngateLauncher(f"{meta.namespace}/{meta.name}", pod_ref(target)))


def _unreadable_vmis(scene: Scene) -> set[str]:
    """Uids of VMIs that are there and cannot be read."""
    shelf = scene.world.state.shelves[VirtualMachineInstance.__name__]
    return {shelf.uids[key] for key in shelf.unreadable}


def _is_in_use(claim: GPUClaim, scene: Scene) -> bool:
    links = scene.world.relations
    namespace, uids = key_of(claim)[0], [controller_uid(claim.metadata, VMI_KIND)]
    if not is_template_claim(claim):
        vmis = (links.vmis.get(key) for key in links.users.get((namespace, user_uid(claim)), ()))
        uids = [vmi.metadata.uid for vmi in vmis if vmi is not None]
    of_vmis = (one.pod for uid in uids for one in links.launchers_of.get(uid, {}).values())
    launchers = [pod for pod in of_vmis if pod.metadata.namespace == namespace]
    is_held = bool(
        claim.bound_node
    )  # else nothing was pinned for it: the launcher waits, and need not for ever
    return any(not pod.is_terminal and (is_held or not pod.is_gated) for pod in launchers)
