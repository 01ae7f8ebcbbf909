"""The recordings made again: the same steps by hand on KubeVirt's own virt-controller, without gpubinder.

What differs tells of a new KubeVirt, or of our kubelet and virt-handler.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from kube.errors import Conflict
from kube.port import Client
from simulator.actors.kubelet import Kubelet
from simulator.actors.virt_handler import VirtHandler
from simulator.cluster import playing
from tests.recordings.playing import Played, Step, act_out, watching
from tests.recordings.races import LATE_LOOKS, RACES, Race
from tests.recordings.recording import NAMES, recorded
from tests.recordings.steps import STEPS
from tests.recordings.test_real_cluster import client, differences, nodes_are_in_use, now_ms, told

__all__ = ["client"]

pytestmark = [pytest.mark.kubevirt, pytest.mark.allow_hosts(["127.0.0.1"]), pytest.mark.timeout(300)]
BACK_OFF_S = 6.0
"""KubeVirt adds up to a half of the first 10 s by chance; the recordings' hands waited for what they had."""
SETTLE_S = 5.0
QUIET_S = 0.5
QUIET_LIMIT = 20
ALL_RACES = (
    *RACES,
    *LATE_LOOKS,
    Race(
        "the mark on a failed VMI is seen where its finalizer does not go in the same moment",
        state="Failed pods=.*deleting",
        after="gone",
    ),
    Race(
        "and a gated one's without its launcher",
        state="Scheduling (?!pods=).*deleting",
        after="gone",
    ),
)


@pytest.mark.parametrize("name", NAMES)
async def test_virt_controller_goes_through_the_recorded_states(client: Client, name: str) -> None:
    stand = Played(client, recorded(name))
    await stand.furnish()
    steps = [later(step) for step in STEPS[name]]
    async with playing(client, now_ms, (Kubelet(), VirtHandler())):
        await nodes_are_in_use(client)
        async with watching(stand):
            await act_out(stand, steps, steps[-1].at_s)
            await asyncio.sleep(SETTLE_S)
    found = differences(told(stand.events, ALL_RACES), told(recorded(name), ALL_RACES))
    assert not found, "\n".join(found)


def later(step: Step) -> Step:
    """The step, once KubeVirt has done what the earlier ones ask for: it may be slower than it was."""

    async def do(stand: Played) -> None:
        await become_quiet(stand)
        deadline = time.monotonic() + BACK_OFF_S
        while True:
            try:
                return await step.do(stand)
            except (ValueError, KeyError, Conflict):  # no launcher yet, none with a gate, or just written
                if time.monotonic() > deadline:
                    raise
            await asyncio.sleep(0.05)

    return replace(step, do=do)


async def become_quiet(stand: Played) -> None:
    """Wait, bounded, until nothing but heartbeats comes in."""
    for _ in range(QUIET_LIMIT):
        before = sum(event.kind != "Node" for event in stand.events)
        await asyncio.sleep(QUIET_S)
        if sum(event.kind != "Node" for event in stand.events) == before:
            return
