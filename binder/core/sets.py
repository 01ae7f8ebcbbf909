"""Sets: the claims that one VM's launcher is to be placed with (R7, R16, R18).

Orders that the VMI's annotation names come first; what the launcher asks for beyond them becomes one template
claim per resource. A set that cannot be formed has a reason instead of members that could be placed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from binder.core.catalogue import Catalogue, is_template_claim, key_of, orders_named_by
from binder.core.launchers import Launcher, vm_of
from binder.core.requests import effective_request
from model.claims import GPUClaim, GPUClass, Phase
from model.decisions import ObjectRef, VmRef
from model.kubevirt import VirtualMachineInstance
from model.names import ANNOTATION_CLASS
from model.reasons import Reason

_MAX_NAME = 253
"""The longest name of a Kubernetes object (RFC 1123 subdomain)."""


@dataclass(frozen=True, slots=True)
class Member:
    """One claim of a set; `claim` is None while the template claim has still to be created."""

    ref: ObjectRef
    gpu_class: GPUClass
    units: int
    claim: GPUClaim | None = None

    @property
    def resource(self) -> str:
        """The extended resource that its class sells."""
        return self.gpu_class.spec.resource_name

    @property
    def node(self) -> str:
        """Where it is held, or the empty string."""
        return self.claim.bound_node if self.claim else ""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a set cannot be placed: one reason, and a message for people."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class ClaimSet:
    """Claims that are placed together, on one node."""

    key: str
    members: tuple[Member, ...]
    launcher: Launcher | None = None
    vm: VmRef | None = None
    obstacle: Obstacle | None = None

    def needs(self) -> Mapping[str, int]:
        """Units per GPU resource."""
        return _units_of(self.members)

    def held_on(self, node: str) -> Mapping[str, int]:
        """Units per GPU resource that the set already holds on the node."""
        return _units_of(member for member in self.members if member.node == node)


def launcher_set(launcher: Launcher, shop: Catalogue) -> ClaimSet:
    """The set of a gated launcher (R7)."""
    vmi = launcher.vmi
    sold = {c.spec.resource_name for c in shop.classes.values()}
    missing = {r: n for r, n in effective_request(launcher.pod).items() if r in sold and n > 0}
    whole = ClaimSet(f"{vmi.metadata.namespace}/{vmi.metadata.name}", (), launcher, vm_of(vmi, shop.vms))
    if not missing and not orders_named_by(vmi.metadata):
        return replace(
            whole, obstacle=Obstacle(Reason.CLASS_NOT_FOUND, "no GPUClass sells what the VM asks for")
        )
    for take in (_take_orders, _take_template_claims):
        members, obstacle = take(whole, missing, shop)
        whole = replace(whole, members=(*whole.members, *members), obstacle=obstacle)
        if obstacle:
            break
    return whole


def order_sets(shop: Catalogue) -> list[ClaimSet]:
    """Pending orders that no launcher waits for, oldest first (R23): a set per VM naming them or per order.

    Orders of a VM whose VMI lives wait for its launcher. What the VM holds already is in its set: a new order
    joins it there, or takes it along to where there is room for both, or waits.
    """
    by_age = sorted(shop.claims.values(), key=lambda c: (c.metadata.creation_timestamp, key_of(c)))
    idle = [claim for claim in by_age if _is_idle_order(claim, shop)]
    groups: dict[str, list[GPUClaim]] = {}
    for claim in idle:
        vm = shop.named.get(key_of(claim))
        groups.setdefault(
            f"VM {claim.metadata.namespace}/{vm.name}" if vm else str(key_of(claim)), []
        ).append(claim)
    return [
        _order_set(group, shop)
        for group in groups.values()
        if any(claim.status.phase is Phase.PENDING for claim in group)
    ]


def _order_set(orders: list[GPUClaim], shop: Catalogue) -> ClaimSet:
    first = orders[0]
    vm = shop.named.get(key_of(first))
    whole = ClaimSet(f"{first.metadata.namespace}/{vm.name if vm else first.metadata.name}", (), vm=vm)
    for claim in orders:
        whole = _with_order(whole, claim, shop)
    return whole


def template_claim_name(vmi: VirtualMachineInstance, class_name: str) -> str:
    """`<vmi>-<class>-<first 8 of the VMI's uid>` (R7); what is too long is cut and told apart by a digest."""
    tail = f"-{vmi.metadata.uid[:8]}"
    stem = f"{vmi.metadata.name}-{class_name}"
    if len(stem) + len(tail) > _MAX_NAME:
        digest = hashlib.sha256(stem.encode()).hexdigest()[:8]
        stem = f"{stem[: _MAX_NAME - len(tail) - len(digest) - 1].rstrip('-.')}-{digest}"
    return stem + tail


def claim_ref(claim: GPUClaim) -> ObjectRef:
    """The version of the claim that the pass has seen."""
    meta = claim.metadata
    return ObjectRef(meta.namespace, meta.name, meta.uid, meta.resource_version)


def _units_of(members: Iterable[Member]) -> Mapping[str, int]:
    total: dict[str, int] = {}
    for member in members:
        total[member.resource] = total.get(member.resource, 0) + member.units
    return total


def _with_order(whole: ClaimSet, claim: GPUClaim, shop: Catalogue) -> ClaimSet:
    gpu_class = shop.classes.get(claim.spec.class_name)
    if gpu_class is None:
        return replace(whole, obstacle=_class_not_found(claim.spec.class_name))
    return replace(whole, members=(*whole.members, _member(claim, gpu_class)))


def _is_idle_order(claim: GPUClaim, shop: Catalogue) -> bool:
    """Whether it is an order that no run of a VM uses: it may be placed, and moved to join others."""
    user = claim.status.vm
    named = shop.named.get(key_of(claim))
    is_anothers = user is not None and user.uid in shop.users and (named is None or user.uid != named.uid)
    return (
        claim.status.phase in (Phase.PENDING, Phase.BOUND)
        and claim.metadata.deletion_timestamp is None
        and not is_template_claim(claim)
        and key_of(claim) not in shop.busy
        and not is_anothers
    )


def _member(claim: GPUClaim, gpu_class: GPUClass) -> Member:
    return Member(claim_ref(claim), gpu_class, claim.spec.units, claim)


def _take_orders(
    whole: ClaimSet, missing: dict[str, int], shop: Catalogue
) -> tuple[list[Member], Obstacle | None]:
    """Take the named orders and lower `missing` by what they cover."""
    assert whole.launcher is not None
    vmi = whole.launcher.vmi
    members: list[Member] = []
    for name in orders_named_by(vmi.metadata):
        claim = shop.claims.get((vmi.metadata.namespace, name))
        if claim is None or is_template_claim(claim):
            text = f"order {vmi.metadata.namespace}/{name}, named by the VM, does not exist"
            return members, Obstacle(Reason.CLAIM_NOT_FOUND, text)
        user = claim.status.vm
        if user is not None and whole.vm is not None and user.uid != whole.vm.uid and user.uid in shop.users:
            text = f"order {claim.metadata.namespace}/{name} is in use by VM {user.name}"
            return members, Obstacle(Reason.CLAIM_IN_USE, text)
        gpu_class = shop.classes.get(claim.spec.class_name)
        if gpu_class is None:
            return members, _class_not_found(claim.spec.class_name)
        members.append(_member(claim, gpu_class))
        _cover(missing, gpu_class.spec.resource_name, claim.spec.units)
    return members, None


def _take_template_claims(
    whole: ClaimSet, missing: dict[str, int], shop: Catalogue
) -> tuple[list[Member], Obstacle | None]:
    """One template claim per resource still missing: those that exist, then new ones."""
    assert whole.launcher is not None
    vmi = whole.launcher.vmi
    members: list[Member] = []
    for claim in shop.by_owner.get(vmi.metadata.uid, ()):
        gpu_class = shop.classes.get(claim.spec.class_name)
        if gpu_class is not None and claim.metadata.deletion_timestamp is None:
            members.append(_member(claim, gpu_class))
            _cover(missing, gpu_class.spec.resource_name, claim.spec.units)
    for resource, units in sorted(missing.items()):
        choice = _class_for(resource, vmi, shop)
        if isinstance(choice, Obstacle):
            return members, choice
        ref = ObjectRef(vmi.metadata.namespace, template_claim_name(vmi, choice.metadata.name))
        if (ref.namespace, ref.name) in shop.claims:
            text = f"claim {ref} exists and is not this VMI's; delete or rename it"
            return members, Obstacle(Reason.NAME_TAKEN, text)
        members.append(Member(ref, choice, units))
    return members, None


def _cover(missing: dict[str, int], resource: str, units: int) -> None:
    if resource in missing:
        missing[resource] -= units
        if missing[resource] <= 0:
            del missing[resource]


def _class_for(resource: str, vmi: VirtualMachineInstance, shop: Catalogue) -> GPUClass | Obstacle:
    wanted = vmi.metadata.annotations.get(ANNOTATION_CLASS, "")
    if wanted and wanted not in shop.classes:
        return _class_not_found(wanted)
    selling = shop.selling(resource)
    for_vmi = [c for c in selling if c.metadata.name == wanted]
    default = [c for c in selling if c.spec.default]
    for choice in (for_vmi, selling, default):
        if len(choice) == 1:
            return choice[0]
    names = ", ".join(c.metadata.name for c in selling)
    text = f"classes {names} all sell {resource} and not exactly one is the default: set {ANNOTATION_CLASS}"
    return Obstacle(Reason.CLASS_AMBIGUOUS, text)


def _class_not_found(name: str) -> Obstacle:
    return Obstacle(Reason.CLASS_NOT_FOUND, f"GPUClass {name} does not exist")
