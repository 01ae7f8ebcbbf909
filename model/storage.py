"""Volumes, as far as they tie a pod to nodes (R8c)."""

from __future__ import annotations

from model.meta import Lean, ObjectMeta, Quantities
from model.selectors import LabelSelector, NodeSelector


class StorageRequirements(Lean):
    """How much is wanted."""

    requests: Quantities = {}


class PersistentVolumeClaimSpec(Lean):
    """Which volume serves the claim (none until one is chosen), and which could."""

    volume_name: str = ""
    storage_class_name: str | None = None
    access_modes: tuple[str, ...] = ()
    resources: StorageRequirements = StorageRequirements()
    selector: LabelSelector | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


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


class ClaimReference(Lean):
    """The claim that a volume belongs to."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class PersistentVolumeSpec(Lean):
    """Where the volume is and whom it can serve; its source, which may name secrets, is left out."""

    node_affinity: VolumeNodeAffinity | None = None
    storage_class_name: str = ""
    capacity: Quantities = {}
    access_modes: tuple[str, ...] = ()
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    claim_ref: ClaimReference | None = None


class PersistentVolume(Lean):
    """A piece of storage."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PhaseStatus = PhaseStatus()


class TopologyRequirement(Lean):
    """Values of which a node's label must have one."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologyTerm(Lean):
    """Requirements that must all hold. A term without any matches no node."""

    match_label_expressions: tuple[TopologyRequirement, ...] = ()


class StorageClass(Lean):
    """How claims of the class are bound, Immediate or WaitForFirstConsumer, and where volumes can be made."""

    metadata: ObjectMeta = ObjectMeta()
    volume_binding_mode: str | None = None
    provisioner: str = ""
    allowed_topologies: tuple[TopologyTerm, ...] = ()
