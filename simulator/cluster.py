"""A whole simulated cluster: the API server with KubeVirt and our own kinds, and every actor."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from admission.gate import gate_launcher
from kube.port import Client, Json
from model.crds import all_crds
from model.resources import CUSTOM_RESOURCE_DEFINITIONS, GPU_CLASSES, PODS, Resource
from simulator.actors.acting import Actor, live
from simulator.actors.garbage_collector import GarbageCollector
from simulator.actors.kubelet import Kubelet
from simulator.actors.migration import MigrationController
from simulator.actors.node_lifecycle import NodeLifecycle
from simulator.actors.pod_collector import PodCollector
from simulator.actors.scheduler import Scheduler
from simulator.actors.virt_controller import VirtController
from simulator.actors.virt_handler import VirtHandler
from simulator.apiserver.served import COZYSTACK, KUBEVIRT
from simulator.apiserver.server import ApiServer


async def api_server(clock: Callable[[], int], seed: int = 0) -> ApiServer:
    """An API server that serves KubeVirt's, Cozystack's and our kinds, and gates launchers."""
    server = ApiServer(clock, seed)
    server.kinds.add(*KUBEVIRT, *COZYSTACK)
    for crd in all_crds():
        await server.create(CUSTOM_RESOURCE_DEFINITIONS, crd)
    server.mutators.append(gate_policy(server))
    return server


def gate_policy(server: ApiServer) -> Callable[[Resource, Json], Json | None]:
    """The gate, as the MutatingAdmissionPolicy of a real API server sets it."""

    def mutate(resource: Resource, obj: Json) -> Json | None:
        if resource != PODS:
            return None
        sold = {gpu_class["spec"]["resourceName"] for gpu_class in server.store.scan(GPU_CLASSES)}
        return gate_launcher(obj, sold)

    return mutate


@asynccontextmanager
async def living(
    server: ApiServer, clock: Callable[[], int], *, grace_s: float = 40.0
) -> AsyncIterator[None]:
    """Let all actors act while the context is open."""
    collecting = asyncio.create_task(GarbageCollector(server).live())
    try:
        async with playing(
            server,
            clock,
            (*kubevirt(), MigrationController(), Scheduler(server), NodeLifecycle(grace_s), PodCollector()),
        ):
            yield
    finally:
        collecting.cancel()
        await asyncio.gather(collecting, return_exceptions=True)


def kubevirt() -> tuple[Actor, ...]:
    """The actors that a real control plane lacks here: KubeVirt and the kubelets."""
    return (VirtController(), Kubelet(), VirtHandler())


@asynccontextmanager
async def playing(client: Client, clock: Callable[[], int], actors: tuple[Actor, ...]) -> AsyncIterator[None]:
    """Let some actors act through a client, of the simulator or of a real API server."""
    tasks = [asyncio.create_task(live(actor, client, clock)) for actor in actors]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, Exception):
                raise result
