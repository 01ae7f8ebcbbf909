"""The way out on a real control plane: without a binder, and with placement switched off, nothing hangs."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import orjson
import pytest

from kube.errors import NotFound
from kube.port import ObjectKey, Selection, list_all
from model.names import GATE
from model.resources import ADMISSION, GPU_CLAIMS, GPU_CLASSES, NAMESPACES, PODS
from tests.stories.binder_process import gpubinder_up
from tests.stories.conftest import Stage
from tests.stories.test_placing import runs, waits

pytestmark = [
    pytest.mark.envtest,
    pytest.mark.allow_hosts(["127.0.0.1"]),
    pytest.mark.timeout(180),
    pytest.mark.usefixtures("actors"),
]


async def uninstall(stage: Stage, *options: str) -> subprocess.CompletedProcess[str]:
    """Beside the actors, which run in this process."""
    command = [sys.executable, "-m", "gpubinder.cli", "uninstall", "--kubeconfig", str(stage.kubeconfig)]
    return await asyncio.to_thread(
        subprocess.run, [*command, *options], capture_output=True, text=True, timeout=90, check=False
    )


async def gated(stage: Stage, *, everywhere: bool = False) -> list[str]:
    pods = (await list_all(stage.client, PODS, Selection("" if everywhere else stage.namespace))).items
    return [
        pod["metadata"]["name"]
        for pod in pods
        if {"name": GATE} in (pod["spec"].get("schedulingGates") or [])
    ]


async def is_gone(stage: Stage, key: ObjectKey) -> bool:
    try:
        await stage.client.get(key)
    except NotFound:
        return True
    return False


async def test_killed_and_uninstalled_nothing_of_ours_holds_up_namespace_or_class(stage: Stage) -> None:
    """R30: the binder died by SIGKILL; one VM ran, one waited."""
    await stage.add_node("only", 1)
    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "up.log") as binder:
        await stage.start_vm("runs")
        await stage.until("it runs", lambda: runs(stage, "runs"))
        await stage.start_vm("waits")
        await stage.until("it waits", lambda: waits(stage, "waits", "NoRoom"))
        refused = await uninstall(stage)
        assert (refused.returncode, "is active" in refused.stderr) == (1, True), refused.stderr
        binder.kill()
    assert len(await gated(stage)) == 1
    dry = orjson.loads((await uninstall(stage, "--dry-run", "--json")).stdout)
    assert dry["takenOff"]["gate"] == len(await gated(stage, everywhere=True)), "other tests' pods, too"
    done = await uninstall(stage)
    assert done.returncode == 0, done.stderr
    assert "finalizer of a GPUClaim" in done.stdout
    assert await gated(stage) == []
    for kind in ADMISSION:
        ours = Selection(label_selector="app.kubernetes.io/part-of=gpubinder")
        assert (await list_all(stage.client, kind, ours)).items == []
    await stage.client.delete(ObjectKey(NAMESPACES, stage.namespace))
    await stage.until("the claims go with their namespace", lambda: _none_left(stage))
    await stage.client.delete(ObjectKey(GPU_CLASSES, stage.class_name))
    assert await is_gone(stage, ObjectKey(GPU_CLASSES, stage.class_name))


async def test_switched_off_gates_come_off_and_nothing_holds_up_namespace_or_class(stage: Stage) -> None:
    """R30: finalizers are looked after with the feature switched off too."""
    await stage.add_node("only", 1)
    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "on.log"):
        await stage.start_vm("runs")
        await stage.until("it runs", lambda: runs(stage, "runs"))
        await stage.start_vm("waits")
        await stage.until("it waits", lambda: waits(stage, "waits", "NoRoom"))
    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "off.log", options=("--off",)):

        async def is_open() -> bool:
            return await gated(stage) == []

        await stage.until("the gate comes off", is_open)
        await stage.client.delete(ObjectKey(NAMESPACES, stage.namespace))
        await stage.until("the claims go with their namespace", lambda: _none_left(stage))
        key = ObjectKey(GPU_CLASSES, stage.class_name)
        await stage.client.delete(key)
        await stage.until("the class goes", lambda: is_gone(stage, key))


async def _none_left(stage: Stage) -> bool:
    return (await list_all(stage.client, GPU_CLAIMS, Selection(stage.namespace))).items == []
