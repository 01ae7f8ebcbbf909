"""`gpubinder status` on a real API server: what is held and who waits, as text and as JSON."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from model.resources import VIRTUAL_MACHINES
from simulator.objects import gpu_vm
from tests.cli.process import gpubinder
from tests.stories.binder_process import gpubinder_up
from tests.stories.conftest import Stage
from tests.stories.test_placing import runs, waits

pytestmark = [pytest.mark.envtest, pytest.mark.allow_hosts(["127.0.0.1"]), pytest.mark.timeout(120)]


@pytest.mark.usefixtures("actors")
async def test_status_shows_holdings_and_reasons(stage: Stage) -> None:
    node = await stage.add_node("only", 2)
    options = ["status", "--kubeconfig", str(stage.kubeconfig), "--redis", stage.redis]
    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "up.log"):
        await stage.client.create(VIRTUAL_MACHINES, gpu_vm("first", {stage.resource: 1}, stage.namespace))
        await stage.until("first runs", lambda: runs(stage, "first"))
        await stage.client.create(VIRTUAL_MACHINES, gpu_vm("second", {stage.resource: 2}, stage.namespace))
        await stage.until("second waits", lambda: waits(stage, "second", "NoRoom"))
        told = orjson.loads((await asyncio.to_thread(gpubinder, *options, "--json")).stdout)
        text = (await asyncio.to_thread(gpubinder, *options)).stdout
    mine = {"node": node, "gpu_class": stage.class_name, "allocatable": 2, "bound": 1, "raw": 0}
    assert mine in told["nodes"]
    (mine_class,) = (one for one in told["classes"] if one["name"] == stage.class_name)
    use = {"nodes": 1, "allocatable": 2, "bound": 1, "raw": 0, "lost": 0, "pending": 2, "free": 1}
    assert mine_class["use"] == use
    claims = {claim["vm"] or claim["reason"]: claim for claim in told["claims"]}
    assert (claims["first"]["node"], claims["first"]["phase"]) == (node, "Bound")
    assert (claims["NoRoom"]["units"], claims["NoRoom"]["phase"]) == (2, "Pending")
    assert told["leader"]
    assert len(told["watchers"]) == 1
    assert "NoRoom: no room for 2" in text
    assert node in text
