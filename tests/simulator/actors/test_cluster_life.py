"""Kubelet, scheduler, node lifecycle and garbage collector at work together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kube.errors import Forbidden, NotFound
from kube.port import MERGE_STATUS, Json, ObjectKey
from model import resources as r
from simulator.actors.kubelet import DEAD, HEARTBEAT_S
from simulator.apiserver.server import ApiServer
from simulator.cluster import api_server, living
from simulator.objects import gpu_node, gpu_vm
from simulator.virtual_time import Clock, run_virtual

H100 = "nvidia.com/GH100_H100_SXM5_80GB"
Story = Callable[[ApiServer, Clock], Awaitable[Any]]


def lived(story: Story, *nodes: Json) -> Any:
    """What the story returns, told on a cluster of these nodes with every actor at work."""

    async def main(clock: Clock) -> Any:
        server = await api_server(clock)
        for node in nodes or (gpu_node("gpu-1", {H100: 2}),):
            await server.create(r.NODES, node)
        async with living(server, clock):
            return await story(server, clock)

    return run_virtual(main)


def pod(name: str, units: int = 1, **spec: object) -> Json:
    resources = {"requests": {H100: str(units)}, "limits": {H100: str(units)}}
    containers = [{"name": "main", "image": "x", "resources": resources}]
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"containers": containers, **spec}}


async def create(server: ApiServer, *pods: Json) -> None:
    for one in pods:
        await server.create(r.PODS, one)
        await asyncio.sleep(1)


def told(server: ApiServer) -> dict[str, str]:
    """Each pod's node, phase and reason."""
    seen = {}
    for one in server.store.scan(r.PODS):
        status = one["status"]
        waits = [
            c["reason"]
            for c in status.get("conditions", [])
            if c["type"] == "PodScheduled" and c.get("reason")
        ]
        parts = [one["spec"].get("nodeName", "-"), status["phase"], status.get("reason", ""), *waits]
        seen[one["metadata"]["name"]] = " ".join(part for part in parts if part)
    return seen


async def set_allocatable(server: ApiServer, units: int) -> None:
    change = {"status": {"allocatable": {H100: str(units)}}}
    await server.patch(ObjectKey(r.NODES, "gpu-1"), change, MERGE_STATUS)


async def set_dead(server: ApiServer, value: str | None) -> None:
    await server.patch(ObjectKey(r.NODES, "gpu-1"), {"metadata": {"annotations": {DEAD: value}}})


@pytest.mark.parametrize(("is_sold", "status"), [(False, "ErrorUnschedulable"), (True, "Starting")])
def test_vm_without_room_calls_itself_unschedulable_unless_it_was_gated(is_sold: bool, status: str) -> None:
    """As virt-controller does: a VMI takes over its launcher's first condition and no later one."""

    async def story(server: ApiServer, _: Clock) -> Any:
        if is_sold:
            sold = {"metadata": {"name": "h100"}, "spec": {"resourceName": H100}}
            await server.create(r.GPU_CLASSES, sold)
        await server.create(r.VIRTUAL_MACHINES, gpu_vm("vm", {H100: 3}))
        await asyncio.sleep(1)
        (launcher,) = server.store.scan(r.PODS)
        await server.patch(
            ObjectKey(r.PODS, launcher["metadata"]["name"], "default"), {"spec": {"schedulingGates": None}}
        )
        await asyncio.sleep(1)
        assert told(server) == {launcher["metadata"]["name"]: "- Pending Unschedulable"}
        vm = await server.get(ObjectKey(r.VIRTUAL_MACHINES, "vm", "default"))
        return vm["status"]["printableStatus"]

    assert lived(story) == status


def test_pods_take_the_node_with_most_room_and_then_the_first_name() -> None:
    async def story(server: ApiServer, _: Clock) -> Any:
        await create(server, pod("a"), pod("b"), pod("c", 2), pod("d"))
        return told(server)

    assert lived(story, gpu_node("gpu-1", {H100: 2}), gpu_node("gpu-2", {H100: 2})) == {
        "a": "gpu-1 Running",
        "b": "gpu-2 Running",
        "c": "- Pending Unschedulable",
        "d": "gpu-1 Running",
    }


def test_pod_that_found_no_room_is_placed_when_room_comes() -> None:
    async def story(server: ApiServer, _: Clock) -> Any:
        await create(server, pod("a", 2), pod("b", 2))
        before = told(server)["b"]
        await server.delete(ObjectKey(r.PODS, "a", "default"))
        await asyncio.sleep(1)
        return before, told(server)

    assert lived(story) == ("- Pending Unschedulable", {"b": "gpu-1 Running"})


def test_kubelet_refuses_a_bound_pod_for_which_it_has_no_device() -> None:
    """Bound by somebody who does not count, as a pin by hand past the scheduler would be."""

    async def story(server: ApiServer, _: Clock) -> Any:
        await create(server, pod("a", 2), pod("b", nodeName="gpu-1"))
        return told(server)

    assert lived(story) == {"a": "gpu-1 Running", "b": f"gpu-1 Failed OutOf{H100}"}


def test_running_pod_outlives_a_device_plugin_that_restarts() -> None:
    """Allocatable falls to 0 and comes back; what runs goes on, what comes meanwhile waits (006)."""

    async def story(server: ApiServer, _: Clock) -> Any:
        await create(server, pod("a"))
        await set_allocatable(server, 0)
        await create(server, pod("b"))
        meanwhile = told(server)
        await set_allocatable(server, 2)
        await asyncio.sleep(1)
        return meanwhile, told(server)

    meanwhile, after = lived(story)
    assert meanwhile == {"a": "gpu-1 Running", "b": "- Pending Unschedulable"}
    assert after == {"a": "gpu-1 Running", "b": "gpu-1 Running"}


def test_node_is_ready_by_condition_and_lease() -> None:
    async def story(server: ApiServer, clock: Clock) -> Any:
        await asyncio.sleep(10 * HEARTBEAT_S)
        node = await server.get(ObjectKey(r.NODES, "gpu-1"))
        lease = await server.get(ObjectKey(r.LEASES, "gpu-1", "kube-node-lease"))
        (ready,) = node["status"]["conditions"]
        assert lease["spec"]["renewTime"][:19] == ready["lastHeartbeatTime"][:19]
        return ready["status"], ready["lastTransitionTime"] < ready["lastHeartbeatTime"]

    assert lived(story) == ("True", True)


def test_dead_node_loses_its_pods_after_their_toleration_and_keeps_their_marks() -> None:
    """Unknown after the grace, evicted 300 s later; no kubelet is left to end the pod."""

    async def story(server: ApiServer, _: Clock) -> Any:
        await create(server, pod("a"))
        await set_dead(server, "yes")
        seen = []
        for wait_s in (30, 20, 250, 60):
            await asyncio.sleep(wait_s)
            node = await server.get(ObjectKey(r.NODES, "gpu-1"))
            one = await server.get(ObjectKey(r.PODS, "a", "default"))
            ready = next(c["status"] for c in node["status"]["conditions"] if c["type"] == "Ready")
            taints = [taint["effect"] for taint in node["spec"].get("taints", [])]
            seen.append((ready, taints, "deletionTimestamp" in one["metadata"]))
        return seen

    both = ["NoSchedule", "NoExecute"]
    assert lived(story) == [
        ("True", [], False),
        ("Unknown", both, False),
        ("Unknown", both, False),
        ("Unknown", both, True),
    ]


def test_node_that_returns_in_time_keeps_its_pods() -> None:
    async def story(server: ApiServer, _: Clock) -> Any:
        await create(server, pod("a"))
        await set_dead(server, "yes")
        await asyncio.sleep(120)
        await set_dead(server, None)
        await asyncio.sleep(400)
        node = await server.get(ObjectKey(r.NODES, "gpu-1"))
        (one,) = server.store.scan(r.PODS)
        ready = next(c["status"] for c in one["status"]["conditions"] if c["type"] == "Ready")
        return node["spec"].get("taints"), told(server), ready

    assert lived(story) == (None, {"a": "gpu-1 Running"}, "True")


def test_vm_moves_on_when_its_node_has_gone_for_good() -> None:
    """No kubelet ends the pod: the collector does, 40 s later, and the VM starts on another node."""

    async def story(server: ApiServer, _: Clock) -> Any:
        await server.create(r.VIRTUAL_MACHINES, gpu_vm("vm1", {H100: 1}))
        await asyncio.sleep(1)
        seen = [list(told(server).values())]
        await server.delete(ObjectKey(r.NODES, "gpu-1"))
        for wait_s in (39, 3):
            await asyncio.sleep(wait_s)
            seen.append(list(told(server).values()))
        return seen

    nodes = (gpu_node("gpu-1", {H100: 2}), gpu_node("gpu-2", {H100: 2}))
    assert lived(story, *nodes) == [["gpu-1 Running"], ["gpu-1 Running"], ["gpu-2 Running"]]


@pytest.mark.parametrize("what", [r.VIRTUAL_MACHINES, r.NAMESPACES])
def test_deletion_of_vm_or_namespace_takes_everything_along(what: r.Resource) -> None:
    async def story(server: ApiServer, _: Clock) -> Any:
        await server.create(r.NAMESPACES, {"metadata": {"name": "tenant"}})
        await server.create(r.VIRTUAL_MACHINES, gpu_vm("vm1", {H100: 1}, "tenant"))
        await asyncio.sleep(2)
        before = [len(list(server.store.scan(kind))) for kind in (r.VIRTUAL_MACHINE_INSTANCES, r.PODS)]
        name, namespace = ("vm1", "tenant") if what == r.VIRTUAL_MACHINES else ("tenant", "")
        await server.delete(ObjectKey(what, name, namespace))
        await asyncio.sleep(5)
        with pytest.raises(NotFound):
            await server.get(ObjectKey(what, name, namespace))
        kinds = (r.VIRTUAL_MACHINES, r.VIRTUAL_MACHINE_INSTANCES, r.PODS)
        return before, [len(list(server.store.scan(kind))) for kind in kinds]

    assert lived(story) == ([1, 1], [0, 0, 0])


def test_vm_whose_launcher_is_refused_stays_pending_and_starts_when_it_is_let() -> None:
    """As under a quota: the API server forbids the pod, KubeVirt keeps trying."""

    async def story(server: ApiServer, _: Clock) -> Any:
        key = ObjectKey(r.VIRTUAL_MACHINE_INSTANCES, "vm1", "default")

        def refuse(resource: r.Resource, obj: Json) -> None:
            if resource == r.PODS:
                raise Forbidden(f"Pod {obj['metadata']['name']}", "exceeded quota: gpus", 403, "Forbidden")

        server.mutators.append(refuse)
        await server.create(r.VIRTUAL_MACHINES, gpu_vm("vm1", {H100: 1}))
        await asyncio.sleep(60)
        pending = (await server.get(key))["status"]
        server.mutators.remove(refuse)
        await asyncio.sleep(6)
        passed = [t["phase"] for t in (await server.get(key))["status"]["phaseTransitionTimestamps"]]
        return pending["phase"], pending["conditions"][0]["message"], passed

    assert lived(story) == (
        "Pending",
        "exceeded quota: gpus",
        ["Pending", "Scheduling", "Scheduled", "Running"],
    )


def test_object_that_nobody_can_read_keeps_no_other_from_its_turn(caplog: pytest.LogCaptureFixture) -> None:
    """One line names it; the VM beside it starts all the same."""

    async def story(server: ApiServer, _: Clock) -> Any:
        broken = {"metadata": {"name": "aaa", "namespace": "default"}, "spec": {"runStrategy": "Always"}}
        await server.create(r.VIRTUAL_MACHINES, broken)
        vmi = {"metadata": {"name": "bbb", "namespace": "default"}, "spec": {"domain": "text"}}
        await server.create(r.VIRTUAL_MACHINE_INSTANCES, vmi)
        await server.create(r.VIRTUAL_MACHINES, gpu_vm("vm1", {H100: 1}))
        await asyncio.sleep(60)
        return (await server.get(ObjectKey(r.VIRTUAL_MACHINES, "vm1", "default")))["status"][
            "printableStatus"
        ]

    assert lived(story) == "Running"
    keys: list[Any] = [record.__dict__["keys"] for record in caplog.records]
    assert {key["object"] for key in keys} == {
        "VirtualMachine default/aaa",
        "VirtualMachineInstance default/bbb",
    }
    assert len(keys) <= 4, "once per object and reason, not once per look"


@pytest.mark.timeout(20)
def test_twenty_nodes_and_fifty_vms_come_up_in_little_real_time() -> None:
    """A third of a second on an idle machine; the limit only tells when it is no longer about that."""

    async def story(server: ApiServer, _: Clock) -> Any:
        for number in range(50):
            await server.create(r.VIRTUAL_MACHINES, gpu_vm(f"vm{number:02}", {H100: 1}))
        await asyncio.sleep(60)
        return {vm["status"]["printableStatus"] for vm in server.store.scan(r.VIRTUAL_MACHINES)}

    assert lived(story, *(gpu_node(f"gpu-{number:02}", {H100: 4}) for number in range(20))) == {"Running"}
