"""What a VM's runs were, and what waits for a VM that restarts (R14, R39)."""

from __future__ import annotations

from dataclasses import replace

from binder.core.claims import is_template_claim
from binder.core.keeping import IDLE_ONLY, counts_from_ms, troubles_of
from binder.core.launchers import has_run
from binder.core.relations import SetId, Uid
from binder.core.room import NodeRoom
from binder.core.scene import Hold, Scene
from binder.core.sets import ClaimSet, Stage
from binder.core.state import Key
from model.kubevirt import VirtualMachineInstance
from model.requests import Units
from projections.folds.vm_history import Run

_FORGET_AFTER_MS = 60 * 60 * 1000
"""An ended run says nothing of use after an hour: no hold and no rejection lasts longer."""
_LEAVE_MS = 10 * 1000
"""Claims of a VMI that has gone are collected within a second; ten are enough on a busy cluster."""


def remember_runs(scene: Scene) -> None:
    """Learn from every set that has changed which VMI runs, whether it ran, and what it holds where.

    A world built from nothing has no set that tells of a VM that went with its VMI: memory does.
    """
    changed = {set_id.key for set_id in scene.world.changed if not set_id.is_order}
    if scene.world.is_new:
        changed.update(scene.memory.vms())
    for key in sorted(changed):
        _remember_vm(key, scene)
    for uid, run in scene.memory.ended.items():
        if scene.now_ms - run.ended_ms > max(_FORGET_AFTER_MS, 1000 * scene.policy.restart_hold_s):
            scene.learned[uid] = None
        elif run.held and _is_stopped(run, scene):
            scene.learned[uid] = replace(run, held={})
        elif scene.past_ms(run.ended_ms) != run.ended_ms:
            scene.learned[uid] = replace(run, ended_ms=scene.now_ms)


def hold_for_restarts(scene: Scene) -> None:
    """Keep the units of runs that have ended for the VMs that restart, against every later set (R39).

    Where two runs had the same units, one after the other, the later one has them.
    """
    for uid, run in sorted(_last_runs(scene).items(), key=lambda one: (-one[1].ended_ms, one[0])):
        until_ms = run.ended_ms + 1000 * scene.policy.restart_hold_s
        if scene.now_ms >= until_ms or not _comes_back(run, scene) or not _can_take_back(run, scene):
            continue
        if _is_leaving(uid, run, scene):
            scene.leaving.add((run.namespace, run.vm_uid))
            scene.wake_by(run.ended_ms + _LEAVE_MS)
        units = _still_to_hold(uid, run, scene)
        if units and _is_there(scene.world.room.nodes[run.node], units):
            scene.wake_by(until_ms)
            scene.holds[run.namespace, run.vm_uid] = Hold(run.node, units)
            for resource, amount in units.items():
                scene.world.room.take(run.node, resource, amount)


def release_hold(claim_set: ClaimSet, scene: Scene) -> None:
    """The VM has its place: what was held for it is free."""
    hold = scene.holds.pop(claim_set.user, None)
    if hold is not None:
        for resource, amount in hold.units.items():
            scene.world.room.take(hold.node, resource, -amount)


def has_vmi_run(vmi: VirtualMachineInstance, scene: Scene) -> bool:
    """Whether the VMI was ever Running, as it says itself or as was seen before (R15)."""
    run = scene.run_of(vmi.metadata.uid)
    return has_run(vmi) or (run is not None and run.has_run)


def _remember_vm(key: Key, scene: Scene) -> None:
    links, memory = scene.world.relations, scene.memory
    vmi = links.vmis.get(key)
    live_uid = vmi.metadata.uid if vmi is not None and not vmi.is_final else ""
    for uid in sorted(memory.uids_of(key)):
        run = memory.runs[uid]
        if uid != live_uid and not run.ended_ms:
            has_failed = vmi is not None and vmi.metadata.uid == uid and vmi.status.phase == "Failed"
            ended = replace(run, ended_ms=scene.now_ms, has_failed=has_failed)
            if _is_stopped(run, scene):
                ended = replace(ended, held={})
            scene.learned[uid] = ended
    claim_set = scene.world.sets.get(SetId(is_order=False, key=key))
    if vmi is None or not live_uid or claim_set is None or claim_set.vm is None:
        return
    before = memory.runs.get(live_uid, Run(key[0], claim_set.vm.name, claim_set.vm.uid))
    now = replace(before, ended_ms=0, has_run=has_vmi_run(vmi, scene))
    if claim_set.launcher is not None:
        now = replace(now, launcher=claim_set.launcher.pod.metadata.uid)
    if claim_set.stage is not Stage.ENDING:
        node, held = _template_units(claim_set)
        now = replace(now, node=node, held=held)
    if now != memory.runs.get(live_uid):
        scene.learned[live_uid] = now


def _template_units(claim_set: ClaimSet) -> tuple[str, dict[str, int]]:
    """Where the set's template claims are held, and their units by class."""
    templates = [m for m in claim_set.members if m.claim is not None and is_template_claim(m.claim)]
    nodes = {member.node for member in templates}
    if len(nodes) != 1 or nodes == {""}:
        return "", {}
    held: dict[str, int] = {}
    for member in templates:
        name = member.gpu_class.metadata.name
        held[name] = held.get(name, 0) + member.units
    return nodes.pop(), held


def _last_runs(scene: Scene) -> dict[str, Run]:
    """Of each VM the last run that ended and held something, as memory or this pass knows, by its uid."""
    learned = {uid: run for uid, run in scene.learned.items() if run is not None and run.ended_ms}
    ended = {**scene.memory.ended, **learned}
    last: dict[Uid, tuple[int, str]] = {}
    for uid, run in ended.items():
        if not run.held:
            continue
        vm = (run.namespace, run.vm_uid)
        last[vm] = max(last.get(vm, (0, "")), (run.ended_ms, uid))
    return {uid: ended[uid] for _, uid in last.values()}


def _comes_back(run: Run, scene: Scene) -> bool:
    """Whether the VM restarts, and neither has found its place already nor still has the last one."""
    links = scene.world.relations
    vm = links.vms.get((run.namespace, run.vm_name))
    if vm is None or vm.metadata.uid != run.vm_uid or vm.metadata.deletion_timestamp is not None:
        return False
    vmi = links.vmis.get((run.namespace, run.vm_name))
    has_next = vmi is not None and not vmi.is_final
    launchers = links.launchers_of.get(vmi.metadata.uid, {}).values() if vmi is not None else ()
    if any(not one.pod.is_gated and not one.pod.is_terminal for one in launchers):
        return False
    return vm.spec.strategy == "Always" or has_next or run.has_failed


def _is_stopped(run: Run, scene: Scene) -> bool:
    """Whether its VM was stopped on purpose: then it has given its units back for good."""
    vm = scene.world.relations.vms.get((run.namespace, run.vm_name))
    return vm is not None and vm.metadata.uid == run.vm_uid and vm.spec.strategy in ("Halted", "")


def _can_take_back(run: Run, scene: Scene) -> bool:
    """Whether the node has not refused the VM (R13) and can keep what the run held there (R20)."""
    world = scene.world
    node = world.node(run.node)
    if node is None or run.node in scene.refused_by((run.namespace, run.vm_uid)):
        return False
    classes = [one for name, one in world.relations.classes.items() if name in run.held]
    held: dict[str, int] = {}
    for one in classes:
        resource = one.spec.resource_name
        held[resource] = held.get(resource, 0) + run.held[one.metadata.name]
    serious = [
        one
        for one in troubles_of(node, classes, world.room.nodes[run.node], held)
        if one.kind not in IDLE_ONLY
    ]
    ends = [counts_from_ms(one, scene.since_ms(one.name(run.node)), scene.policy) for one in serious]
    for end_ms in ends:
        scene.wake_by(end_ms)
    return all(scene.now_ms < end_ms for end_ms in ends)


def _is_there(room: NodeRoom, units: Units) -> bool:
    """Whether nobody else has some of it, so that the rest would be of use to nobody.

    What the node itself lacks, e.g. while its device plugin restarts, may come back.
    """
    return all(
        room.free(resource) >= amount or room.allocatable.get(resource, 0) < amount
        for resource, amount in units.items()
    )


def _is_leaving(uid: str, run: Run, scene: Scene) -> bool:
    """Whether claims of the run still hold its units, which the next one is to have a moment later."""
    own = scene.world.relations.template_claims.get((run.namespace, uid), {}).values()
    return scene.now_ms < run.ended_ms + _LEAVE_MS and any(claim.bound_node == run.node for claim in own)


def _still_to_hold(uid: str, run: Run, scene: Scene) -> Units:
    """By resource: what it held, less what claims of its own or of the next run hold already."""
    links = scene.world.relations
    claim_set = scene.world.sets.get(SetId(is_order=False, key=(run.namespace, run.vm_name)))
    next_vmi = claim_set.vmi if claim_set is not None and _template_units(claim_set)[1] else None
    if next_vmi is not None and next_vmi.metadata.uid != uid:
        return {}
    own = links.template_claims.get((run.namespace, uid), {}).values()
    bound = {claim.spec.class_name: 0 for claim in own}
    for claim in own:
        if claim.bound_node == run.node:
            bound[claim.spec.class_name] += claim.spec.units
    units: dict[str, int] = {}
    for name, amount in run.held.items():
        gpu_class = links.classes.get(name)
        left = amount - bound.get(name, 0)
        if gpu_class is not None and left > 0:
            resource = gpu_class.spec.resource_name
            units[resource] = units.get(resource, 0) + left
    return units
