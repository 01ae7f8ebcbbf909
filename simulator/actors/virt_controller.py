"""virt-controller: VMs to VMIs to launchers."""

from __future__ import annotations

from dataclasses import dataclass, field

from kube.port import Json
from model.resources import PODS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES, Resource
from simulator.actors.acting import Stage
from simulator.actors.vm_controller import Last, tend_vm
from simulator.actors.vmi_controller import tend_vmi


@dataclass(slots=True)
class VirtController:
    """Tends every VM and VMI; one whose object has just changed is looked at again."""

    resources: tuple[Resource, ...] = (VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES, PODS)
    _last: dict[str, Last] = field(default_factory=dict)

    async def act(self, stage: Stage) -> float | None:
        """See Actor."""
        vms, vmis = stage.cache.of(VIRTUAL_MACHINES), stage.cache.of(VIRTUAL_MACHINE_INSTANCES)
        known = {vm["metadata"]["uid"] for vm in vms}
        self._last = {uid: last for uid, last in self._last.items() if uid in known}

        async def tend(vm: Json) -> float | None:
            return await tend_vm(stage, vm, self._last.setdefault(vm["metadata"]["uid"], Last()))

        vms_s = await stage.attend(VIRTUAL_MACHINES, vms, tend)
        vmis_s = await stage.attend(VIRTUAL_MACHINE_INSTANCES, vmis, lambda vmi: tend_vmi(stage, vmi))
        return min((wait_s for wait_s in (vms_s, vmis_s) if wait_s is not None), default=None)
