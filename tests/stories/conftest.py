"""What the stories are given: a real control plane with the gate, GPU nodes, a Redis, a namespace each."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from admission.policies import gate_policy
from eventlog.adapters.embedded import EmbeddedServer
from kube.adapters.http import HttpClient, connect
from kube.errors import AlreadyExists, Conflict, NotFound
from kube.port import Client, DeleteOptions, Json, ObjectKey, Selection, list_all
from model.names import GATE
from model.resources import (
    GPU_CLAIMS,
    GPU_CLASSES,
    NAMESPACES,
    NODES,
    PODS,
    VIRTUAL_MACHINE_INSTANCES,
    VIRTUAL_MACHINES,
    Resource,
)
from simulator.actors.kubelet import Kubelet
from simulator.cluster import kubevirt, playing
from simulator.objects import gpu_node, gpu_vm
from tests.admission.pods_to_gate import LAUNCHER, gpus, pod
from tests.cluster.control_plane import ControlPlane
from tests.cluster.fixtures import control_plane

__all__ = ["control_plane"]

LIMIT_S = 40.0
_numbers = itertools.count(1)
MUTATING_POLICIES = Resource(
    "admissionregistration.k8s.io", "v1", "mutatingadmissionpolicies", "MutatingAdmissionPolicy", False
)
MUTATING_BINDINGS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingadmissionpolicybindings",
    "MutatingAdmissionPolicyBinding",
    is_namespaced=False,
)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Stage:
    """One story's own corner of the cluster: a namespace, a resource that only its nodes have, a class."""

    client: HttpClient
    kubeconfig: Path
    redis: str
    folder: Path
    namespace: str
    resource: str
    class_name: str
    limit_s: float = LIMIT_S
    check: Callable[[], None] = lambda: None
    """Raises when a server has ended."""

    async def add_node(self, name: str, units: int) -> str:
        """A GPU node whose kubelet the actors play; returns its name."""
        await self.client.create(NODES, gpu_node(f"{self.namespace}-{name}", {self.resource: units}))
        return f"{self.namespace}-{name}"

    async def start_vm(self, name: str) -> None:
        """A VM that asks for one unit."""
        await self.client.create(VIRTUAL_MACHINES, gpu_vm(name, {self.resource: 1}, self.namespace))

    async def clear(self) -> None:
        """Take away what the story has made: the next one's actors shall not meet it."""
        for node in (await list_all(self.client, NODES)).items:
            if node["metadata"]["name"].startswith(f"{self.namespace}-"):
                await self.client.delete(ObjectKey(NODES, node["metadata"]["name"]))
        with suppress(NotFound):
            await self.client.delete(ObjectKey(GPU_CLASSES, self.class_name))
        for kind in (VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES, PODS):
            for obj in (await list_all(self.client, kind, Selection(self.namespace))).items:
                key = self.key(kind, obj["metadata"]["name"])
                with suppress(NotFound):
                    await self.client.patch(key, {"metadata": {"finalizers": None}})
                    await self.client.delete(key, DeleteOptions(grace_s=0))
        with suppress(NotFound, Conflict):  # it may be on its way out
            await self.client.delete(ObjectKey(NAMESPACES, self.namespace))

    async def claims(self) -> list[Json]:
        """The claims of the story."""
        return (await list_all(self.client, GPU_CLAIMS, Selection(self.namespace))).items

    def key(self, resource: Resource, name: str) -> ObjectKey:
        """An object of the story's namespace."""
        return ObjectKey(resource, name, self.namespace)

    async def until(self, what: str, holds: Callable[[], Awaitable[bool]]) -> None:
        """Wait, bounded, until it holds."""
        deadline = time.monotonic() + self.limit_s
        while not await holds():
            self.check()
            assert time.monotonic() < deadline, f"{what}: not within {self.limit_s} s; logs in {self.folder}"
            await asyncio.sleep(0.02)


@pytest.fixture(scope="session")
def redis() -> Iterator[str]:
    server = EmbeddedServer()
    server.start()
    yield server.url
    server.stop()


@pytest.fixture
async def stage(control_plane: ControlPlane, redis: str, tmp_path: Path) -> AsyncIterator[Stage]:
    number = next(_numbers)
    namespace, resource = f"story-{number}", f"nvidia.com/STORY_{number}"
    kubeconfig = control_plane.kubeconfig()
    async with await connect(str(kubeconfig)) as client:
        await _install_gate(client)
        await client.create(NAMESPACES, {"metadata": {"name": namespace}})
        await client.create(
            GPU_CLASSES, {"metadata": {"name": f"class-{number}"}, "spec": {"resourceName": resource}}
        )
        # Each story has a Redis database of its own: what an earlier binder has read is not this one's.
        database = f"{redis}?db={number % 16}"
        stage = Stage(client, kubeconfig, database, tmp_path, namespace, resource, f"class-{number}")
        await stage.until("the gate is in force for the class", lambda: _is_gated(stage))
        yield stage
        await stage.clear()


@pytest.fixture
async def kubelets(stage: Stage) -> AsyncIterator[None]:
    """The kubelets alone: the test plays KubeVirt with recorded objects."""
    async with playing(stage.client, now_ms, (Kubelet(),)):
        yield


@pytest.fixture
async def actors(stage: Stage) -> AsyncIterator[None]:
    """KubeVirt and the kubelets, played on the real API server."""
    async with playing(stage.client, now_ms, kubevirt()):
        yield


async def _install_gate(client: Client) -> None:
    policy, binding = gate_policy()
    for resource, body in ((MUTATING_POLICIES, policy), (MUTATING_BINDINGS, binding)):
        with suppress(AlreadyExists):
            await client.create(resource, body)


async def _is_gated(stage: Stage) -> bool:
    """Whether the API server gates a launcher of the class by now; nothing stays of the trial."""
    name = "trial"
    gates = await gates_of(stage, pod(LAUNCHER, gpus("1", stage.resource)), name)
    await stage.client.delete(stage.key(PODS, name), DeleteOptions(grace_s=0))
    return gates == [GATE]


async def gates_of(stage: Stage, body: Json, name: str) -> list[str]:
    """The gates that a new pod is given. No node fits it: one that slips through takes nobody's unit."""
    made = {
        **body,
        "metadata": {**body["metadata"], "name": name, "namespace": stage.namespace},
        "spec": {**body["spec"], "nodeSelector": {"story": "nowhere"}},
    }
    created = await stage.client.create(PODS, made)
    return [gate["name"] for gate in created["spec"].get("schedulingGates") or []]
