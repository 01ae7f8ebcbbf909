"""Which nodes a launcher's volumes reach (R8c).

Rules read in kubernetes/kubernetes pkg/scheduler/framework/plugins/volumebinding and volumezone, and
component-helpers/storage/volume. What volumes demand is put into selectors, which a node must all match:

- A bound claim allows the nodes of its volume's node affinity, and of its volume's zone and region labels.
- An unbound claim of a WaitForFirstConsumer class allows the nodes where a volume can be made or a free
  one is; once a node was selected for it, that one.
- Any other claim keeps every node away: until it is bound, or for good where it is Lost or being deleted.

A claim that a pod names twice counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from binder.core.launchers import Launcher, controller_uid
from binder.core.nodes import FreeVolume, VolumeChoice, VolumeWish, labels_match
from binder.core.sets import Obstacle
from binder.core.state import ClusterState
from model.pods import Pod
from model.quantity import MalformedQuantity, nano_units
from model.reasons import Reason
from model.selectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from model.taints import is_label_value

VolumeReach = tuple[NodeSelector | VolumeChoice, ...]
"""What a node must all match (`selector_matches`)."""

SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""On an unbound claim: the scheduler has chosen, and its volume is being made there."""
NO_PROVISIONER = "kubernetes.io/no-provisioner"
_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
_OLD_ZONE, _OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
_NEWER = {_OLD_ZONE: _ZONE, _OLD_REGION: _REGION}
_TOPOLOGY = (_OLD_ZONE, _OLD_REGION, _ZONE, _REGION)


@dataclass(frozen=True, slots=True)
class _Pending:
    """Why a claim cannot say yet, or will never say, which nodes it allows."""

    why: str


@dataclass(frozen=True, slots=True)
class _Unbound:
    """A claim whose volume is still to be chosen or made."""

    size: int
    wish: VolumeWish


def volume_reach(launcher: Launcher, state: ClusterState) -> VolumeReach | Obstacle:
    """What the launcher's volumes demand of a node, or VolumePending."""
    names = sorted(set(claim_names(launcher)))
    if not names:
        return ()
    namespace = launcher.pod.metadata.namespace
    made_for_pod = set(_ephemeral(launcher.pod))
    reach: list[NodeSelector] = []
    unbound: list[_Unbound] = []
    for name in names:
        claim = state.of(PersistentVolumeClaim).get((namespace, name))
        demands = _Pending("does not exist") if claim is None else _demands(claim, state)
        if claim and name in made_for_pod and not _is_made_for(claim, launcher.pod):
            demands = _Pending("was not made for this pod")
        match demands:
            case _Pending():
                text = f"PersistentVolumeClaim {namespace}/{name} {demands.why}"
                return Obstacle(Reason.VOLUME_PENDING, text)
            case _Unbound():
                unbound.append(demands)
            case _:
                reach += demands
    return (*reach, *_chosen_at_once(unbound))


def claim_names(launcher: Launcher) -> Iterable[str]:
    """The PersistentVolumeClaims of the pod, and the hotpluggable ones of the VMI, which the pod lacks."""
    for volume in launcher.pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name
    yield from _ephemeral(launcher.pod)
    for disk in launcher.vmi.spec.volumes:
        if disk.persistent_volume_claim is not None and disk.persistent_volume_claim.hotpluggable:
            yield disk.persistent_volume_claim.claim_name
        if disk.data_volume is not None and disk.data_volume.hotpluggable:
            yield disk.data_volume.name


def _ephemeral(pod: Pod) -> Iterator[str]:
    """Claims that are made for the pod alone, once it exists."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is None and volume.ephemeral is not None:
            yield f"{pod.metadata.name}-{volume.name}"


def _is_made_for(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    return controller_uid(claim.metadata, "Pod") == pod.metadata.uid


def _demands(claim: PersistentVolumeClaim, state: ClusterState) -> list[NodeSelector] | _Unbound | _Pending:
    volume_name, phase = claim.spec.volume_name, claim.status.phase
    if phase == "Lost":
        return _Pending(f"has lost its PersistentVolume {volume_name}")
    if claim.metadata.deletion_timestamp is not None:
        return _Pending("is being deleted")
    if not volume_name:
        return _demands_of_unbound(claim, state)
    if phase == "Pending":
        return _Pending(f"is not bound to PersistentVolume {volume_name} yet")
    volume = state.of(PersistentVolume).get(("", volume_name))
    if volume is None:
        return _Pending(f"is bound to PersistentVolume {volume_name}, which does not exist")
    affinity = _affinity(volume)
    return [*([affinity] if affinity else []), *_zones(volume)]


def _demands_of_unbound(
    claim: PersistentVolumeClaim, state: ClusterState
) -> list[NodeSelector] | _Unbound | _Pending:
    storage_class = state.of(StorageClass).get(("", claim.spec.storage_class_name or ""))
    if storage_class is None or storage_class.volume_binding_mode != "WaitForFirstConsumer":
        return _Pending("is not bound")
    made_on = _made_on(storage_class)
    selected = claim.metadata.annotations.get(SELECTED_NODE)
    if selected is not None:
        return [_named(selected), *([made_on] if made_on else [])]
    if made_on is None:
        return []
    free = [
        volume
        for _, volume in sorted(state.of(PersistentVolume).items())
        if volume.spec.storage_class_name == storage_class.metadata.name and _could_serve(volume, claim)
    ]
    free.sort(key=lambda volume: _size(volume.spec.capacity))
    volumes = tuple(FreeVolume(volume.metadata.name, _affinity(volume)) for volume in free)
    return _Unbound(_size(claim.spec.resources.requests), VolumeWish(made_on, volumes))


def _made_on(storage_class: StorageClass) -> NodeSelector | None:
    """Where volumes of the class can be made; None: everywhere."""
    if storage_class.provisioner == NO_PROVISIONER:
        return NodeSelector()
    if not storage_class.allowed_topologies:
        return None
    terms = (
        _all_of(*(_one_of(one.key, one.values) for one in term.match_label_expressions))
        for term in storage_class.allowed_topologies
        if term.match_label_expressions
    )
    return NodeSelector(node_selector_terms=tuple(terms))


def _chosen_at_once(unbound: list[_Unbound]) -> VolumeReach:
    """Claims that may want the same volumes are looked at together, the smallest first; others each alone."""
    names = [volume.name for one in unbound for volume in one.wish.volumes]
    if len(names) != len(set(names)):
        return (VolumeChoice(tuple(one.wish for one in sorted(unbound, key=lambda one: one.size))),)
    alone = (_alone(one.wish) for one in unbound)
    return tuple(selector for selector in alone if selector is not None)


def _alone(wish: VolumeWish) -> NodeSelector | None:
    """Where the volume can be made or a free one is; None: everywhere."""
    terms = list(wish.made_on.node_selector_terms)
    for volume in wish.volumes:
        if volume.nodes is None:
            return None
        terms += volume.nodes.node_selector_terms
    return NodeSelector(node_selector_terms=tuple(_merged(terms)))


def _affinity(volume: PersistentVolume) -> NodeSelector | None:
    """Its node affinity, None where it allows every node.

    The scheduler looks at the labels only: fields are passed over, so a term of nothing else always matches.
    """
    required = volume.spec.node_affinity.required if volume.spec.node_affinity else None
    if required is None:
        return None
    terms = required.node_selector_terms
    if any(term.match_fields and not term.match_expressions for term in terms):
        return None
    return NodeSelector(
        node_selector_terms=tuple(
            NodeSelectorTerm(match_expressions=term.match_expressions) for term in terms
        )
    )


def _zones(volume: PersistentVolume) -> Iterator[NodeSelector]:
    """What its zone and region labels demand: nothing of a node without any such label."""
    for key in _TOPOLOGY:
        parts = [part.strip() for part in volume.metadata.labels.get(key, "").split("__")]
        if not all(parts):
            continue  # absent, or a label that the scheduler cannot read
        values = tuple(part for part in parts if is_label_value(part))
        terms = [
            _all_of(*(NodeSelectorRequirement(key=one, operator="DoesNotExist") for one in _TOPOLOGY)),
            _all_of(_one_of(key, values)),
        ]
        if key in _NEWER:
            lacks = NodeSelectorRequirement(key=key, operator="DoesNotExist")
            terms.append(_all_of(lacks, _one_of(_NEWER[key], values)))
        yield NodeSelector(node_selector_terms=tuple(terms))


def _could_serve(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume fits the claim wherever its nodes are; one kept for the claim need not be free."""
    spec, wanted, owner = volume.spec, claim.spec, volume.spec.claim_ref
    is_its_own = owner is not None and (owner.namespace, owner.name) == (
        claim.metadata.namespace,
        claim.metadata.name,
    )
    if owner is not None and not (is_its_own and owner.uid in ("", claim.metadata.uid)):
        return False
    return (
        volume.metadata.deletion_timestamp is None
        and _size(spec.capacity) >= _size(wanted.resources.requests)
        and (spec.volume_mode or "Filesystem") == (wanted.volume_mode or "Filesystem")
        and (spec.volume_attributes_class_name or "") == (wanted.volume_attributes_class_name or "")
        and (is_its_own or _is_free_for(volume, claim))
    )


def _is_free_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    selector = claim.spec.selector
    return (
        volume.status.phase == "Available"
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
        and (selector is None or labels_match(selector, volume.metadata.labels))
    )


def _size(quantities: dict[str, str]) -> int:
    try:
        return nano_units(quantities.get("storage", "0"))
    except MalformedQuantity:
        return 0


def _merged(terms: Iterable[NodeSelectorTerm]) -> Iterator[NodeSelectorTerm]:
    """Terms of one `In` on the same key as one term: local volumes have a term a node."""
    values: dict[str, dict[str, None]] = {}
    for term in terms:
        first, *others = term.match_expressions or (NodeSelectorRequirement(),)
        if others or first.operator != "In" or not first.is_label_condition:
            yield term
        else:
            values.setdefault(first.key, {}).update(dict.fromkeys(first.values))
    for key, found in values.items():
        yield _all_of(_one_of(key, tuple(found)))


def _all_of(*requirements: NodeSelectorRequirement) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=requirements)


def _one_of(key: str, values: tuple[str, ...]) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key=key, operator="In", values=values)


def _named(node: str) -> NodeSelector:
    name = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node,))
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(name,)),))
