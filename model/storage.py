"""Volumes, as far as they tie a pod to nodes (R8c)."""

from __future__ import annotations

from model.meta import Lean, ObjectMeta
from model.selectors import NodeSelector


class PersistentVolumeClaimSpec(Lean):
    """Which volume serves the claim; empty until it is bound."""

    volume_name: str = ""
    storage_class_name: str | None = None


class PhaseStatus(Lean):
    """Pending, Bound, Lost and alike."""

    phase: str = ""


class PersistentVolumeClaim(Lean):
    """A claim on storage."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PhaseStatus = PhaseStatus()


class VolumeNodeAffinity(Lean):
    """The nodes that reach the volume; terms are ORed (030)."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(Lean):
    """Where the volume is; its source, which may name secrets, is left out."""

    node_affinity: VolumeNodeAffinity | None = None


class PersistentVolume(Lean):
    """A piece of storage."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PhaseStatus = PhaseStatus()


class StorageClass(Lean):
    """How claims of the class are bound: Immediate or WaitForFirstConsumer."""

    metadata: ObjectMeta = ObjectMeta()
    volume_binding_mode: str | None = None
