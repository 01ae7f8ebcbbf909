"""The books: who has how much of each class, what each budget's namespaces use; kept by difference.

Each changed claim, pod or node takes back what it counted and counts anew: it costs its neighbourhood.
`usage` counts the same from nothing and is the reference. Must not know: what is decided from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from binder.core.budgets import BudgetTree
from binder.core.counting import raw_units
from binder.core.nodes import class_accepts, has_labels
from binder.core.relations import Relations
from binder.core.room import NodeRoom
from binder.core.state import Key
from model.claims import GPUClaim, Phase
from model.nodes import Node
from model.pods import Pod
from projections.folds import ledger

Amounts = dict[str, int]
"""Units by the name of a class or a resource; none of zero."""


@dataclass(frozen=True, slots=True)
class ClassUse:
    """Units of one class in all. Classes of one resource share allocatable, raw and free."""

    nodes: int = 0
    """Nodes that the class accepts and that offer its resource."""
    allocatable: int = 0
    bound: int = 0
    raw: int = 0
    """What pods hold there that no claim covers."""
    lost: int = 0
    pending: int = 0
    free: int = 0
    """What can still be had: never less than none on a node."""


@dataclass(slots=True)
class Use:
    """What the namespaces of one budget use."""

    classes: Amounts = field(default_factory=dict)
    """Units of claims, whatever their phase."""
    resources: Amounts = field(default_factory=dict)
    """What pods ask for that no claim of their VMI covers, whatever its phase."""


class Share(NamedTuple):
    """Units of one resource on one node; with less than nothing free there is nothing free."""

    allocatable: int
    raw: int
    free: int
    is_accepted: bool
    """Whether the class accepts the node now, besides selecting it by its labels."""


@dataclass(slots=True)
class ClassTotals:
    """Of one class: its claims by phase, and the nodes that it accepts or selects."""

    units: dict[Phase, int] = field(default_factory=lambda: dict.fromkeys(Phase, 0))
    nodes: int = 0
    allocatable: int = 0
    raw: int = 0
    free: int = 0
    sizes: dict[int, int] = field(default_factory=dict)
    """How many nodes with the class's labels offer so many units, whether or not it accepts them now."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is counted."""
        return not (self.nodes or self.sizes or any(self.units.values()))

    def add(self, share: Share, sign: int) -> None:
        """Take a node in that the class selects (1), or out (-1)."""
        count = self.sizes.pop(share.allocatable, 0) + sign
        if count:
            self.sizes[share.allocatable] = count
        if not share.is_accepted:
            return
        self.nodes += sign
        self.allocatable += sign * share.allocatable
        self.raw += sign * share.raw
        self.free += sign * share.free


@dataclass(slots=True)
class Books:
    """Totals over everything that has been taken in, with what the relations say of it."""

    links: Relations
    classes: dict[str, ClassTotals] = field(default_factory=dict)
    """By name; also of classes that claims name and that do not exist."""
    offering: dict[str, int] = field(default_factory=dict)
    """Nodes that offer a resource on sale, whether or not a class accepts them."""
    claimed: dict[str, Amounts] = field(default_factory=dict)
    """By namespace: units of claims by class, whatever their phase (R27)."""
    raw: dict[str, Amounts] = field(default_factory=dict)
    """By namespace: what pods ask for by resource that no claim of their VMI covers (R27)."""
    tree: BudgetTree = field(default_factory=BudgetTree)
    uses: dict[str, Use] = field(default_factory=dict)
    """By budget."""
    touched: set[str] = field(default_factory=set)
    """Fields of the ledger that may say something else than when this was last emptied."""
    _shares: dict[str, dict[str, Share]] = field(default_factory=dict)
    _offers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _raw_of: dict[Key, Amounts] = field(default_factory=dict)

    def class_use(self, name: str) -> ClassUse:
        """What has become of the class's units."""
        t = self.classes.get(name) or ClassTotals()
        bound, lost, pending = (t.units[phase] for phase in (Phase.BOUND, Phase.LOST, Phase.PENDING))
        return ClassUse(t.nodes, t.allocatable, bound, t.raw, lost, pending, t.free)

    def largest(self, name: str) -> int:
        """The most units that one node with the class's labels offers: what is larger fits nowhere.

        Whether the node is closed or away just now does not matter: orders wait for that.
        """
        totals = self.classes.get(name)
        return max(totals.sizes, default=0) if totals else 0

    def take_claim(self, claim: GPUClaim, sign: int) -> None:
        """A version of a claim counts from now on (1), or no longer (-1)."""
        name, namespace, units = claim.spec.class_name, claim.metadata.namespace, sign * claim.spec.units
        totals = self._totals(name)
        totals.units[counted_phase(claim)] += units
        if totals.is_empty:
            del self.classes[name]  # anyone can name a class that does not exist
        _add_row(self.claimed, namespace, {name: units})
        self.touched.add(ledger.CLASS + name)
        for budget in self.tree.over.get(namespace, ()):
            _add(self.uses[budget].classes, {name: units})
            self.touched.add(ledger.BUDGET + budget)

    def take_pods(self, pods: Mapping[Key, Pod]) -> None:
        """What the pods that look different ask for besides the claims of their VMIs."""
        keys, self.links.dirty_pods = self.links.dirty_pods, set()
        for key in keys:
            pod = pods.get(key)
            before = self._raw_of.pop(key, {})
            now = raw_units(pod, self.links) if pod is not None and not pod.is_terminal else {}
            if now:
                self._raw_of[key] = now
            if now == before:
                continue
            change = {name: now.get(name, 0) - before.get(name, 0) for name in now | before}
            _add_row(self.raw, key[0], change)
            for budget in self.tree.over.get(key[0], ()):
                _add(self.uses[budget].resources, change)
                self.touched.add(ledger.BUDGET + budget)

    def take_node(self, name: str, node: Node | None, room: NodeRoom, held: Mapping[str, int]) -> None:
        """A node as it was measured, or (None) no more; `held` are units of claims Bound there."""
        sold = self.links.sold
        offers = tuple(resource for resource in sold if resource in room.allocatable)
        shares: dict[str, Share] = {}
        for resource in offers:
            free, raw = room.free(resource), room.taken.get(resource, 0) - held.get(resource, 0)
            for gpu_class in sold[resource]:
                if node and has_labels(node, gpu_class.spec.node_selector):
                    is_accepted = class_accepts(gpu_class, node)
                    share = Share(room.allocatable[resource], raw, max(0, free), is_accepted)
                    shares[gpu_class.metadata.name] = share
        self._put_node(name, offers, shares)

    def plant(self, tree: BudgetTree) -> None:
        """Other budgets, or other namespaces under them."""
        self.touched.update(ledger.NAMESPACE + name for name in self.tree.over.keys() | tree.over.keys())
        self.touched.update(ledger.BUDGET + name for name in tree.budgets)  # and `World.update` what has gone
        self.tree, self.uses = tree, {name: Use() for name in tree.budgets}
        for namespace, budgets in tree.over.items():
            for budget in budgets:
                _add(self.uses[budget].classes, self.claimed.get(namespace, {}))
                _add(self.uses[budget].resources, self.raw.get(namespace, {}))

    def _put_node(self, name: str, offers: tuple[str, ...], shares: dict[str, Share]) -> None:
        before = self._shares.pop(name, {})
        self.touched.update(ledger.CLASS + one for one in before.keys() | shares.keys())
        for counted, sign in ((before, -1), (shares, 1)):
            for class_name, share in counted.items():
                self._totals(class_name).add(share, sign)
        offered = self._offers.pop(name, ())
        for of, sign in ((offered, -1), (offers, 1)):
            _add(self.offering, dict.fromkeys(of, sign))
        for resource in {*offered} ^ {*offers}:
            selling = (one.metadata.name for one in self.links.sold[resource])
            self.touched.update(ledger.CLASS + one for one in selling)
        if shares:
            self._shares[name] = shares
        if offers:
            self._offers[name] = offers

    def _totals(self, class_name: str) -> ClassTotals:
        return self.classes.setdefault(class_name, ClassTotals())


def counted_phase(claim: GPUClaim) -> Phase:
    """One that says Bound and names no node waits for one."""
    is_odd = claim.status.phase is Phase.BOUND and not claim.bound_node
    return Phase.PENDING if is_odd else claim.status.phase


def _add_row(table: dict[str, Amounts], name: str, more: Mapping[str, int]) -> None:
    row = table.setdefault(name, {})
    _add(row, more)
    if not row:
        del table[name]


def _add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, units in more.items():
        units_now = total.pop(name, 0) + units
        if units_now:
            total[name] = units_now
