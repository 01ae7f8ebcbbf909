"""virt-handler whose watch of pods lags behind its watch of VMIs, as two watches of a busy server do."""

from __future__ import annotations

from kube.port import DeleteOptions, Json
from model import resources as r
from simulator.actors.acting import Stage
from simulator.actors.informer import Informer
from simulator.actors.virt_handler import VirtHandler
from simulator.virtual_time import Clock, run_virtual
from tests.simulator.actors.small_cluster import SmallCluster, small_cluster


async def phase_after_a_look(cluster: SmallCluster, clock: Clock, *, has_gone: bool) -> str:
    """The phase that virt-handler leaves a running VMI in, when it knows no pod at all."""
    cache = Informer(cluster.server, VirtHandler().resources)
    vmi = await cluster.vmi()
    cache.put(r.VIRTUAL_MACHINE_INSTANCES, vmi)
    for node in cluster.server.store.scan(r.NODES):
        cache.put(r.NODES, node)
    if has_gone:
        await cluster.server.delete(await cluster.launcher(), DeleteOptions(grace_s=0))
    await VirtHandler().act(Stage(cluster.server, cache, clock))
    return str((await cluster.vmi())["status"]["phase"])


def phases(*, has_gone: bool) -> tuple[str, str]:
    async def main(clock: Clock) -> tuple[str, str]:
        async with small_cluster(clock) as cluster:
            await cluster.start()
        before: Json = await cluster.vmi()  # from here on nobody else acts
        return before["status"]["phase"], await phase_after_a_look(cluster, clock, has_gone=has_gone)

    return run_virtual(main)


def test_vmi_whose_launcher_is_not_known_yet_goes_on() -> None:
    """Its end is written only when the API server, asked itself, knows no running launcher either."""
    assert phases(has_gone=False) == ("Running", "Running")


def test_vmi_whose_launcher_has_gone_fails() -> None:
    assert phases(has_gone=True) == ("Running", "Failed")
