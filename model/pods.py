"""The Pod, with the fields that decide where it may run, what it takes and how it fares."""

from __future__ import annotations

from pydantic import Field

from model.meta import Lean, ObjectMeta, Quantities
from model.names import GATE
from model.selectors import NodeSelector
from model.taints import Toleration


class ResourceRequirements(Lean):
    """`limits` are left out: the API server copies them into `requests` where those are missing."""

    requests: Quantities = {}


class ContainerPort(Lean):
    """A port; it binds the pod to nodes where it takes one of the node's own."""

    host_port: int = 0


class Container(Lean):
    """A container or init container; `restart_policy` Always makes an init container a sidecar (R29)."""

    name: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str | None = None
    ports: tuple[ContainerPort, ...] = ()


class NodeAffinity(Lean):
    """Only the required part: preferences do not bind."""

    required: NodeSelector | None = Field(None, alias="requiredDuringSchedulingIgnoredDuringExecution")


class PodAffinityTerm(Lean):
    """That it is there, not what it says: it speaks of other pods."""

    topology_key: str = ""


class PodAffinity(Lean):
    """Only the required part, as a foreign constraint."""

    required: tuple[PodAffinityTerm, ...] = Field((), alias="requiredDuringSchedulingIgnoredDuringExecution")


class Affinity(Lean):
    """The node's side, and whether there are others."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Lean):
    """How pods are to be spread; DoNotSchedule keeps nodes away."""

    topology_key: str = ""
    when_unsatisfiable: str = ""


class PodResourceClaim(Lean):
    """A device that DRA allocates."""

    name: str = ""


class SchedulingGate(Lean):
    """A name that keeps the scheduler away."""

    name: str = ""


class PersistentVolumeClaimSource(Lean):
    """Names a PersistentVolumeClaim of the pod's namespace."""

    claim_name: str = ""


class EphemeralClaimSpec(Lean):
    """Of the claim that the volume will have; every one has access modes."""

    access_modes: tuple[str, ...] = ()


class EphemeralClaim(Lean):
    """The template of that claim."""

    spec: EphemeralClaimSpec = EphemeralClaimSpec()


class EphemeralSource(Lean):
    """A claim that is made for the pod alone, and only once the pod exists."""

    volume_claim_template: EphemeralClaim = EphemeralClaim()


class Volume(Lean):
    """A volume; its source is kept only when it is a claim, since no other constrains the node."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimSource | None = None
    ephemeral: EphemeralSource | None = None


class PodSpec(Lean):
    """What the pod asks for."""

    node_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: Quantities = {}
    resources: ResourceRequirements = ResourceRequirements()
    volumes: tuple[Volume, ...] = ()
    priority: int = 0
    scheduler_name: str = ""
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()


class PodCondition(Lean):
    """A condition without its probe time."""

    type: str = ""
    status: str = ""
    reason: str = ""
    last_transition_time: str | None = None


class ContainerMoment(Lean):
    """When a container began to run."""

    started_at: str | None = None


class ContainerState(Lean):
    """Running, terminated, or neither: waiting."""

    running: ContainerMoment | None = None
    terminated: ContainerMoment | None = None


class ContainerStatus(Lean):
    """How one container fares, and what the node has given it: a resize may not be done yet (R29)."""

    name: str = ""
    state: ContainerState = ContainerState()
    allocated_resources: Quantities | None = None
    resources: ResourceRequirements | None = None


class PodStatus(Lean):
    """How the pod fares."""

    phase: str = ""
    reason: str = ""
    nominated_node_name: str = ""
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    allocated_resources: Quantities | None = None
    resources: ResourceRequirements | None = None


class Pod(Lean):
    """A pod: a launcher, or any other that asks for GPUs."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def is_terminal(self) -> bool:
        """Whether it has ended for good and holds nothing (R26)."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def required_affinity(self) -> NodeSelector | None:
        """The required node affinity, or None."""
        affinity = self.spec.affinity.node_affinity if self.spec.affinity else None
        return affinity.required if affinity else None

    @property
    def is_gated(self) -> bool:
        """Whether our gate is on it. The spec decides, never the condition: that one lags."""
        return any(gate.name == GATE for gate in self.spec.scheduling_gates)
