"""Step 1: refused launchers are noticed, remembered and deleted (R13, R14, R15)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from binder.core.launchers import Launcher, is_unschedulable, pinned_node, refused_by_kubelet, vm_of
from binder.core.relations import SetId
from binder.core.restarts import has_vmi_run
from binder.core.scene import Scene
from binder.core.sets import ClaimSet
from binder.core.volumes import claim_names
from binder.core.writing import pod_ref, pod_whereabouts
from model.decisions import DeletePod
from model.nodes import Node
from model.reasons import Reason
from model.storage import PersistentVolumeClaim
from projections.folds import rejections
from projections.folds.memory import Lesson
from projections.folds.rejections import Rejection

RESTARTED_AFTER_POD_DELETION = ("Always", "RerunOnFailure")
"""Run strategies under which a VM comes back when its launcher is deleted (facts: what restarts a VM)."""


def recall_rejections(scene: Scene) -> None:
    """Which nodes are left alone for which VM; what is over is forgotten."""
    for name_of_vm, by_node in sorted(scene.memory.rejections.items()):
        latest_ms = scene.now_ms + 1000 * scene.policy.rejection_s
        told = {name: replace(one, until_ms=min(one.until_ms, latest_ms)) for name, one in by_node.items()}
        valid = {name: one for name, one in sorted(told.items()) if _is_valid(name, one, scene)}
        if valid != by_node:
            scene.lessons.append(Lesson(rejections.NAME, name_of_vm, valid or None))
        if valid:
            namespace, _, vm_uid = name_of_vm.partition("/")
            scene.refused[namespace, vm_uid] = frozenset(valid)
            scene.wake_by(min(one.until_ms for one in valid.values()))


def notice_refusals(scene: Scene) -> None:
    """Each launcher that its pin has refused: the node is remembered for its VM, then the pod is deleted."""
    world = scene.world
    for launcher in world.fallen:
        _notice_kubelet(launcher, scene)
    for _, launcher in sorted(world.relations.suspects.items()):
        refusal = _notice_kubelet(launcher, scene)
        if refusal:
            _delete(launcher, refusal, scene)
        elif not launcher.pod.is_terminal and not has_vmi_run(launcher.vmi, scene):
            _notice_unschedulable(_set_of(launcher, scene), launcher, scene)


def look_of(node: Node) -> str:
    """What ends a rejection when it changes: allocatable, taints, readiness (R13)."""
    taints = sorted((t.key, t.value, t.effect) for t in node.spec.taints)
    seen = (sorted(node.status.allocatable.items()), taints, node.is_ready)
    return hashlib.sha256(repr(seen).encode()).hexdigest()[:16]


def _notice_kubelet(launcher: Launcher, scene: Scene) -> str:
    """R13 (i): remember it, and return why; empty if it is none. One that had run tells nothing (R15)."""
    pin = pinned_node(launcher.pod)
    if not pin or launcher.pod.spec.node_name != pin or not refused_by_kubelet(launcher.pod):
        return ""
    if has_vmi_run(launcher.vmi, scene):
        return ""
    why = f"{pin} refused the launcher: {launcher.pod.status.reason}"
    _remember(launcher, pin, why, scene)
    return why


def _set_of(launcher: Launcher, scene: Scene) -> ClaimSet:
    """Its VM's set; one without members where its claims have gone already."""
    meta = launcher.vmi.metadata
    found = scene.world.sets.get(SetId(is_order=False, key=(meta.namespace, meta.name)))
    return found or ClaimSet(f"{meta.namespace}/{meta.name}", (), vmi=launcher.vmi, launcher=launcher)


def _notice_unschedulable(claim_set: ClaimSet, launcher: Launcher, scene: Scene) -> None:
    """R13 (ii): only what a VM survives is deleted; others are told."""
    pin = pinned_node(launcher.pod)
    if not pin or not is_unschedulable(launcher.pod) or _is_volume_being_bound(launcher, scene):
        return
    since_ms = scene.since_ms(f"pod {launcher.pod.metadata.uid} unschedulable")
    until_ms = since_ms + 1000 * scene.policy.unschedulable_after_s
    if scene.now_ms < until_ms:
        scene.wake_by(until_ms)
        return
    why = f"the scheduler cannot place the launcher on {pin}, where its GPUs are held"
    why += f"; {claim_set.caution}" if claim_set.caution else ""
    _remember(launcher, pin, why, scene)
    if claim_set.run_strategy in RESTARTED_AFTER_POD_DELETION:
        _delete(launcher, why, scene)
    else:
        help_ = f"restart the VM within {scene.policy.rejection_s} s to have it placed elsewhere"
        scene.tell(claim_set, Reason.NODES_REFUSED, f"{why}; {help_}")


def _remember(launcher: Launcher, name: str, why: str, scene: Scene) -> None:
    node = scene.world.node(name)
    namespace, vm = launcher.vmi.metadata.namespace, vm_of(launcher.vmi, scene.world.relations.vms)
    user, name_of_vm = (namespace, vm.uid), f"{namespace}/{vm.uid}"
    if node is not None and not _was_noticed(launcher, scene):
        until_ms = scene.now_ms + 1000 * scene.policy.rejection_s
        known: Mapping[str, Rejection] = scene.memory.rejections.get(name_of_vm, {})
        kept = {n: one for n, one in known.items() if n in scene.refused.get(user, ())}
        rejected = Rejection(node.metadata.uid, look_of(node), until_ms, why, launcher.pod.metadata.uid)
        scene.lessons.append(
            Lesson(rejections.NAME, name_of_vm, dict(sorted({**kept, name: rejected}.items())))
        )
        scene.refused[user] = scene.refused.get(user, frozenset()) | {name}
        scene.wake_by(until_ms)


def _delete(launcher: Launcher, why: str, scene: Scene) -> None:
    meta = launcher.pod.metadata
    if meta.deletion_timestamp is None:
        key = f"{meta.namespace}/{launcher.vmi.metadata.name}"
        scene.decisions.append(DeletePod(key, pod_ref(launcher), pod_whereabouts(launcher), why))


def _was_noticed(launcher: Launcher, scene: Scene) -> bool:
    """Whether this very pod's refusal was noticed before: a pod that lingers does not renew it."""
    refusal = f"pod {launcher.pod.metadata.uid} refused"
    scene.since_ms(refusal)
    return refusal in scene.memory.troubles


def _is_valid(name: str, one: Rejection, scene: Scene) -> bool:
    node = scene.world.node(name)
    return (
        scene.now_ms < one.until_ms
        and node is not None
        and node.metadata.uid == one.node_uid
        and look_of(node) == one.look
    )


def _is_volume_being_bound(launcher: Launcher, scene: Scene) -> bool:
    """Whether a volume of it has still to be bound: the scheduler waits for that, not for room."""
    volumes = scene.world.state.of(PersistentVolumeClaim)
    namespace = launcher.pod.metadata.namespace
    found = (volumes.get((namespace, name)) for name in claim_names(launcher))
    return any(claim is not None and not claim.spec.volume_name for claim in found)
