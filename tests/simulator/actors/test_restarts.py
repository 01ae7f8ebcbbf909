"""What restarts a VM: the table measured with a real virt-controller, one cell one VM."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest

from kube.port import MERGE_STATUS, DeleteOptions, ObjectKey
from model import resources as r
from simulator.actors.kubelet import REFUSE
from simulator.actors.vm_controller import START, STOP
from simulator.virtual_time import Clock, run_virtual
from tests.simulator.actors.small_cluster import H100, SmallCluster, small_cluster

Event = Callable[[SmallCluster], Awaitable[None]]
STRATEGIES = ("Always", "RerunOnFailure", "Manual", "Once")


async def vmi_deleted_while_running(cluster: SmallCluster) -> None:
    await cluster.start()
    assert (await cluster.vmi())["status"]["phase"] == "Running"
    await cluster.server.delete(cluster.key(r.VIRTUAL_MACHINE_INSTANCES))


async def vmi_deleted_before_it_ran(cluster: SmallCluster) -> None:
    await cluster.sell()  # its launcher is gated and stays so
    await cluster.start()
    await cluster.server.delete(cluster.key(r.VIRTUAL_MACHINE_INSTANCES))


async def launcher_deleted_before_it_ran(cluster: SmallCluster) -> None:
    await cluster.sell()
    await cluster.start()
    await cluster.server.delete(await cluster.launcher())


async def launcher_refused_by_the_kubelet(cluster: SmallCluster) -> None:
    refuse = {"metadata": {"annotations": {REFUSE: "UnexpectedAdmissionError"}}}
    await cluster.server.patch(ObjectKey(r.NODES, "gpu-1"), refuse)
    await cluster.start()
    await cluster.server.patch(ObjectKey(r.NODES, "gpu-1"), {"metadata": {"annotations": {REFUSE: None}}})


async def launcher_of_a_running_vmi_gone(cluster: SmallCluster) -> None:
    await cluster.start()
    await cluster.server.delete(await cluster.launcher(), DeleteOptions(grace_s=0))


RESTARTED = "new VMI at once"
BACKOFF = "new VMI after back-off"
CRASHED = "CrashLoopBackOff, no VMI within 40 s"
STOPPED = "Stopped"
FAILED = "VMI stays Failed"

MEASURED: dict[Event, tuple[str, str, str, str]] = {
    vmi_deleted_while_running: (RESTARTED, STOPPED, STOPPED, RESTARTED),
    vmi_deleted_before_it_ran: (BACKOFF, CRASHED, STOPPED, BACKOFF),
    launcher_deleted_before_it_ran: (BACKOFF, BACKOFF, FAILED, FAILED),
    launcher_refused_by_the_kubelet: (BACKOFF, BACKOFF, FAILED, FAILED),
    launcher_of_a_running_vmi_gone: (RESTARTED, RESTARTED, STOPPED, STOPPED),
}
CELLS = [
    pytest.param(event, strategy, want, id=f"{event.__name__}-{strategy}")
    for event, row in MEASURED.items()
    for strategy, want in zip(STRATEGIES, row, strict=True)
]


async def outcome(cluster: SmallCluster, first_uid: str) -> str:
    """What has become of the VM 2 s and 40 s after the event."""
    for name, wait_s in ((RESTARTED, 2), (BACKOFF, 38)):
        await asyncio.sleep(wait_s)
        vmi = await cluster.find_vmi()
        if vmi is not None and vmi["metadata"]["uid"] != first_uid:
            return name
    status = (await cluster.vm())["status"]["printableStatus"]
    if vmi is None:
        return {"CrashLoopBackOff": CRASHED}.get(status, status)
    if status == "Stopped" and any(
        t["phase"] == "Running" for t in vmi["status"]["phaseTransitionTimestamps"]
    ):
        return STOPPED  # the VMI that ran is left as it ended
    return f"VMI stays {vmi['status']['phase']}"


@pytest.mark.parametrize(("event", "strategy", "want"), CELLS)
def test_vm_is_restarted_as_measured(event: Event, strategy: str, want: str) -> None:
    async def main(clock: Clock) -> str:
        async with small_cluster(clock, strategy) as cluster:
            await event(cluster)
            return await outcome(cluster, cluster.first_uid)

    assert run_virtual(main) == want


def test_back_off_grows_with_the_square_of_the_failures_up_to_the_limit() -> None:
    """10, 40, 90, 160, 250 s and then 300 s."""

    async def main(clock: Clock) -> list[int]:
        async with small_cluster(clock, "Always") as cluster:
            refuse = {"metadata": {"annotations": {REFUSE: "UnexpectedAdmissionError"}}}
            await cluster.server.patch(ObjectKey(r.NODES, "gpu-1"), refuse)
            await cluster.start()
            begin_ms, failed_at_s = clock(), {}
            while len(failed_at_s) < 8:
                failure = (await cluster.vm())["status"].get("startFailure") or {}
                failed_at_s.setdefault(failure.get("consecutiveFailCount", 0), (clock() - begin_ms) / 1000)
                await asyncio.sleep(1)
            times_s = list(failed_at_s.values())
            return [round(after - before, -1) for before, after in pairwise(times_s)]

    assert [round(gap_s) for gap_s in run_virtual(main)] == [10, 40, 90, 160, 250, 300, 300]


def test_running_vmi_clears_the_failures() -> None:
    async def main(clock: Clock) -> object:
        async with small_cluster(clock, "Always") as cluster:
            await launcher_refused_by_the_kubelet(cluster)
            await asyncio.sleep(15)
            return (await cluster.vm())["status"]

    assert run_virtual(main) == {
        "printableStatus": "Running",
        "created": True,
        "ready": True,
        "runStrategy": "Always",
    }


@pytest.mark.parametrize("strategy", ["Manual", "RerunOnFailure"])
def test_stop_and_start_requests_are_carried_out(strategy: str) -> None:
    """As `virtctl restart` writes them."""

    async def main(clock: Clock) -> tuple[bool, str, object]:
        async with small_cluster(clock, strategy) as cluster:
            await cluster.start()
            asked = [{"action": STOP, "uid": cluster.first_uid}, {"action": START}]
            change = {"status": {"stateChangeRequests": asked}}
            await cluster.server.patch(cluster.key(r.VIRTUAL_MACHINES), change, MERGE_STATUS)
            await asyncio.sleep(2)
            status = (await cluster.vm())["status"]
            is_new = (await cluster.vmi())["metadata"]["uid"] != cluster.first_uid
            return is_new, status["printableStatus"], status.get("stateChangeRequests")

    assert run_virtual(main) == (True, "Running", None)


def test_halted_vm_gives_its_units_back_and_starts_again_when_asked() -> None:
    async def main(clock: Clock) -> list[str]:
        async with small_cluster(clock, "Always") as cluster:
            await cluster.start()
            seen = []
            for strategy in ("Halted", "Always"):
                change = {"spec": {"runStrategy": strategy}}
                await cluster.server.patch(cluster.key(r.VIRTUAL_MACHINES), change)
                await asyncio.sleep(2)
                pods = [p["status"]["phase"] for p in cluster.server.store.scan(r.PODS)]
                seen.append(f"{(await cluster.vm())['status']['printableStatus']} {pods}")
            return seen

    assert run_virtual(main) == ["Stopped []", "Running ['Running']"]


def test_h100_is_what_the_launcher_asks_for() -> None:
    async def main(clock: Clock) -> object:
        async with small_cluster(clock, "Always") as cluster:
            await cluster.start()
            pod = await cluster.server.get(await cluster.launcher())
            return pod["spec"]["containers"][0]["resources"]["limits"][H100]

    assert run_virtual(main) == "1"
