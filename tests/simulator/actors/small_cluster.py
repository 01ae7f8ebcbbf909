"""One node, one VM of a chosen run strategy, every actor: where a test looks at what the actors do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from kube.errors import NotFound
from kube.port import MERGE_STATUS, Json, ObjectKey
from model import resources as r
from model.resources import Resource
from simulator.actors.vm_controller import START
from simulator.apiserver.server import ApiServer
from simulator.cluster import api_server, living
from simulator.objects import gpu_node, gpu_vm
from simulator.virtual_time import Clock

H100 = "nvidia.com/GH100_H100_SXM5_80GB"
VM = "vm1"


@dataclass(slots=True)
class SmallCluster:
    """`first_uid` is the uid of the first VMI."""

    server: ApiServer
    strategy: str
    first_uid: str = ""

    async def sell(self) -> None:
        """Have launchers gated."""
        await self.server.create(
            r.GPU_CLASSES, {"metadata": {"name": "h100"}, "spec": {"resourceName": H100}}
        )

    async def start(self) -> None:
        """Create the VM, start it if that is needed, and give the actors some milliseconds."""
        vm = gpu_vm(VM, {H100: 1})
        vm["spec"]["runStrategy"] = self.strategy
        await self.server.create(r.VIRTUAL_MACHINES, vm)
        if self.strategy == "Manual":
            change = {"status": {"stateChangeRequests": [{"action": START}]}}
            await self.server.patch(self.key(r.VIRTUAL_MACHINES), change, MERGE_STATUS)
        await asyncio.sleep(0.1)
        made = self.server.store.shelf(r.VIRTUAL_MACHINE_INSTANCES).history[0].final
        self.first_uid = made["metadata"]["uid"]

    def key(self, resource: Resource) -> ObjectKey:
        return ObjectKey(resource, VM, "default")

    async def vm(self) -> Json:
        return await self.server.get(self.key(r.VIRTUAL_MACHINES))

    async def vmi(self) -> Json:
        return await self.server.get(self.key(r.VIRTUAL_MACHINE_INSTANCES))

    async def find_vmi(self) -> Json | None:
        try:
            return await self.vmi()
        except NotFound:
            return None

    async def launcher(self) -> ObjectKey:
        (pod,) = self.server.store.scan(r.PODS)
        return ObjectKey(r.PODS, pod["metadata"]["name"], "default")


@asynccontextmanager
async def small_cluster(clock: Clock, strategy: str = "Always") -> AsyncIterator[SmallCluster]:
    """The node gpu-1 with two units, and every actor at work."""
    server = await api_server(clock)
    await server.create(r.NODES, gpu_node("gpu-1", {H100: 2}))
    async with living(server, clock):
        yield SmallCluster(server, strategy)
