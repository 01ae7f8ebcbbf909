"""Step 1: refused launchers are noticed, remembered and deleted (R13, R14, R15)."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from binder.core.forming import empty_set
from binder.core.launchers import (
    VMI_KIND,
    Launcher,
    controller_uid,
    is_unschedulable,
    pinned_node,
    refused_by_kubelet,
    vm_of,
)
from binder.core.restarts import has_vmi_run
from binder.core.scene import Scene
from binder.core.sets import ClaimSet
from binder.core.volumes import claim_names
from binder.core.writing import pod_ref, pod_whereabouts
from model.decisions import DeletePod
from model.nodes import Node
from model.pods import Pod
from model.reasons import Reason
from model.storage import PersistentVolumeClaim
from projections.folds import rejections
from projections.folds.memory import Lesson
from projections.folds.rejections import Rejection
from projections.folds.vm_history import Run

RESTARTED_AFTER_POD_DELETION = ("Always", "RerunOnFailure")
"""Run strategies under which a VM comes back when its launcher is deleted (facts: what restarts a VM)."""


def recall_rejections(scene: Scene) -> None:
    """Which nodes are left alone for which VM; what is over is forgotten."""
    for name_of_vm, by_node in sorted(scene.memory.rejections.items()):
        latest_ms = scene.now_ms + 1000 * scene.policy.rejection_s
        told = {name: replace(one, until_ms=min(one.until_ms, latest_ms)) for name, one in by_node.items()}
        valid = {name: one for name, one in told.items() if _is_valid(name, one, scene)}
        if valid != by_node:
            scene.lessons.append(Lesson(rejections.NAME, name_of_vm, valid or None))
        if valid:
            scene.rejections[name_of_vm] = valid
            scene.wake_by(min(one.until_ms for one in valid.values()))


def notice_refusals(scene: Scene) -> None:
    """Each launcher that its pin has refused: the node is remembered for its VM, then the pod is deleted."""
    world = scene.world
    for pod in world.fallen:
        _notice_fallen(pod, scene)
    for _, launcher in sorted(world.relations.suspects.items()):
        if has_vmi_run(launcher.vmi, scene):
            continue  # R15
        refusal = refusal_of(launcher.pod)
        if refusal:
            _remember(launcher.pod, _run_of(launcher, scene), refusal, scene)
            _delete(launcher, refusal, scene)
        elif not launcher.pod.is_terminal:
            _notice_unschedulable(_set_of(launcher, scene), launcher, scene)


def look_of(node: Node) -> str:
    """What ends a rejection when it changes: allocatable, taints, readiness (R13)."""
    taints = sorted((t.key, t.value, t.effect) for t in node.spec.taints)
    seen = (sorted(node.status.allocatable.items()), taints, node.is_ready)
    return hashlib.sha256(repr(seen).encode()).hexdigest()[:16]


def refusal_of(pod: Pod) -> str:
    """R13 (i): why its pin is one that refused it; empty if it is none."""
    pin = pinned_node(pod)
    if not pin or pod.spec.node_name != pin or not refused_by_kubelet(pod):
        return ""
    return f"{pin} refused the launcher: {pod.status.reason}"


def _notice_fallen(pod: Pod, scene: Scene) -> None:
    """A pod that was a launcher, as memory knows: the reference alone proves nothing (R28).

    At its end a VMI lists no pods, and it may be gone before what became of its launcher is known.
    """
    run, refusal = scene.run_of(controller_uid(pod.metadata, VMI_KIND)), refusal_of(pod)
    if run is None or not refusal or run.launcher != pod.metadata.uid or run.has_run:
        return
    if not run.ended_ms or scene.now_ms - run.ended_ms < 1000 * scene.policy.rejection_s:
        _remember(pod, run, refusal, scene)


def _set_of(launcher: Launcher, scene: Scene) -> ClaimSet:
    """Its VM's set, as far as it matters here: whatever became of its claims."""
    return empty_set((launcher.vmi.metadata.namespace, launcher.vmi.metadata.name), scene.world.relations)


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
    _remember(launcher.pod, _run_of(launcher, scene), why, scene)
    if claim_set.run_strategy in RESTARTED_AFTER_POD_DELETION:
        _delete(launcher, why, scene)
    else:
        help_ = f"restart the VM within {scene.policy.rejection_s} s to have it placed elsewhere"
        scene.tell(claim_set, Reason.NODES_REFUSED, f"{why}; {help_}")


def _run_of(launcher: Launcher, scene: Scene) -> Run:
    """What is known of the launcher's VMI; one that is seen for the first time may have ended already."""
    vmi = launcher.vmi
    vm = vm_of(vmi, scene.world.relations.vms)
    new = Run(vmi.metadata.namespace, vm.name, vm.uid, ended_ms=scene.now_ms if vmi.is_final else 0)
    return scene.run_of(vmi.metadata.uid) or new


def _remember(pod: Pod, run: Run, why: str, scene: Scene) -> None:
    """Once for each pod: one that lingers does not renew it."""
    name = pinned_node(pod)
    node = scene.world.node(name)
    if node is None or run.refused == pod.metadata.uid:
        return
    vmi_uid = controller_uid(pod.metadata, VMI_KIND)
    scene.learned[vmi_uid] = replace(run, refused=pod.metadata.uid)
    name_of_vm = f"{run.namespace}/{run.vm_uid}"
    until_ms = scene.now_ms + 1000 * scene.policy.rejection_s
    rejected = Rejection(node.metadata.uid, look_of(node), until_ms, why, pod.metadata.uid)
    by_node = scene.rejections[name_of_vm] = {**scene.rejections.get(name_of_vm, {}), name: rejected}
    scene.lessons.append(Lesson(rejections.NAME, name_of_vm, dict(sorted(by_node.items()))))
    scene.wake_by(until_ms)


def _delete(launcher: Launcher, why: str, scene: Scene) -> None:
    meta = launcher.pod.metadata
    if meta.deletion_timestamp is None:
        key = f"{meta.namespace}/{launcher.vmi.metadata.name}"
        scene.decisions.append(DeletePod(key, pod_ref(launcher), pod_whereabouts(launcher), why))


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
