"""Stories on a real kube-apiserver, etcd, kube-scheduler and kube-controller-manager."""

from __future__ import annotations

import asyncio
import statistics
import time

import pytest

from kube.port import Json, Selection, list_all
from model.resources import GPU_CLAIMS, PODS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES
from simulator.objects import gpu_vm
from tests.stories.binder_process import gpubinder_up
from tests.stories.conftest import Stage
from tests.stories.recorded import first, fresh, launcher_of, owned_by

pytestmark = [pytest.mark.envtest, pytest.mark.allow_hosts(["127.0.0.1"]), pytest.mark.timeout(180)]


async def start_recorded_vm(stage: Stage, name: str) -> Json:
    """VM, VMI and launcher of the recording, made in KubeVirt's order: the VMI lists the pod last."""
    vm = await stage.client.create(VIRTUAL_MACHINES, fresh(first("VirtualMachine"), name, stage.namespace))
    recorded = owned_by(fresh(first("VirtualMachineInstance"), name, stage.namespace), vm)
    recorded["metadata"].pop("finalizers", None)
    vmi = await stage.client.create(VIRTUAL_MACHINE_INSTANCES, recorded)
    pod = launcher_of(vmi)
    resources = pod["spec"]["containers"][0]["resources"]
    for amounts in resources.values():
        amounts[stage.resource] = amounts.pop("nvidia.com/GH100_H100_SXM5_80GB")
    pod["spec"].pop("schedulingGates", None)  # the policy of the cluster is to set it
    pod = await stage.client.create(PODS, pod)
    listed = {"status": {"phase": "Scheduling", "activePods": {pod["metadata"]["uid"]: ""}}}
    await stage.client.patch(stage.key(VIRTUAL_MACHINE_INSTANCES, name), listed)
    return pod


async def pod_of(stage: Stage, name: str) -> Json:
    return await stage.client.get(stage.key(PODS, name))


async def is_bound(stage: Stage, pod: str, node: str) -> bool:
    return (await pod_of(stage, pod))["spec"].get("nodeName") == node


def pins_of(pod: Json) -> list[str]:
    required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return [field["values"][0] for term in required["nodeSelectorTerms"] for field in term["matchFields"]]


@pytest.mark.usefixtures("kubelets")
async def test_recorded_launcher_is_gated_placed_pinned_and_bound_by_the_real_scheduler(stage: Stage) -> None:
    """R6, R7, R10: the claim Bound, the pin beside KubeVirt's expression, the scheduler on the same node."""
    await stage.add_node("large", 4)
    small = await stage.add_node("small", 1)
    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "up.log"):
        created = await start_recorded_vm(stage, "vm1")
        assert [gate["name"] for gate in created["spec"]["schedulingGates"]] == ["gpu.cozystack.io/placement"]
        name = created["metadata"]["name"]
        await stage.until("the scheduler binds the launcher", lambda: is_bound(stage, name, small))
        pod = await pod_of(stage, name)
        assert pins_of(pod) == [small]
        (claim,) = await stage.claims()
        assert (claim["status"]["phase"], claim["status"]["nodeName"]) == ("Bound", small)
        assert claim["status"]["vm"]["name"] == "vm1"
        assert claim["metadata"]["ownerReferences"][0]["kind"] == "VirtualMachineInstance"


@pytest.mark.usefixtures("kubelets")
async def test_killed_between_claim_and_pin_it_ends_right_with_nothing_booked_twice(stage: Stage) -> None:
    """R3, R9, R10: SIGKILL at the worst moment, a second start from the same log, one claim, one node."""
    nodes = [await stage.add_node("a", 1), await stage.add_node("b", 1)]
    with gpubinder_up(
        stage.kubeconfig, stage.redis, stage.folder / "killed.log", "tests.stories.crash_before_pin"
    ) as doomed:
        pod = await start_recorded_vm(stage, "vm1")
        await asyncio.to_thread(doomed.wait_killed)
    (claim,) = await stage.claims()
    assert claim["status"]["phase"] == "Bound"
    assert (await pod_of(stage, pod["metadata"]["name"]))["spec"]["schedulingGates"]
    second = await start_recorded_vm(stage, "vm2")
    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "again.log"):
        held = claim["status"]["nodeName"]
        other = next(node for node in nodes if node != held)
        await stage.until("vm1 bound", lambda: is_bound(stage, pod["metadata"]["name"], held))
        await stage.until("vm2 bound", lambda: is_bound(stage, second["metadata"]["name"], other))
    by_node = sorted(c["status"]["nodeName"] for c in await stage.claims())
    assert by_node == sorted(nodes)


@pytest.mark.usefixtures("actors")
async def test_vm_lives_waits_and_takes_over_the_units_of_a_stopped_one(stage: Stage) -> None:
    """R12, R26: the whole life on real parts; units come back when the VM stops."""
    await stage.add_node("only", 2)
    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "up.log"):
        await stage.client.create(VIRTUAL_MACHINES, gpu_vm("first", {stage.resource: 2}, stage.namespace))
        await stage.until("first runs", lambda: runs(stage, "first"))
        await stage.client.create(VIRTUAL_MACHINES, gpu_vm("second", {stage.resource: 1}, stage.namespace))
        await stage.until("second waits", lambda: waits(stage, "second", "NoRoom"))
        halted = {"spec": {"runStrategy": "Halted"}}
        await stage.client.patch(stage.key(VIRTUAL_MACHINES, "first"), halted)
        await stage.until("second runs", lambda: runs(stage, "second"))
        (claim,) = await stage.claims()
        assert (claim["spec"]["units"], claim["status"]["vm"]["name"]) == (1, "second")


@pytest.mark.usefixtures("kubelets")
async def test_objects_that_nobody_can_read_stop_nothing(stage: Stage) -> None:
    """A VMI whose status is no status at all, a VM without a spec: the next VM starts all the same."""
    await stage.add_node("only", 2)
    for number, broken in enumerate(({"activePods": ["no", "map"]}, {"phase": 7}, "text")):
        body = {
            "metadata": {"name": f"broken-{number}", "namespace": stage.namespace},
            "spec": [],
            "status": broken,
        }
        await stage.client.create(VIRTUAL_MACHINE_INSTANCES, body)
    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "up.log") as process:
        pod = await start_recorded_vm(stage, "vm1")
        await stage.until("vm1 ungated", lambda: is_ungated(stage, pod["metadata"]["name"]))
    lines = [line for line in process.log.read_text().splitlines() if "object_malformed" in line]
    assert any(f"{stage.namespace}/broken-0" in line for line in lines)


@pytest.mark.usefixtures("kubelets")
async def test_launcher_is_ungated_soon_after_it_is_listed(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    """Idle system, real API server: the time from the VMI listing its launcher to the gate's removal."""
    await stage.add_node("large", 64)
    waits_s = []
    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "up.log"):
        for number in range(8):
            pod = await start_recorded_vm(stage, f"vm{number}")
            began = time.monotonic()
            name = pod["metadata"]["name"]
            await stage.until(f"vm{number} ungated", lambda name=name: is_ungated(stage, name))
            waits_s.append(time.monotonic() - began)
    idle = waits_s[1:]  # the first one waits for the lease and the first lists, too
    with capsys.disabled():
        median_ms, most_ms = statistics.median(idle) * 1000, max(idle) * 1000
        print(f"\nungated after {median_ms:.0f} ms (median), {most_ms:.0f} ms (most)")


async def is_ungated(stage: Stage, pod: str) -> bool:
    return not (await pod_of(stage, pod))["spec"].get("schedulingGates")


async def runs(stage: Stage, vm: str) -> bool:
    body = await stage.client.get(stage.key(VIRTUAL_MACHINES, vm))
    return (body.get("status") or {}).get("printableStatus") == "Running"


async def waits(stage: Stage, vm: str, reason: str) -> bool:
    for claim in (await list_all(stage.client, GPU_CLAIMS, Selection(stage.namespace))).items:
        conditions = (claim.get("status") or {}).get("conditions") or []
        owner = claim["metadata"]["ownerReferences"][0]["name"]
        if owner == vm and any(c["reason"] == reason and c["status"] == "False" for c in conditions):
            return True
    return False
