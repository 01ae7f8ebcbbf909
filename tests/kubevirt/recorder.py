"""Makes a recording: watch events as the API server sends them, one JSON line each, of steps made by hand.

`python -m tests.kubevirt record NAME FILE` plays `SCENES[NAME]`, its steps are in tests/recordings/steps.py.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

from kube.adapters.http import connect
from kube.port import Client, Json, list_all
from model import resources as r
from model.resources import Resource
from simulator.actors.kubelet import Kubelet
from simulator.actors.virt_handler import VirtHandler
from simulator.cluster import playing
from simulator.objects import gpu_node, gpu_vm
from tests.cluster.control_plane import ControlPlane
from tests.recordings.playing import Played, act_out
from tests.recordings.recording import H100, Event
from tests.recordings.steps import STEPS
from tests.recordings.test_real_cluster import install_gate, nodes_are_in_use, now_ms

SCENES: Mapping[str, Mapping[str, str]] = {
    "vmi-deleted-by-run-strategy": {"vm1": "RerunOnFailure", "vm2": "Manual", "vm3": "Once"},
    "launcher-deleted-before-it-ran": {"vm1": "RerunOnFailure", "vm2": "Manual", "vm3": "Once"},
}
"""The VMs of each new recording, by run strategy; all have three nodes of two units."""
WATCHED = (
    r.NODES,
    r.PODS,
    r.PERSISTENT_VOLUME_CLAIMS,
    r.PERSISTENT_VOLUMES,
    r.VIRTUAL_MACHINES,
    r.VIRTUAL_MACHINE_INSTANCES,
)
SETTLE_S = 5.0


def record(plane: ControlPlane, name: str, file: Path) -> None:
    """Play the scene on a fresh control plane and write what its watches show."""
    file.write_bytes(b"".join(asyncio.run(_lines(plane, name))))


async def _lines(plane: ControlPlane, name: str) -> list[bytes]:
    lines: list[bytes] = []
    async with await connect(str(plane.kubeconfig())) as client:
        await install_gate(client)
        stand = Played(client, _scene(SCENES[name]))
        await stand.furnish()
        async with playing(client, now_ms, (Kubelet(), VirtHandler())):
            await nodes_are_in_use(client)
            watches = [asyncio.create_task(_watch(client, kind, lines)) for kind in WATCHED]
            while sum(b'"type":"SYNC"' in line for line in lines) < len(WATCHED):
                await asyncio.sleep(0.01)
            await act_out(stand, STEPS[name], STEPS[name][-1].at_s + SETTLE_S)
            for watch in watches:
                watch.cancel()
            await asyncio.gather(*watches, return_exceptions=True)
    return lines


def _scene(strategies: Mapping[str, str]) -> list[Event]:
    nodes = [gpu_node(f"gpu-{number}", {H100: 2}) for number in (1, 2, 3)]
    for node in nodes:
        node["status"]["conditions"] = []
    vms = []
    for name, strategy in strategies.items():
        vm = gpu_vm(name, {H100: 1})
        vm["spec"]["runStrategy"] = strategy
        vms.append(vm)
    return [
        *(Event(0.0, "Node", "LIST", node) for node in nodes),
        *(Event(0.0, "VirtualMachine", "ADDED", vm) for vm in vms),
    ]


async def _watch(client: Client, resource: Resource, lines: list[bytes]) -> None:
    put = _writer(resource.kind, lines)
    listing = await list_all(client, resource)
    for obj in listing.items:
        put("LIST", obj)
    put("SYNC", {"metadata": {"resourceVersion": listing.resource_version}})
    async for event in client.watch(resource, resource_version=listing.resource_version):
        put(event.type.value, event.object)


def _writer(kind: str, lines: list[bytes]) -> Callable[[str, Json], None]:
    def put(type_: str, obj: Json) -> None:
        obj["metadata"].pop("managedFields", None)
        line: dict[str, Any] = {"ts": round(time.time(), 3), "kind": kind, "type": type_, "object": obj}
        lines.append(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))

    return put
