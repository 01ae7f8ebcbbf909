"""KubeVirt's VirtualMachine and VirtualMachineInstance, with the fields that placement rests on."""

from __future__ import annotations

from model.meta import Lean, ObjectMeta


class HostDevice(Lean):
    """A GPU or host device. Without `device_name` it is allocated by DRA and no business of ours (053)."""

    name: str = ""
    device_name: str = ""


class Devices(Lean):
    """The devices that become extended resources of the launcher's `compute` container."""

    gpus: tuple[HostDevice, ...] = ()
    host_devices: tuple[HostDevice, ...] = ()


class Domain(Lean):
    """The machine itself."""

    devices: Devices = Devices()


class ClaimVolume(Lean):
    """Names a PersistentVolumeClaim; `hotpluggable` ones are missing in the launcher's volumes."""

    claim_name: str = ""
    name: str = ""
    hotpluggable: bool = False


class VmVolume(Lean):
    """A disk; kept only where it may be backed by a PersistentVolumeClaim."""

    name: str = ""
    persistent_volume_claim: ClaimVolume | None = None
    data_volume: ClaimVolume | None = None


class VmiSpec(Lean):
    """What runs."""

    domain: Domain = Domain()
    volumes: tuple[VmVolume, ...] = ()


class PhaseTransition(Lean):
    """When a phase was entered; an entry for Running tells that the VMI did run."""

    phase: str = ""
    phase_transition_timestamp: str | None = None


class VmiStatus(Lean):
    """Where it runs and which pods it lists as its own (R28)."""

    phase: str = ""
    node_name: str = ""
    active_pods: dict[str, str] = {}
    phase_transition_timestamps: tuple[PhaseTransition, ...] = ()


class VirtualMachineInstance(Lean):
    """One run of a VM; each start makes a new one with a new uid."""

    metadata: ObjectMeta = ObjectMeta()
    spec: VmiSpec = VmiSpec()
    status: VmiStatus = VmiStatus()

    @property
    def is_final(self) -> bool:
        """Whether it has ended."""
        return self.status.phase in ("Succeeded", "Failed")


class VmTemplate(Lean):
    """What the VM's instances are made from."""

    metadata: ObjectMeta = ObjectMeta()


class VmSpec(Lean):
    """Whether and how the VM is restarted."""

    run_strategy: str = ""
    running: bool | None = None
    template: VmTemplate = VmTemplate()

    @property
    def strategy(self) -> str:
        """With the deprecated `running` in today's words; empty where neither is said."""
        if self.run_strategy or self.running is None:
            return self.run_strategy
        return "Always" if self.running else "Halted"


class VmStatus(Lean):
    """What KubeVirt says of it."""

    printable_status: str = ""


class VirtualMachine(Lean):
    """A VM, which outlives its instances."""

    metadata: ObjectMeta = ObjectMeta()
    spec: VmSpec = VmSpec()
    status: VmStatus = VmStatus()
