"""virt-controller: VMs to VMIs to launchers."""

from __future__ import annotations

from dataclasses import dataclass, field

from kube.errors import Conflict, NotFound
from model.resources import PODS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES, Resource
from simulator.actors.acting import RETRY_S, Stage
from simulator.actors.vm_controller import Last, tend_vm
from simulator.actors.vmi_controller import tend_vmi


@dataclass(slots=True)
class VirtController:
    """Tends every VM and VMI; one whose object has just changed is looked at again."""

    resources: tuple[Resource, ...] = (VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES, PODS)
    _last: dict[str, Last] = field(default_factory=dict)

    async def act(self, stage: Stage) -> float | None:
        """See Actor."""
        waits: list[float] = []
        for vm in stage.cache.of(VIRTUAL_MACHINES):
            last = self._last.setdefault(vm["metadata"]["uid"], Last())
            try:
                wait_s = await tend_vm(stage, vm, last)
            except (Conflict, NotFound):
                wait_s = RETRY_S
            waits += [wait_s] if wait_s is not None else []
        for vmi in stage.cache.of(VIRTUAL_MACHINE_INSTANCES):
            try:
                await tend_vmi(stage, vmi)
            except (Conflict, NotFound):
                waits.append(RETRY_S)
        return min(waits, default=None)
