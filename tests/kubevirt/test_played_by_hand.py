"""The recordings made again: the same steps by hand on KubeVirt's own virt-controller, without gpubinder.

What differs tells of a new KubeVirt, or of our kubelet and virt-handler.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from kube.port import Client
from simulator.actors.kubelet import Kubelet
from simulator.actors.virt_handler import VirtHandler
from simulator.cluster import playing
from tests.recordings.playing import Played, Step, act_out, watching
from tests.recordings.recording import NAMES, recorded
from tests.recordings.steps import STEPS
from tests.recordings.test_real_cluster import client, differences, nodes_are_in_use, now_ms, told

__all__ = ["client"]

pytestmark = [pytest.mark.kubevirt, pytest.mark.allow_hosts(["127.0.0.1"]), pytest.mark.timeout(300)]
BACK_OFF_S = 6.0
"""KubeVirt adds up to a half of the first 10 s by chance; the recordings' hands waited for what they had."""
SETTLE_S = 5.0


@pytest.mark.parametrize("name", NAMES)
async def test_virt_controller_goes_through_the_recorded_states(client: Client, name: str) -> None:
    stand = Played(client, recorded(name))
    await stand.furnish()
    steps = [later(step) for step in STEPS[name]]
    async with playing(client, now_ms, (Kubelet(), VirtHandler())):
        await nodes_are_in_use(client)
        async with watching(stand):
            await act_out(stand, steps, steps[-1].at_s + SETTLE_S)
    assert differences(told(stand.events), told(recorded(name))) == []


def later(step: Step) -> Step:
    """The step, made as soon as what it needs is there: a launcher may come late."""

    async def do(stand: Played) -> None:
        deadline = time.monotonic() + BACK_OFF_S
        while True:
            try:
                return await step.do(stand)
            except (ValueError, KeyError):  # no launcher yet, or none with a gate
                if time.monotonic() > deadline:
                    raise
            await asyncio.sleep(0.05)

    return replace(step, do=do)
