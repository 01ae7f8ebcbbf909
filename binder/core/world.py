"""The folded cluster and the live claims, indexed for a pass; kept up by difference.

A changed object costs its neighbourhood: the nodes and the sets that `Relations` marks are measured and
formed again, everything else stands. Built from nothing, all of them are. Nothing here is remembered that the
state and the claims do not say, so a replay builds the same. Must not know: what is decided from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from binder.core.books import Books
from binder.core.budgets import BudgetTree, plant
from binder.core.counting import uncovered, units_by_resource
from binder.core.fallen import departed_pods, refused_of
from binder.core.forming import order_set, vm_set
from binder.core.keeping import Trouble, troubles_of
from binder.core.launchers import (
    Launcher,
)
from binder.core.nodes import class_accepts, has_labels, selector_matches
from binder.core.relations import Relations, SetId
from binder.core.room import PODS, Judge, NodeRoom, Room, Sites
from binder.core.sets import ClaimSet, Constraints, Stage
from binder.core.state import ClusterState, Key
from model.claims import GPUBudget, GPUClaim, GPUClass, Phase
from model.kinds import BY_KIND
from model.kubevirt import VirtualMachine, VirtualMachineInstance
from model.meta import ObjectMeta
from model.names import FINALIZER
from model.namespaces import Namespace
from model.nodes import Node
from model.pods import Pod
from model.reasons import Reason
from model.requests import Units, allocatable_units
from projections.folds import ledger

MAX_SHAPES = 100_000
MAX_SITES = 256
"""Orders of nodes that are kept from pass to pass; beyond that, all are made anew when asked for."""


_KINDS = (GPUClass, Node, VirtualMachine, VirtualMachineInstance, Pod, GPUBudget, Namespace)
Change = tuple[Key, Any, Any]
"""Of one object: its key, the old version and the new one; None for none."""


class Queue(StrEnum):
    """What a set waits for; a set can be in several."""

    GATED = "gated"
    UNSETTLED = "unsettled"
    """Partly Lost, on several nodes, elsewhere than its launcher or not known as its (R16, R17, R19)."""
    LOST = "lost"
    ENDED = "ended"
    """The VMI has ended and is still there, with its template claims."""
    NEW = "new"
    """Members that have never been held, and no launcher that waits."""


@dataclass(slots=True)
class World:
    """What a pass looks at. Changed by `update` only; what a pass books in `room` is undone at its end."""

    state: ClusterState
    relations: Relations = field(init=False)
    room: Room = field(default_factory=Room)
    sets: dict[SetId, ClaimSet] = field(default_factory=dict)
    queues: dict[Queue, dict[SetId, ClaimSet]] = field(default_factory=dict)
    held_on: dict[str, dict[SetId, ClaimSet]] = field(default_factory=dict)
    """Sets by each node that holds some of them."""
    troubled: dict[str, tuple[Trouble, ...]] = field(default_factory=dict)
    """Nodes that hold claims and have something wrong with them."""
    gpu_nodes: set[str] = field(default_factory=set)
    """Nodes that offer what is sold, or hold claims."""
    fallen: tuple[Pod, ...] = ()
    """Pods that a kubelet refused and that changed or went since `learned_from` (R13)."""
    budgets: BudgetTree = field(default_factory=BudgetTree)
    claimed: dict[str, int] = field(default_factory=dict)
    """How many claims name each class."""
    unkept: set[Key] = field(default_factory=set)
    """Claims without our finalizer that are not being deleted."""
    leaving: set[Key] = field(default_factory=set)
    """Claims that are being deleted and carry our finalizer."""
    held_units: dict[str, dict[str, int]] = field(default_factory=dict)
    """Units of claims that are or were placed, by namespace and class (R27)."""
    books: Books = field(init=False)
    changed: set[SetId] = field(default_factory=set)
    """Sets that were formed anew since `learned_from`: a pass learns from them."""
    is_new: bool = True
    """Whether all was built from nothing since then: what has gone before left no mark."""
    _known: dict[str, dict[Key, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Nothing is known of the state yet."""
        self._forget()

    def update(self, claims: Mapping[Key, GPUClaim], changed: Iterable[Key] | None = None) -> None:
        """Take in what has changed in the state, and the live claims as they are now.

        `changed` names the claims that are not in `relations.claims` as they are now; without it, each is
        looked at.
        """
        gone = departed_pods(self.state.shelves[Pod.__name__])
        changes = {model.__name__: self._take(model) for model in _KINDS}
        for kind in BY_KIND.keys() - changes.keys():
            self.state.shelves[kind].take_touched()
        if any(_is_sale_changed(old, new) for _, old, new in changes[GPUClass.__name__]):
            self._forget()
            changed = None
            changes = {model.__name__: self._take(model) for model in _KINDS}
        links = self.relations
        for key, _, _ in changes[VirtualMachine.__name__]:
            links.retie_vm(key)
        for key, old, new in changes[VirtualMachineInstance.__name__]:
            links.retie_vmi(key, old, new)
        for key, old, new in changes[Pod.__name__]:
            links.retie_pod(key, old, new)
        now = [new for _, _, new in changes[Pod.__name__] if new is not None]
        self.fallen += refused_of([*gone, *now])
        links.dirty_nodes.update(key[1] for key, _, _ in changes[Node.__name__])
        self._take_claims(claims, claims if changed is None else changed)
        if any(map(_is_tree_changed, (*changes[GPUBudget.__name__], *changes[Namespace.__name__]))):
            self.budgets = plant(self.state.of(GPUBudget).values(), self.state.of(Namespace).values())
            self.books.plant(self.budgets)
        self._take_statuses(changes[GPUClass.__name__], changes[GPUBudget.__name__])
        links.spread_marks()
        self.books.take_pods(self.state.of(Pod))
        self._measure_nodes()
        self._form_sets()

    def learned_from(self) -> None:
        """A pass that could decide has learned from what has changed, and its lessons are stored."""
        self.changed, self.fallen, self.is_new = set(), (), False
        self.books.touched = set()

    def node(self, name: str) -> Node | None:
        """The node of that name."""
        return self.state.of(Node).get(("", name))

    def sites_for(self, claim_set: ClaimSet) -> Sites:
        """The nodes for a set of these classes and constraints, in R9's order; made once, then kept up."""
        constraints, resources = claim_set.shape.constraints, tuple(claim_set.needs)
        found = self.room.sites.get((constraints, resources))
        if found is None:
            if len(self.room.sites) >= MAX_SITES:
                self.room.sites.clear()
            found = Sites(resources, _judge(constraints))
            self.room.sites[constraints, resources] = found
            for (_, name), node in self.state.of(Node).items():
                found.put(name, node, self.room.nodes[name])
        return found

    def uncovered_request(self, launcher: Launcher) -> Units:
        """What the launcher's node counts of its GPU request as not covered by claims held there (R26)."""
        return uncovered([launcher.pod], launcher, self.relations, launcher.anchor)

    def _forget(self) -> None:
        """Begin from nothing: what is sold decides over everything else."""
        self.is_new = True
        state = self.state
        self.relations = Relations(state.of(VirtualMachine), state.of(VirtualMachineInstance))
        self.room = Room()
        self.sets, self.held_on, self.troubled, self.gpu_nodes = {}, {}, {}, set()
        self.held_units, self.claimed, self.unkept, self.leaving = {}, {}, set(), set()
        self.queues, self.books = {queue: {} for queue in Queue}, Books(self.relations)
        self.budgets, self._known = BudgetTree(), {}
        classes = {key[1]: _as_sold(one) for key, one in sorted(state.of(GPUClass).items())}
        self.relations.classes.update(classes)
        for one in classes.values():
            self.relations.sold.setdefault(one.spec.resource_name, []).append(one)

    def _take(self, model: type[Any]) -> list[Change]:
        """What has changed of one kind since the last time, as (key, old, new), by key."""
        shelf = self.state.shelves[model.__name__]
        now, is_first = shelf.decoded(), model.__name__ not in self._known
        known = self._known.setdefault(model.__name__, {})
        touched = shelf.take_touched()
        keys = sorted(now) if is_first else touched
        changes = []
        for key in keys:
            old, new = known.get(key), now.get(key)
            if old is not new:
                changes.append((key, old, new))
                _set(known, key, new)
        return changes

    def _take_statuses(self, classes: list[Change], budgets: list[Change]) -> None:
        """What somebody has written there may be something else than what the books say."""
        self.books.touched.update(ledger.CLASS + key[1] for key, _, _ in classes)
        for (_, name), _, new in budgets:
            self.books.touched.add(ledger.BUDGET + name)
            if new is not None:
                self.budgets.budgets[name] = new

    def _take_claims(self, claims: Mapping[Key, GPUClaim], touched: Iterable[Key]) -> None:
        known = self.relations.claims
        changed = [key for key in touched if key in claims and not _is_same(known.get(key), claims[key])]
        are_gone = len(known) + sum(key not in known for key in changed) > len(claims)
        gone = [key for key in known if key not in claims] if are_gone else []
        for key in (*changed, *gone):
            old, new = known.get(key), claims.get(key)
            _set(known, key, new)
            self.relations.retie_claim(key, old, new)
            for claim, sign in ((old, -1), (new, 1)):
                if claim is None:
                    continue
                self.books.take_claim(claim, sign)
                name = claim.spec.class_name
                _count(self.claimed, name, sign)
                if claim.status.phase is not Phase.PENDING:
                    _count(self.held_units.setdefault(key[0], {}), name, sign * claim.spec.units)
            is_kept = new is not None and FINALIZER in new.metadata.finalizers
            is_leaving = new is not None and new.metadata.deletion_timestamp is not None
            (self.unkept.add if new and not is_kept and not is_leaving else self.unkept.discard)(key)
            (self.leaving.add if is_kept and is_leaving else self.leaving.discard)(key)

    def _measure_nodes(self) -> None:
        links = self.relations
        for name in sorted(links.dirty_nodes):
            node = self.node(name)
            held_here = links.claims_on.get(name, {})
            sold_here = [
                one for one in (links.classes.get(c.spec.class_name) for c in held_here.values()) if one
            ]
            classes = {one.metadata.name: one for one in sold_here}
            if node is None:
                self.room.nodes.pop(name, None)
                for sites in self.room.sites.values():
                    sites.drop(name)
                room, is_gpu_node = NodeRoom({}), bool(held_here)
            else:
                room = self.room.nodes[name] = self._measured(name, node)
                for sites in self.room.sites.values():
                    sites.put(name, node, room)
                is_gpu_node = bool(held_here) or not links.sold.keys().isdisjoint(room.allocatable)
            (self.gpu_nodes.add if is_gpu_node else self.gpu_nodes.discard)(name)
            held = dict(sorted(units_by_resource(held_here.values(), links).items()))
            self.books.take_node(name, node, room, held)
            wrong = troubles_of(node, (c for _, c in sorted(classes.items())), room, held) if classes else ()
            _set(self.troubled, name, wrong or None)
        links.dirty_nodes.clear()

    def _measured(self, name: str, node: Node) -> NodeRoom:
        """R26: claims where they are Bound, and of each pod what they do not cover."""
        links = self.relations
        taken = dict(units_by_resource(links.claims_on.get(name, {}).values(), links))
        room = NodeRoom(allocatable_units(node.status.allocatable), taken)
        by_vmi: dict[str, list[Pod]] = {}
        for pod in links.pods_on.get(name, {}).values():
            room.take(PODS, 1)
            launcher = links.launchers.get(pod.metadata.uid)
            by_vmi.setdefault(launcher.vmi.metadata.uid if launcher else "", []).append(pod)
        for pods in by_vmi.values():
            launcher = links.launchers.get(pods[0].metadata.uid)
            for resource, amount in uncovered(pods, launcher, links, name).items():
                room.take(resource, amount)
        return room

    def _form_sets(self) -> None:
        if len(self.relations.shapes) > MAX_SHAPES:
            self.relations.shapes.clear()  # sets that stand keep theirs
        dirty, self.relations.dirty_sets = self.relations.dirty_sets, set()
        self.changed |= dirty
        for set_id in sorted(dirty):
            form = order_set if set_id.is_order else vm_set
            self._put_set(set_id, form(set_id.key, self.relations))

    def _put_set(self, set_id: SetId, new: ClaimSet | None) -> None:
        old = self.sets.pop(set_id, None)
        for node in old.nodes if old else ():
            del self.held_on[node][set_id]
        for queue in self.queues.values():
            queue.pop(set_id, None)
        self.relations.retie_hopes(set_id, old.hopes if old else (), new.hopes if new else ())
        if new is None:
            return
        self.sets[set_id] = new
        for node in new.nodes:
            self.held_on.setdefault(node, {})[set_id] = new
        for name in _queues_of(new):
            self.queues[name][set_id] = new


def look_at(state: ClusterState, claims: Mapping[Key, GPUClaim]) -> World:
    """A world built from nothing."""
    world = World(state)
    world.update(claims)
    return world


def _queues_of(one: ClaimSet) -> list[Queue]:
    if one.stage is Stage.GATED:
        return [Queue.GATED]
    found = []
    lost = one.lost
    is_elsewhere = one.anchor and (one.nodes not in ((), (one.anchor,)) or one.is_unrecorded)
    if len(one.nodes) > 1 or (lost and one.nodes) or is_elsewhere:
        found.append(Queue.UNSETTLED)
    if lost:
        found.append(Queue.LOST)
    if one.vmi is not None and one.vmi.is_final and one.stage is Stage.IDLE:
        found.append(Queue.ENDED)
    is_open = one.stage in (Stage.IDLE, Stage.STARTING, Stage.RUNNING)
    if is_open and not lost and (one.unsold or any(not member.node for member in one.members)):
        found.append(Queue.NEW)
    return found


def _judge(wanted: Constraints) -> Judge:
    """R8a and R8b, as a function of the node."""
    selector = dict(wanted.selector)

    def judge(node: Node) -> Reason | None:
        if not all(class_accepts(gpu_class, node) for gpu_class in wanted.classes):
            return Reason.CLASS_CONSTRAINTS
        is_wanted = wanted.affinity is None or selector_matches(wanted.affinity, node)
        return None if is_wanted and has_labels(node, selector) else Reason.POD_CONSTRAINTS

    return judge


def _is_same(old: GPUClaim | None, new: GPUClaim) -> bool:
    """Whether it is the version that is known; without a resourceVersion only the same object is."""
    if old is new:
        return True
    if old is None or not new.metadata.resource_version:
        return False
    return (old.metadata.uid, old.metadata.resource_version) == (
        new.metadata.uid,
        new.metadata.resource_version,
    )


def _count(table: dict[str, int], name: str, amount: int) -> None:
    table[name] = table.get(name, 0) + amount
    if not table[name]:
        del table[name]


def _as_sold(gpu_class: GPUClass) -> GPUClass:
    """What decides over placements: a class whose status has changed is the same one to all sets."""
    meta = gpu_class.metadata
    kept = ObjectMeta(name=meta.name, deletion_timestamp=meta.deletion_timestamp)
    return GPUClass(metadata=kept, spec=gpu_class.spec)


def _is_tree_changed(change: Change) -> bool:
    """Whether other namespaces may be under a budget, or other budgets above it."""
    _, old, new = change
    if old is None or new is None:
        return True
    if isinstance(new, Namespace):
        return bool(old.metadata.labels != new.metadata.labels)
    return bool(old.spec != new.spec)


def _is_sale_changed(old: GPUClass | None, new: GPUClass | None) -> bool:
    if old is None or new is None or old.spec != new.spec:
        return True
    return old.metadata.deletion_timestamp != new.metadata.deletion_timestamp


def _set(table: dict[Any, Any], key: Any, value: Any) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value
