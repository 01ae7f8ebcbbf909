"""A recording played again on the simulated cluster: its nodes and VMs, the same steps by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from kube.port import MERGE_STATUS, Client, Json, ObjectKey, Selection, WatchType, list_all
from model import resources as r
from model.names import GATE
from model.resources import Resource
from simulator.actors.kubelet import DEAD, KUBELET, REFUSE
from simulator.cluster import api_server, living
from simulator.virtual_time import Clock, run_virtual
from tests.recordings.recording import H100, Event, begin_ms, recorded

CLASS = "recorded-h100"
GRACE_S = 12.0
"""--node-monitor-grace-period of the recorded control plane."""
WATCHED = (r.NODES, r.PODS, r.VIRTUAL_MACHINES, r.VIRTUAL_MACHINE_INSTANCES)
_KNOBS = {"fakelet/refuse": REFUSE, "fakelet/dead": DEAD}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(slots=True)
class Played:
    """The cluster of one recording, and what its watches have shown so far."""

    client: Client
    source: list[Event]
    events: list[Event] = field(default_factory=list)

    async def furnish(self) -> None:
        """The class on sale and the recording's nodes."""
        sold = {"metadata": {"name": CLASS}, "spec": {"resourceName": H100}}
        await self.client.create(r.GPU_CLASSES, sold)
        for event in self.source:
            if event.kind == "Node" and event.type == "LIST":
                await self.client.create(r.NODES, _node(event.object))

    async def create_vm(self, name: str) -> None:
        """The VM as it was first seen in the recording."""
        first = next(e.object for e in self.source if e.kind == "VirtualMachine" and _name(e) == name)
        meta = {key: first["metadata"][key] for key in ("name", "namespace")}
        await self.client.create(r.VIRTUAL_MACHINES, {"metadata": meta, "spec": first["spec"]})

    async def pin(self, vm: str, node: str) -> None:
        """Affinity and gate in one merge patch, as R10 words it."""
        pod = await self._launcher(vm)
        required = pod["spec"]["affinity"]["nodeAffinity"][_REQUIRED]
        field_of = {"key": "metadata.name", "operator": "In", "values": [node]}
        for term in required["nodeSelectorTerms"]:
            term["matchFields"] = [field_of]
        gates = [gate for gate in pod["spec"]["schedulingGates"] if gate["name"] != GATE]
        spec = {"affinity": {"nodeAffinity": {_REQUIRED: required}}, "schedulingGates": gates or None}
        version = {"resourceVersion": pod["metadata"]["resourceVersion"]}
        await self.client.patch(_key(r.PODS, pod["metadata"]["name"]), {"metadata": version, "spec": spec})

    async def delete_vmi(self, name: str) -> None:
        await self.client.delete(_key(r.VIRTUAL_MACHINE_INSTANCES, name))

    async def delete_launcher(self, vm: str) -> None:
        await self.client.delete(_key(r.PODS, (await self._launcher(vm))["metadata"]["name"]))

    async def start(self, name: str) -> None:
        """As virt-api does it for `virtctl start`."""
        change = {"status": {"stateChangeRequests": [{"action": "Start"}]}}
        await self.client.patch(_key(r.VIRTUAL_MACHINES, name), change, MERGE_STATUS)

    async def _launcher(self, vm: str) -> Json:
        pods = (await list_all(self.client, r.PODS, Selection("default"))).items
        (pod,) = (p for p in pods if any(o["name"] == vm for o in p["metadata"].get("ownerReferences", [])))
        return pod

    async def delete_vm(self, name: str) -> None:
        await self.client.delete(_key(r.VIRTUAL_MACHINES, name))

    async def halt(self, name: str) -> None:
        await self.client.patch(_key(r.VIRTUAL_MACHINES, name), {"spec": {"runStrategy": "Halted"}})

    async def set_dead(self, node: str, value: str | None) -> None:
        await self.client.patch(ObjectKey(r.NODES, node), {"metadata": {"annotations": {DEAD: value}}})

    async def set_allocatable(self, node: str, units: int) -> None:
        change = {"status": {"allocatable": {H100: str(units)}}}
        await self.client.patch(ObjectKey(r.NODES, node), change, MERGE_STATUS)


@dataclass(frozen=True, slots=True)
class Step:
    """Something done from outside, `at_s` after the recording's start."""

    at_s: float
    do: Callable[[Played], Awaitable[None]]


def played(name: str, steps: Sequence[Step], seed: int = 0) -> list[Event]:
    """The events that the simulated cluster gives for the recording's nodes, VMs and steps."""

    async def main(clock: Clock) -> list[Event]:
        return await _play(name, steps, clock, seed)

    return run_virtual(main, begin_ms(name))


async def _play(name: str, steps: Sequence[Step], clock: Clock, seed: int) -> list[Event]:
    server = await api_server(clock, seed)
    stand = Played(server, recorded(name))
    await stand.furnish()
    async with living(server, clock, grace_s=GRACE_S), watching(stand):
        await act_out(stand, steps, stand.source[-1].at_s)
    return stand.events


async def act_out(stand: Played, steps: Sequence[Step], end_s: float) -> None:
    """Make each step at its time, and let things go on until `end_s`."""
    loop = asyncio.get_running_loop()
    begin_s = loop.time()
    for step in steps:
        await asyncio.sleep(begin_s + step.at_s - loop.time())
        await step.do(stand)
    await asyncio.sleep(begin_s + end_s - loop.time())


@asynccontextmanager
async def watching(stand: Played) -> AsyncIterator[None]:
    """Note what the watches show while the context is open."""
    begin_s = asyncio.get_running_loop().time()
    tasks = [asyncio.create_task(_watch(stand, resource, begin_s)) for resource in WATCHED]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _watch(stand: Played, resource: Resource, begin_s: float) -> None:
    listing = await list_all(stand.client, resource)
    loop = asyncio.get_running_loop()
    stand.events += [Event(0.0, resource.kind, "LIST", obj) for obj in listing.items]
    async for event in stand.client.watch(resource, resource_version=listing.resource_version):
        if event.type is not WatchType.BOOKMARK:
            at_s = loop.time() - begin_s
            stand.events.append(Event(at_s, resource.kind, event.type.value, event.object))


def _node(seen: Json) -> Json:
    """The recorded node, its kubelet now played by the simulator's actor, with the same knobs."""
    meta = seen["metadata"]
    annotations = meta.get("annotations") or {}
    knobs = {_KNOBS[key]: value for key, value in annotations.items() if key in _KNOBS}
    labels = {key: value for key, value in meta["labels"].items() if key != "fakelet"} | {KUBELET: "yes"}
    status = {key: seen["status"][key] for key in ("allocatable", "capacity", "conditions")}
    return {
        "metadata": {"name": meta["name"], "labels": labels, "annotations": knobs},
        "spec": seen["spec"],
        "status": status,
    }


def _key(resource: Resource, name: str) -> ObjectKey:
    return ObjectKey(resource, name, "default")


def _name(event: Event) -> str:
    return str(event.object["metadata"]["name"])
