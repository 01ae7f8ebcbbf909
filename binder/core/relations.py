"""How objects hang together: who names, serves, owns and lists whom. Kept up by difference.

Each change of an object unties its old version and ties its new one, and says which nodes and which sets may
look different for it: its neighbourhood. Tied from nothing or change by change, the result is the same.
Must not know: what is decided from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from binder.core.claims import is_template_claim, key_of, orders_named_by, user_uid
from binder.core.launchers import (
    VM_KIND,
    VMI_KIND,
    Launcher,
    controller_uid,
    is_launcher_of,
    is_suspect,
    is_target_of,
    pinned_node,
    vm_of,
)
from binder.core.sets import Shape
from binder.core.state import Key
from model.claims import GPUClaim, GPUClass
from model.decisions import VmRef
from model.kubevirt import VirtualMachine, VirtualMachineInstance
from model.pods import Pod
from model.requests import Units, effective_request

Outer = TypeVar("Outer")
Inner = TypeVar("Inner")
Value = TypeVar("Value")


Uid = tuple[str, str]
"""A namespace and the uid of an object in it. A reference never leaves its namespace: one that names the uid
of another tenant's object, which anyone can write, refers to nothing."""


class SetId(NamedTuple):
    """The set of a VM (or of a VMI without one), or of an order that serves none."""

    is_order: bool
    key: Key


class Namer(NamedTuple):
    """A VM that names an order; the oldest goes first (R18)."""

    created: str
    key: Key
    vm: VmRef


@dataclass(slots=True)
class Relations:
    """Look-ups over the folded cluster and the live claims. Changed by the `retie_*` methods only."""

    vms: Mapping[Key, VirtualMachine]
    vmis: Mapping[Key, VirtualMachineInstance]
    claims: dict[Key, GPUClaim] = field(default_factory=dict)
    classes: dict[str, GPUClass] = field(default_factory=dict)
    sold: dict[str, list[GPUClass]] = field(default_factory=dict)
    """The classes of each resource, by name."""
    launchers: dict[str, Launcher] = field(default_factory=dict)
    """By the pod's uid (R28)."""
    launchers_of: dict[str, dict[str, Launcher]] = field(default_factory=dict)
    """By the VMI's uid, then the pod's."""
    suspects: dict[str, Launcher] = field(default_factory=dict)
    """Launchers that may have been refused, by the pod's uid (R13)."""
    targets: dict[str, Launcher] = field(default_factory=dict)
    """Pods that a VMI is to migrate to, by uid; they count as raw pods until it has arrived."""
    strangers: dict[str, Pod] = field(default_factory=dict)
    """Pods with our gate that are neither, by uid: not listed yet, or never."""
    pods_on: dict[str, dict[Key, Pod]] = field(default_factory=dict)
    """Pods by the node that they take room on: an ungated launcher already takes it on its pin."""
    claims_on: dict[str, dict[Key, GPUClaim]] = field(default_factory=dict)
    template_claims: dict[Uid, dict[Key, GPUClaim]] = field(default_factory=dict)
    """By the VMI that owns them."""
    left: dict[Uid, None] = field(default_factory=dict)
    """VMIs that are not there, and whose template claims are."""
    orders_of: dict[Uid, dict[Key, GPUClaim]] = field(default_factory=dict)
    """By the VM that their status records."""
    namers: dict[Key, dict[Key, Namer]] = field(default_factory=dict)
    """Who names an order, by the VM's key."""
    users: dict[Uid, dict[Key, None]] = field(default_factory=dict)
    """Uids that may hold an order (of VMs, live VMIs and what those refer to), and their VM's keys."""
    shapes: dict[Shape, Shape] = field(default_factory=dict)
    """One object for all equal ones: comparing them is free then."""
    hoped: dict[Key, dict[SetId, None]] = field(default_factory=dict)
    """Sets that want to create a claim of that name, or find it taken (R7)."""
    dirty_nodes: set[str] = field(default_factory=set)
    dirty_sets: set[SetId] = field(default_factory=set)
    dirty_pods: set[Key] = field(default_factory=set)
    """Pods that may ask for something else than before, or be covered by other claims."""
    dirty_orders: set[Key] = field(default_factory=set)
    """Claims that look different to everybody who names them."""
    dirty_vmis: set[str] = field(default_factory=set)
    """Uids of VMIs whose pods and set look different."""
    dirty_users: set[Uid] = field(default_factory=set)
    """Uids of VMs and VMIs that use other orders."""
    _names: dict[Key, tuple[str, ...]] = field(default_factory=dict)
    _uids: dict[Key, tuple[str, ...]] = field(default_factory=dict)
    _pods_of: dict[str, dict[Key, Pod]] = field(default_factory=dict)
    _place: dict[Key, str] = field(default_factory=dict)
    _vmi_by_uid: dict[str, VirtualMachineInstance] = field(default_factory=dict)
    _oldest: dict[Key, Namer] = field(default_factory=dict)
    _requests: dict[Key, Units] = field(default_factory=dict)

    def request_of(self, pod: Pod) -> Mapping[str, int]:
        """Its effective request (R29), counted once for each version of it."""
        key = (pod.metadata.namespace, pod.metadata.name)
        known = self._requests.get(key)
        if known is None:
            known = self._requests[key] = effective_request(pod)
        return known

    def names_of(self, key: Key) -> tuple[str, ...]:
        """The orders that the VM names: its live VMI's annotation wins over its template (R16)."""
        return self._names.get(key, ())

    def holder_of(self, claim: GPUClaim) -> VmRef | None:
        """The VM that it serves: the recorded one while it exists, else the oldest that names it (R18)."""
        recorded = claim.status.vm
        if recorded is not None and (key_of(claim)[0], recorded.uid) in self.users:
            return VmRef(recorded.name, recorded.uid)
        key = key_of(claim)
        oldest = self._oldest.get(key)
        if oldest is None and key in self.namers:
            oldest = self._oldest[key] = min(self.namers[key].values())
        return oldest.vm if oldest is not None else None

    def is_named_by_user(self, claim: GPUClaim) -> bool:
        """Whether the VM that the order serves names it, so that it is in that VM's set."""
        holder, namers = self.holder_of(claim), self.namers.get(key_of(claim), {})
        if holder is None:
            return False
        few, many = sorted(
            (namers.keys(), self.users.get((key_of(claim)[0], holder.uid), {}).keys()), key=len
        )
        return any(key in many and namers[key].vm.uid == holder.uid for key in few)

    def retie_hopes(self, set_id: SetId, old: Iterable[Key], new: Iterable[Key]) -> None:
        """Remember which claims' coming and going the set looks different for."""
        for key in old:
            _tie(self.hoped, key, set_id, None)
        for key in new:
            self.hoped.setdefault(key, {})[set_id] = None

    def spread_marks(self) -> None:
        """Mark the nodes and sets around what has changed, once: of everything there can be many."""
        for user in self.dirty_users:
            used_by = (self.vmis.get(key) for key in self.users.get(user, ()))
            self.dirty_vmis.update(vmi.metadata.uid for vmi in used_by if vmi is not None)
        for uid in self.dirty_vmis & self._vmi_by_uid.keys():
            meta = self._vmi_by_uid[uid].metadata
            self.dirty_sets.add(SetId(is_order=False, key=(meta.namespace, meta.name)))
            self.dirty_pods.update(self._pods_of.get(uid, ()))
            self.dirty_nodes.update(self._place.get(pod, "") for pod in self._pods_of.get(uid, ()))
        for order in self.dirty_orders:
            self.dirty_sets.add(SetId(is_order=True, key=order))
            self.dirty_sets.update(SetId(is_order=False, key=key) for key in self.namers.get(order, ()))
            self.dirty_sets.update(self.hoped.get(order, ()))
        for marks in (self.dirty_users, self.dirty_vmis, self.dirty_orders):
            marks.clear()

    def claims_serving(self, vmi: VirtualMachineInstance) -> Iterator[GPUClaim]:
        """The claims of a VMI: its template claims, and the orders that its VM uses."""
        namespace = vmi.metadata.namespace
        yield from self.template_claims.get((namespace, vmi.metadata.uid), {}).values()
        yield from self.orders_of.get((namespace, vm_of(vmi, self.vms).uid), {}).values()

    def retie_pod(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        """A pod has come, changed or gone."""
        for pod, is_now in ((old, False), (new, True)):
            if pod is None:
                continue
            uid = controller_uid(pod.metadata, VMI_KIND)
            _tie(self._pods_of, uid, key, pod if is_now else None)
            if not is_now:
                self._unplace(key, pod)
            self.dirty_vmis.add(uid)
        if new is not None:
            self._place_pod(key, new)

    def retie_vmi(
        self, key: Key, old: VirtualMachineInstance | None, new: VirtualMachineInstance | None
    ) -> None:
        """A VMI has come, changed or gone."""
        if old is not None:
            self._vmi_by_uid.pop(old.metadata.uid, None)
        if new is not None:
            self._vmi_by_uid[new.metadata.uid] = new
        for vmi in (old, new):
            if vmi is not None:
                self._note_left((key[0], vmi.metadata.uid))
        for uid in {vmi.metadata.uid for vmi in (old, new) if vmi is not None}:
            for pod_key, pod in list(self._pods_of.get(uid, {}).items()):
                self._unplace(pod_key, pod)
                self._place_pod(pod_key, pod)
        self.retie_vm(key)

    def retie_vm(self, key: Key) -> None:
        """A VM, or the VMI of its name, has come, changed or gone."""
        self.dirty_sets.add(SetId(is_order=False, key=key))
        vm, vmi = self.vms.get(key), self.vmis.get(key)
        if vmi is not None:
            self.dirty_vmis.add(vmi.metadata.uid)
        live = vmi if vmi is not None and not vmi.is_final else None
        self._retie_uids(key, tuple(_uids(vm, live)))
        named = live.metadata if live else vm.spec.template.metadata if vm else None
        self._retie_names(key, orders_named_by(named) if named else ())
        for name in self._names.get(key, ()):
            creator = vm or live
            assert creator is not None
            user = vm_of(live, self.vms) if live else VmRef(key[1], creator.metadata.uid)
            namer = Namer(creator.metadata.creation_timestamp, key, user)
            order = (key[0], name)
            if self.namers.get(order, {}).get(key) != namer:
                self._retie_namer(order, key, namer)

    def retie_claim(self, key: Key, old: GPUClaim | None, new: GPUClaim | None) -> None:
        """A claim has come, changed or gone."""
        for claim, is_now in ((old, False), (new, True)):
            if claim is None:
                continue
            tied = claim if is_now else None
            if claim.bound_node:
                _tie(self.claims_on, claim.bound_node, key, tied)
                self.dirty_nodes.add(claim.bound_node)
            if is_template_claim(claim):
                uid = controller_uid(claim.metadata, VMI_KIND)
                _tie(self.template_claims, (key[0], uid), key, tied)
                self._note_left((key[0], uid))
                self.dirty_vmis.add(uid)
            else:
                user = (key[0], user_uid(claim))
                _tie(self.orders_of, user, key, tied)
                self.dirty_users.add(user)
        self.dirty_orders.add(key)

    def _note_left(self, vmi: Uid) -> None:
        if vmi in self.template_claims and vmi[1] not in self._vmi_by_uid:
            self.left[vmi] = None
        else:
            self.left.pop(vmi, None)

    def _retie_names(self, key: Key, names: tuple[str, ...]) -> None:
        before = self._names.get(key, ())
        if before == names:
            return
        kept = set(names)
        for name in before:
            if name not in kept:
                self._retie_namer((key[0], name), key, None)
        if names:
            self._names[key] = names
        else:
            del self._names[key]

    def _retie_namer(self, order: Key, key: Key, namer: Namer | None) -> None:
        _tie(self.namers, order, key, namer)
        self._oldest.pop(order, None)
        self.dirty_orders.add(order)

    def _retie_uids(self, key: Key, uids: tuple[str, ...]) -> None:
        before = self._uids.get(key, ())
        if before == uids:
            return
        for uid in before:
            _tie(self.users, (key[0], uid), key, None)
        for uid in uids:
            self.users.setdefault((key[0], uid), {})[key] = None
        if uids:
            self._uids[key] = uids
        else:
            del self._uids[key]
        for uid in (*before, *uids):
            self.dirty_orders.update(self.orders_of.get((key[0], uid), ()))

    def _place_pod(self, key: Key, pod: Pod) -> None:
        self.dirty_pods.add(key)
        vmi = self._vmi_by_uid.get(controller_uid(pod.metadata, VMI_KIND))
        is_launcher = vmi is not None and is_launcher_of(pod, vmi)
        if vmi is not None and is_launcher:
            launcher = self.launchers[pod.metadata.uid] = Launcher(pod, vmi)
            _tie(self.launchers_of, vmi.metadata.uid, pod.metadata.uid, launcher)
            if is_suspect(pod):
                self.suspects[pod.metadata.uid] = launcher
        is_target = vmi is not None and not is_launcher and is_target_of(pod, vmi)
        if vmi is not None and is_target:
            self.targets[pod.metadata.uid] = Launcher(pod, vmi)
        is_going = pod.is_terminal or pod.metadata.deletion_timestamp is not None
        if pod.is_gated and not (is_launcher or is_target or is_going):
            self.strangers[pod.metadata.uid] = pod
        node = pod.spec.node_name
        if not node and (is_launcher or is_target) and not pod.is_gated:
            node = pinned_node(pod)
        if node and not pod.is_terminal:
            self._place[key] = node
            _tie(self.pods_on, node, key, pod)
            self.dirty_nodes.add(node)

    def _unplace(self, key: Key, pod: Pod) -> None:
        self.dirty_pods.add(key)
        self._requests.pop(key, None)
        launcher = self.launchers.pop(pod.metadata.uid, None)
        self.suspects.pop(pod.metadata.uid, None)
        self.targets.pop(pod.metadata.uid, None)
        self.strangers.pop(pod.metadata.uid, None)
        if launcher is not None:
            _tie(self.launchers_of, launcher.vmi.metadata.uid, pod.metadata.uid, None)
        node = self._place.pop(key, "")
        if node:
            _tie(self.pods_on, node, key, None)
            self.dirty_nodes.add(node)


def _tie(table: dict[Outer, dict[Inner, Value]], outer: Outer, inner: Inner, value: Value | None) -> None:
    """Set an entry of a table of tables, or take it away; no table stays empty."""
    if value is not None:
        table.setdefault(outer, {})[inner] = value
        return
    row = table.get(outer)
    if row is not None:
        row.pop(inner, None)
        if not row:
            del table[outer]


def _uids(vm: VirtualMachine | None, live: VirtualMachineInstance | None) -> Iterator[str]:
    if vm is not None:
        yield vm.metadata.uid
    if live is not None:
        yield live.metadata.uid
        referred = controller_uid(live.metadata, VM_KIND)
        if referred and (vm is None or referred != vm.metadata.uid):
            yield referred
