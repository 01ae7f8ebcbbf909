"""Room: what each node can give, what is taken of it, and what is left (R26).

A claim takes its units where it is Bound. A pod takes, of each GPU resource, what claims of its VMI held on
the same node do not cover, and of everything else all that it asks for. Terminating pods count; ended ones
do not. Placing a set books it here, so that the next set of the same pass sees less.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from binder.core.catalogue import Catalogue
from binder.core.launchers import Launcher, pinned_node, vm_of
from binder.core.requests import Units, allocatable_units, effective_request
from binder.core.sets import ClaimSet
from binder.core.state import ClusterState
from model.claims import GPUClaim
from model.nodes import Node
from model.pods import Pod

PODS = "pods"
"""The resource that every pod takes one of."""


@dataclass(slots=True)
class NodeRoom:
    """One node's amounts."""

    allocatable: Units
    taken: Units = field(default_factory=dict)

    def free(self, resource: str) -> int:
        """What is left; negative where more is taken than there is."""
        return self.allocatable.get(resource, 0) - self.taken.get(resource, 0)

    def take(self, resource: str, amount: int) -> None:
        """Book; a negative amount gives back."""
        self.taken[resource] = self.taken.get(resource, 0) + amount


Room = Mapping[str, NodeRoom]


def measure_room(state: ClusterState, shop: Catalogue, launchers: Mapping[str, Launcher]) -> Room:
    """The room on every node, before the pass places anything."""
    room = {name: NodeRoom(allocatable_units(node.status.allocatable)) for name, node in nodes_by_name(state)}
    for claim in shop.claims.values():
        gpu_class = shop.classes.get(claim.spec.class_name)
        if gpu_class is not None and claim.bound_node in room:
            room[claim.bound_node].take(gpu_class.spec.resource_name, claim.spec.units)
    sold = {c.spec.resource_name for c in shop.classes.values()}
    for pod in state.of(Pod).values():
        launcher = launchers.get(pod.metadata.uid)
        node = node_of(pod, launcher)
        if node in room and not pod.is_terminal:
            covered = _covered(launcher, node, shop) if launcher else {}
            _take_pod(room[node], pod, sold, covered)
    return room


def nodes_by_name(state: ClusterState) -> list[tuple[str, Node]]:
    """All nodes, sorted by name."""
    return sorted((name, node) for (_, name), node in state.of(Node).items())


def node_of(pod: Pod, launcher: Launcher | None) -> str:
    """Where the pod takes room: its node, or for an ungated launcher already the node of its pin."""
    if pod.spec.node_name or launcher is None or pod.spec.scheduling_gates:
        return pod.spec.node_name
    return pinned_node(pod)


def book_set(room: Room, placed: ClaimSet, node: str, other: Units) -> None:
    """Move the set's units to the node, and take what its launcher asks for besides."""
    for member in placed.members:
        if member.node in room:
            room[member.node].take(member.resource, -member.units)
        room[node].take(member.resource, member.units)
    for resource, amount in other.items():
        room[node].take(resource, amount)


def other_request(claim_set: ClaimSet) -> Units:
    """What the set's launcher asks for besides the GPU resources of the set, its place as a pod included."""
    if claim_set.launcher is None:
        return {}
    gpus = claim_set.needs()
    request = effective_request(claim_set.launcher.pod)
    return {PODS: 1} | {r: n for r, n in request.items() if r not in gpus and n > 0}


def claims_serving(launcher: Launcher, shop: Catalogue) -> Iterable[GPUClaim]:
    """The claims of the launcher's VMI: its template claims, and the orders that its VM uses."""
    vmi = launcher.vmi
    yield from shop.by_owner.get(vmi.metadata.uid, ())
    yield from shop.by_user.get(vm_of(vmi, shop.vms).uid, ())


def _covered(launcher: Launcher, node: str, shop: Catalogue) -> Units:
    covered: Units = {}
    for claim in claims_serving(launcher, shop):
        gpu_class = shop.classes.get(claim.spec.class_name)
        if gpu_class is not None and claim.bound_node == node:
            resource = gpu_class.spec.resource_name
            covered[resource] = covered.get(resource, 0) + claim.spec.units
    return covered


def _take_pod(node: NodeRoom, pod: Pod, sold: set[str], covered: Units) -> None:
    node.take(PODS, 1)
    for resource, amount in effective_request(pod).items():
        node.take(resource, max(0, amount - covered.get(resource, 0)) if resource in sold else amount)
