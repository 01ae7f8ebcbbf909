"""How sets are formed: which orders serve a VM, and what its launcher asks for beyond them (R7, R16, R18).

Orders that the VMI's annotation names come first; what the launcher asks for beyond them becomes one template
claim per resource. A gated set that cannot be formed has a reason instead of members that could be placed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace

from binder.core.claims import MAX_NAMED, claim_ref, is_template_claim, names_too_many, orders_named_by
from binder.core.foreign import caution
from binder.core.launchers import (
    VMI_KIND,
    Launcher,
    affinity_before_pin,
    controller_uid,
    has_run,
    vm_of,
)
from binder.core.relations import Relations
from binder.core.room import PODS
from binder.core.sets import ClaimSet, Constraints, Member, Obstacle, Shape, Stage, units_of
from binder.core.state import Key
from model.claims import MAX_UNITS, GPUClaim, GPUClass
from model.decisions import ObjectRef, VmRef
from model.kubevirt import VirtualMachine, VirtualMachineInstance
from model.names import ANNOTATION_CLASS
from model.pods import Pod
from model.reasons import Reason

_MAX_NAME = 253
"""The longest name of a Kubernetes object (RFC 1123 subdomain)."""
_MAX_NAMED = 5
"""Classes that a message lists."""

Found = tuple[tuple[Member, ...], Obstacle | None]
"""Members, and what is in the way of the rest."""


def vm_set(key: Key, world: Relations) -> ClaimSet | None:
    """The set of the VM, or of the VMI without one, of that key; None if it has no part here."""
    if key not in world.vmis and key not in world.vms:
        return None
    whole = empty_set(key, world)
    if whole.stage is Stage.GATED:
        return _measured(_gated(whole, key, world), world)
    members = (*_served_orders(whole, key, world), *_template_members(whole.vmi, world))
    if members:
        return _measured(replace(whole, members=members), world)
    unsold = tuple(_unsold_orders(whole, key, world))
    obstacle = _class_not_found(unsold[0].spec.class_name) if unsold else None
    return replace(whole, unsold=unsold, obstacle=obstacle) if unsold else None


def empty_set(key: Key, world: Relations) -> ClaimSet:
    """The VM, its VMI and the launcher of that key, and no claims of theirs."""
    vmi, vm = world.vmis.get(key), world.vms.get(key)
    launcher = _current(world.launchers_of.get(vmi.metadata.uid, {}).values()) if vmi else None
    user = VmRef(key[1], vm.metadata.uid) if vm else None
    if vmi is not None and not (vmi.is_final and vm is not None):  # one that has ended speaks for no VM
        user = vm_of(vmi, world.vms)
    run_strategy = vm.spec.strategy if vm is not None and _is_run_of(vm, user) else ""
    whole = ClaimSet("/".join(key), (), _stage(vmi, launcher), user, vmi, launcher, run_strategy)
    return replace(whole, caution=caution(launcher.pod)) if launcher is not None else whole


def order_set(key: Key, world: Relations) -> ClaimSet | None:
    """The set of an order that no VM has in its own; None if one has, or if it is going away."""
    claim = world.claims.get(key)
    if claim is None or is_template_claim(claim) or claim.metadata.deletion_timestamp is not None:
        return None
    if world.is_named_by_user(claim):
        return None
    alone = ClaimSet(order_set_key(key), (), vm=world.holder_of(claim))
    gpu_class = world.classes.get(claim.spec.class_name)
    if gpu_class is None:
        return replace(alone, unsold=(claim,), obstacle=_class_not_found(claim.spec.class_name))
    return _measured(replace(alone, members=(_member(claim, gpu_class),)), world)


def order_set_key(key: Key) -> str:
    """Unlike that of a VM of the same name: the two are two sets."""
    return f"{key[0]}/{key[1]} (order)"


def shape_of(
    classes: tuple[GPUClass, ...], needs: Mapping[str, int], pod: Pod | None, world: Relations
) -> Shape:
    """What is wanted of a node: by the classes, and by the launcher as it was before our pin."""
    if pod is None:
        return Shape(Constraints(classes), needs)
    request = world.request_of(pod)
    other = {PODS: 1} | {r: n for r, n in sorted(request.items()) if r not in needs}
    selector = tuple(sorted(pod.spec.node_selector.items()))
    return Shape(Constraints(classes, selector, affinity_before_pin(pod)), needs, other)


def template_claim_name(vmi: VirtualMachineInstance, class_name: str) -> str:
    """`<vmi>-<class>-<first 8 of the VMI's uid>` (R7); what is too long is cut and told apart by a digest."""
    tail = f"-{vmi.metadata.uid[:8]}"
    stem = f"{vmi.metadata.name}-{class_name}"
    if len(stem) + len(tail) > _MAX_NAME:
        digest = hashlib.sha256(stem.encode()).hexdigest()[:8]
        stem = f"{stem[: _MAX_NAME - len(tail) - len(digest) - 1].rstrip('-.')}-{digest}"
    return stem + tail


def _current(launchers: Iterable[Launcher]) -> Launcher | None:
    """The one that waits for a node, else the one on its VMI's node, else the newest.

    A temporary launcher (`kubevirt.io/ephemeral-provisioning`) and the real one may overlap, and so may the
    two of a migration.
    """
    alive = [one for one in launchers if not one.pod.is_terminal]
    return max(alive, key=_standing, default=None)


def _standing(one: Launcher) -> tuple[bool, bool, str, str]:
    meta, node = one.pod.metadata, one.pod.spec.node_name
    is_there = node != "" and node == one.vmi.status.node_name
    return (one.is_placeable, is_there, meta.creation_timestamp, meta.name)


def _stage(vmi: VirtualMachineInstance | None, launcher: Launcher | None) -> Stage:
    if vmi is None or (vmi.is_final and launcher is None):
        return Stage.IDLE
    if launcher is not None and launcher.is_placeable:
        return Stage.GATED
    is_dying = vmi.is_final or vmi.metadata.deletion_timestamp is not None
    if is_dying or (launcher is not None and launcher.pod.metadata.deletion_timestamp is not None):
        return Stage.ENDING
    if launcher is None:
        return Stage.COMING
    return Stage.RUNNING if has_run(vmi) else Stage.STARTING


def _is_run_of(vm: VirtualMachine | None, user: VmRef | None) -> bool:
    return vm is not None and user is not None and vm.metadata.uid == user.uid


def _measured(whole: ClaimSet, world: Relations) -> ClaimSet:
    classes = {member.gpu_class.metadata.name: member.gpu_class for member in whole.members}
    pod = whole.launcher.pod if whole.launcher else None
    nodes = tuple(sorted({member.node for member in whole.members if member.node}))
    shape = shape_of(tuple(one for _, one in sorted(classes.items())), units_of(whole.members), pod, world)
    return replace(whole, shape=world.shapes.setdefault(shape, shape), nodes=nodes)


def _gated(whole: ClaimSet, key: Key, world: Relations) -> ClaimSet:
    """The set of a gated launcher (R7)."""
    assert whole.launcher is not None
    asked = world.request_of(whole.launcher.pod)
    missing = {resource: n for resource, n in asked.items() if resource in world.sold}
    names = orders_named_by(whole.launcher.vmi.metadata)
    if not missing and not names:
        text = "no GPUClass sells what the VM asks for"
        return replace(whole, obstacle=Obstacle(Reason.CLASS_NOT_FOUND, text))
    orders, obstacle = _take_orders(whole, names, missing, world)
    if obstacle is not None:  # what it has is its set all the same, for a node that cannot keep it (R20)
        members = (*_served_orders(whole, key, world), *_template_members(whole.vmi, world))
        unsold = tuple(_unsold_orders(whole, key, world))
        return replace(whole, members=members, unsold=unsold, obstacle=obstacle)
    with_orders = replace(whole, members=orders)
    return _with_template_claims(with_orders, missing, world)


def _take_orders(whole: ClaimSet, names: Iterable[str], missing: dict[str, int], world: Relations) -> Found:
    """Take the named orders and lower `missing` by what they cover."""
    if whole.vmi is not None and names_too_many(whole.vmi.metadata):
        text = f"the VM names more than {MAX_NAMED} orders: no node has so many units"
        return (), Obstacle(Reason.TOO_LARGE, text)
    namespace = whole.user[0]
    members: list[Member] = []
    for name in names:
        claim = world.claims.get((namespace, name))
        if claim is None or is_template_claim(claim) or claim.metadata.deletion_timestamp is not None:
            text = f"order {namespace}/{name}, named by the VM, {_why_no_order(claim)}"
            return tuple(members), Obstacle(Reason.CLAIM_NOT_FOUND, text)
        holder = world.holder_of(claim)
        if holder is not None and whole.vm is not None and holder.uid != whole.vm.uid:
            text = f"order {namespace}/{name} is in use by VM {holder.name}"
            return tuple(members), Obstacle(Reason.CLAIM_IN_USE, text)
        gpu_class = world.classes.get(claim.spec.class_name)
        if gpu_class is None:
            return tuple(members), _class_not_found(claim.spec.class_name)
        members.append(_member(claim, gpu_class))
        _cover(missing, gpu_class.spec.resource_name, claim.spec.units)
    return tuple(members), None


def _with_template_claims(whole: ClaimSet, missing: dict[str, int], world: Relations) -> ClaimSet:
    """One template claim per resource still missing: those that exist, then new ones."""
    assert whole.vmi is not None
    vmi, found = whole.vmi, tuple(_template_members(whole.vmi, world))
    whole = replace(whole, members=(*whole.members, *found))
    for member in found:
        _cover(missing, member.resource, member.units)
    for resource, units in sorted(missing.items()):
        choice = _class_for(resource, vmi, world)
        if isinstance(choice, Obstacle):
            return replace(whole, obstacle=choice)
        ref = ObjectRef(vmi.metadata.namespace, template_claim_name(vmi, choice.metadata.name))
        if units > MAX_UNITS:
            text = f"the VM asks for {units} of {resource}: a claim is of {MAX_UNITS} units at most"
            return replace(whole, obstacle=Obstacle(Reason.TOO_LARGE, text))
        there = world.claims.get((ref.namespace, ref.name))
        if there is not None:
            text = f"claim {ref} {_why_taken(there, vmi, units)}"
            taken = Obstacle(Reason.NAME_TAKEN, text)
            return replace(whole, obstacle=taken, taken=(ref.namespace, ref.name))
        whole = replace(whole, members=(*whole.members, Member(ref, choice, units)))
    return whole


def _why_no_order(claim: GPUClaim | None) -> str:
    if claim is None:
        return "does not exist"
    return "is no order but the claim of a VM's run" if is_template_claim(claim) else "is going away"


def _why_taken(claim: GPUClaim, vmi: VirtualMachineInstance, missing: int) -> str:
    if controller_uid(claim.metadata, VMI_KIND) != vmi.metadata.uid:
        return "exists and is not this VMI's; delete or rename it"
    if claim.metadata.deletion_timestamp is not None:
        return "is being deleted"
    lack = f"has {claim.spec.units} units, {missing} fewer than the VM asks for"
    return f"{lack}; restart the VM to have one made that fits"


def _served_orders(whole: ClaimSet, key: Key, world: Relations) -> Iterable[Member]:
    """The orders that the VM names and that serve it."""
    for claim in _orders_of(whole, key, world):
        gpu_class = world.classes.get(claim.spec.class_name)
        if gpu_class is not None:
            yield _member(claim, gpu_class)


def _unsold_orders(whole: ClaimSet, key: Key, world: Relations) -> Iterable[GPUClaim]:
    """Those of them whose class does not exist."""
    return (one for one in _orders_of(whole, key, world) if one.spec.class_name not in world.classes)


def _orders_of(whole: ClaimSet, key: Key, world: Relations) -> Iterable[GPUClaim]:
    for name in world.names_of(key):
        claim = world.claims.get((key[0], name))
        if claim is None or is_template_claim(claim) or whole.vm is None:
            continue
        holder = world.holder_of(claim)
        if holder is not None and holder.uid == whole.vm.uid:
            yield claim


def _template_members(vmi: VirtualMachineInstance | None, world: Relations) -> Iterable[Member]:
    """Of a VMI; one that is being deleted is one while it is held: it stays until its launcher ends (R30)."""
    owner = (vmi.metadata.namespace, vmi.metadata.uid) if vmi else ("", "")
    claims = world.template_claims.get(owner, {})
    for _, claim in sorted(claims.items()):
        gpu_class = world.classes.get(claim.spec.class_name)
        if gpu_class is not None and (claim.metadata.deletion_timestamp is None or claim.bound_node):
            yield _member(claim, gpu_class)


def _member(claim: GPUClaim, gpu_class: GPUClass) -> Member:
    return Member(claim_ref(claim), gpu_class, claim.spec.units, claim)


def _cover(missing: dict[str, int], resource: str, units: int) -> None:
    if resource in missing:
        missing[resource] -= units
        if missing[resource] <= 0:
            del missing[resource]


def _class_for(resource: str, vmi: VirtualMachineInstance, world: Relations) -> GPUClass | Obstacle:
    wanted = vmi.metadata.annotations.get(ANNOTATION_CLASS, "")
    if wanted and wanted not in world.classes:
        return _class_not_found(wanted)
    selling = [c for c in world.sold[resource] if c.metadata.deletion_timestamp is None]
    if not selling or (wanted in world.classes and _is_going(world.classes[wanted], resource)):
        name = wanted or ", ".join(c.metadata.name for c in world.sold[resource])
        text = f"GPUClass {name} is going away: it serves what it has, and nothing new"
        return Obstacle(Reason.CLASS_NOT_FOUND, text)
    for_vmi = [c for c in selling if c.metadata.name == wanted]
    default = [c for c in selling if c.spec.default]
    for choice in (for_vmi, selling, default):
        if len(choice) == 1:
            return choice[0]
    names = ", ".join(c.metadata.name for c in selling[:_MAX_NAMED])
    names += f" and {len(selling) - _MAX_NAMED} more" if len(selling) > _MAX_NAMED else ""
    text = f"classes {names} all sell {resource} and not exactly one is the default: set {ANNOTATION_CLASS}"
    return Obstacle(Reason.CLASS_AMBIGUOUS, text)


def _is_going(gpu_class: GPUClass, resource: str) -> bool:
    """Whether it sells the resource and is being deleted (R30): new claims would keep it for ever."""
    return gpu_class.spec.resource_name == resource and gpu_class.metadata.deletion_timestamp is not None


def _class_not_found(name: str) -> Obstacle:
    return Obstacle(Reason.CLASS_NOT_FOUND, f"GPUClass {name} does not exist")
