"""Our KubeVirt and kubelets on a real API server, with the real scheduler: the recorded states again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from difflib import ndiff

import pytest

from admission.policies import gate_policy
from kube.adapters.http import connect
from kube.errors import AlreadyExists, NotFound
from kube.port import Client, DeleteOptions, Json, ObjectKey, Selection, list_all
from model import resources as r
from simulator.actors.acting import condition
from simulator.cluster import kubevirt, playing
from tests.cluster.control_plane import ControlPlane
from tests.cluster.fixtures import control_plane
from tests.recordings.playing import CLASS, WATCHED, Played, act_out, watching
from tests.recordings.races import LATE_LOOKS, RACES, Race, settled
from tests.recordings.recording import Event, recorded
from tests.recordings.steps import STEPS
from tests.recordings.timeline import timelines
from tests.stories.conftest import MUTATING_BINDINGS, MUTATING_POLICIES

__all__ = ["control_plane"]

pytestmark = [pytest.mark.envtest, pytest.mark.allow_hosts(["127.0.0.1"]), pytest.mark.timeout(120)]
NODES = [ObjectKey(r.NODES, f"gpu-{number}") for number in (1, 2, 3)]
VMS = {"vm1", "vm2", "vm3"}
LIMIT_S = 20.0
SETTLE_S = 3.0
"""After the last step: many times what the slowest of the recordings took."""
_KINDS = {resource.kind for resource in WATCHED}
_MADE = (r.VIRTUAL_MACHINES, r.VIRTUAL_MACHINE_INSTANCES, r.PODS)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[Client]:
    async with await connect(str(control_plane.kubeconfig())) as client:
        await install_gate(client)
        yield client
        await clear(client)


async def install_gate(client: Client) -> None:
    """The gate as the recordings had it: a policy of the API server."""
    policy, binding = gate_policy()
    for resource, body in ((MUTATING_POLICIES, policy), (MUTATING_BINDINGS, binding)):
        try:
            await client.create(resource, body)
        except AlreadyExists:
            return
    await asyncio.sleep(1.0)  # a new policy is in force after the API server's next look


async def clear(client: Client) -> None:
    """Take away what was made: no other test shall meet it."""
    for kind in _MADE:
        for obj in (await list_all(client, kind, Selection("default"))).items:
            key = ObjectKey(kind, obj["metadata"]["name"], "default")
            with suppress(NotFound):
                await client.patch(key, {"metadata": {"finalizers": None}})
                await client.delete(key, DeleteOptions(grace_s=0))
    for key in (*NODES, ObjectKey(r.GPU_CLASSES, CLASS)):
        with suppress(NotFound):
            await client.delete(key)


async def nodes_are_in_use(client: Client) -> None:
    """A real API server gives a new node a not-ready taint, which goes around its first heartbeat."""
    deadline = time.monotonic() + LIMIT_S
    while not all([is_in_use(await client.get(key)) for key in NODES]):
        assert time.monotonic() < deadline, "the nodes' first taints stay"
        await asyncio.sleep(0.1)


def is_in_use(node: Json) -> bool:
    """Ready, and without the first taint: either may come first."""
    ready = condition((node.get("status") or {}).get("conditions"), "Ready")
    return bool(ready) and ready["status"] == "True" and not node["spec"].get("taints")


def told(events: list[Event], races: Sequence[Race] = (*RACES, *LATE_LOOKS)) -> dict[str, list[str]]:
    mine = [event for event in events if event.kind in _KINDS and is_mine(event)]
    return {role: settled(states, races) for role, states in timelines(mine).items()}


def differences(found: dict[str, list[str]], wanted: dict[str, list[str]]) -> list[str]:
    """Line by line, `-` as recorded and `+` as found: what a race looks like is worth reading whole."""
    lines: list[str] = []
    for role in sorted(found.keys() | wanted.keys()):
        compared = list(ndiff(wanted.get(role, []), found.get(role, [])))
        if found.get(role) != wanted.get(role):
            lines += [role, *compared]
    return lines


def is_mine(event: Event) -> bool:
    """Other tests of the run have their own namespaces and nodes."""
    meta = event.object["metadata"]
    names = {meta.get("name"), *(owner["name"] for owner in meta.get("ownerReferences") or [])}
    if meta.get("namespace") == "default":
        return bool(names & VMS)
    return bool(names & {key.name for key in NODES})


@pytest.mark.parametrize("name", ["gated-pinned-restart-stop", "refused-by-kubelet-then-other-node"])
async def test_actors_on_a_real_api_server_go_through_the_recorded_states(client: Client, name: str) -> None:
    stand = Played(client, recorded(name))
    await stand.furnish()
    async with playing(client, now_ms, kubevirt()):
        await nodes_are_in_use(client)
        async with watching(stand):
            await act_out(stand, STEPS[name], STEPS[name][-1].at_s + SETTLE_S)
    assert differences(told(stand.events), told(recorded(name))) == []
