"""Which nodes a launcher's volumes reach (R8c).

A claim that is bound to a node-bound volume allows that volume's nodes only; several must all agree. An
unbound claim of an Immediate class keeps every node away until it is bound; one of a WaitForFirstConsumer
class waits for our pin and so constrains nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from binder.core.launchers import Launcher
from binder.core.sets import Obstacle
from binder.core.state import ClusterState
from model.reasons import Reason
from model.selectors import NodeSelector
from model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass

VolumeReach = tuple[NodeSelector, ...]
"""Selectors that a node must all match."""


def volume_reach(launcher: Launcher, state: ClusterState) -> VolumeReach | Obstacle:
    """What the launcher's volumes demand of a node, or VolumePending."""
    namespace = launcher.pod.metadata.namespace
    reach: list[NodeSelector] = []
    for name in sorted(set(claim_names(launcher))):
        claim = state.of(PersistentVolumeClaim).get((namespace, name))
        if claim is None:
            return Obstacle(Reason.VOLUME_PENDING, f"PersistentVolumeClaim {namespace}/{name} does not exist")
        volume = state.of(PersistentVolume).get(("", claim.spec.volume_name))
        if volume is None:
            if not _waits_for_consumer(claim, state):
                return Obstacle(
                    Reason.VOLUME_PENDING, f"PersistentVolumeClaim {namespace}/{name} is not bound"
                )
        elif volume.spec.node_affinity and volume.spec.node_affinity.required:
            reach.append(volume.spec.node_affinity.required)
    return tuple(reach)


def claim_names(launcher: Launcher) -> Iterable[str]:
    """The PersistentVolumeClaims of the pod, and the hotpluggable ones of the VMI, which the pod lacks."""
    for volume in launcher.pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name
    for disk in launcher.vmi.spec.volumes:
        if disk.persistent_volume_claim is not None and disk.persistent_volume_claim.hotpluggable:
            yield disk.persistent_volume_claim.claim_name
        if disk.data_volume is not None and disk.data_volume.hotpluggable:
            yield disk.data_volume.name


def _waits_for_consumer(claim: PersistentVolumeClaim, state: ClusterState) -> bool:
    if claim.spec.volume_name:
        return False
    storage_class = state.of(StorageClass).get(("", claim.spec.storage_class_name or ""))
    return storage_class is not None and storage_class.volume_binding_mode == "WaitForFirstConsumer"
