"""The kinds that are watched, and the model that each is read as: the one list that ingest and fold share."""

from __future__ import annotations

from dataclasses import dataclass

from model import resources as r
from model.claims import GPUBudget, GPUClaim, GPUClass
from model.kubevirt import VirtualMachine, VirtualMachineInstance
from model.lean import Prune, prune_of
from model.meta import Lean
from model.namespaces import Namespace
from model.nodes import Node
from model.pods import Pod
from model.resources import Resource
from model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass


@dataclass(frozen=True, slots=True)
class WatchedKind:
    """A kind whose changes enter the log. `is_optional`: its CRD may be installed later (R32)."""

    resource: Resource
    model: type[Lean]
    prune: Prune
    is_optional: bool = False


def _watched(resource: Resource, model: type[Lean], *, is_optional: bool = False) -> WatchedKind:
    return WatchedKind(resource, model, prune_of(model), is_optional)


WATCHED: tuple[WatchedKind, ...] = (
    _watched(r.NODES, Node),
    _watched(r.NAMESPACES, Namespace),
    _watched(r.PODS, Pod),
    _watched(r.PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim),
    _watched(r.PERSISTENT_VOLUMES, PersistentVolume),
    _watched(r.STORAGE_CLASSES, StorageClass),
    _watched(r.GPU_CLASSES, GPUClass),
    _watched(r.GPU_CLAIMS, GPUClaim),
    _watched(r.GPU_BUDGETS, GPUBudget),
    _watched(r.VIRTUAL_MACHINES, VirtualMachine, is_optional=True),
    _watched(r.VIRTUAL_MACHINE_INSTANCES, VirtualMachineInstance, is_optional=True),
)
BY_KIND: dict[str, WatchedKind] = {kind.resource.kind: kind for kind in WATCHED}
