"""A cluster's life in which each process does all that it ever does, under its own account.

The test plays KubeVirt with recorded objects, under KubeVirt's account, and the kubelets; everything else is
real, and the policies of who may write what are in force.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from gpubinder.rights import Process
from kube.adapters.http import connect
from kube.errors import NotFound
from kube.port import Json, ObjectKey, Selection, list_all
from model.kinds import WATCHED
from model.names import GATE
from model.resources import GPU_BUDGETS, GPU_CLASSES, NAMESPACES, NODES, PODS, VIRTUAL_MACHINE_INSTANCES
from simulator.actors.kubelet import REFUSE, Kubelet
from simulator.cluster import playing
from simulator.objects import gpu_node
from tests.cli.process import gpubinder
from tests.cluster.control_plane import KUBEVIRT_CONTROLLER, ControlPlane
from tests.rights.admitting import admit
from tests.rights.applying import kubeconfig_of
from tests.rights.calls import calls_of
from tests.stories.binder_process import gpubinder_up
from tests.stories.conftest import Stage, now_ms
from tests.stories.test_placing import is_bound, is_ungated, start_recorded_vm, waits

LABEL = {"example.com/gpu": "yes"}
NODES_AT_FIRST = {"refusing": {REFUSE: "UnexpectedAdmissionError"}, "first": {}, "second": {}}
"""With what their kubelets are told; they join the class when their turn comes."""
UNHURRIED = ("--keep-grace", "3", "--restart-hold", "0")
"""Long enough for the binder to hear of a node that has become Ready."""
WATCHER = "system:serviceaccount:gpubinder-system:gpubinder-watch"


async def live(plane: ControlPlane, folder: Path, redis: str) -> None:
    """From the first start to `gpubinder uninstall`."""
    kubeconfig = plane.kubeconfig(KUBEVIRT_CONTROLLER)
    async with await connect(str(kubeconfig)) as client, playing(client, now_ms, (Kubelet(),)):
        stage = Stage(client, kubeconfig, redis, folder, "rights", "nvidia.com/RIGHTS", "rights")
        await client.create(NAMESPACES, {"metadata": {"name": stage.namespace}})
        spec = {"resourceName": stage.resource, "nodeSelector": LABEL}
        await client.create(GPU_CLASSES, {"metadata": {"name": stage.class_name}, "spec": spec})
        budget: Json = {"namespaceSelector": {}, "classes": {stage.class_name: 1000}}
        await client.create(GPU_BUDGETS, {"metadata": {"name": stage.class_name}, "spec": budget})
        for name, knobs in NODES_AT_FIRST.items():
            body: Json = gpu_node(f"{stage.namespace}-{name}", {stage.resource: 1})
            body["metadata"]["annotations"] = knobs
            await client.create(NODES, body)
        await stage.until("the nodes are ready", lambda: _are_ready(stage))
        await _apart(plane, stage)
        await _together(plane, stage)
        await _leave(plane, stage)


async def _apart(plane: ControlPlane, stage: Stage) -> None:
    """Two watchers, one of which has to list page by page, a binder, and somebody who looks on."""
    watcher, binder = kubeconfig_of(plane, Process.WATCH), kubeconfig_of(plane, Process.BIND)
    with ExitStack() as stack:
        for number, module in enumerate(("gpubinder.cli", "tests.rights.older_server")):
            log = stage.folder / f"watch-{number}.log"
            stack.enter_context(gpubinder_up(watcher, stage.redis, log, module, command="watch"))
        log = stage.folder / "bind.log"
        stack.enter_context(gpubinder_up(binder, stage.redis, log, options=UNHURRIED, command="bind"))
        await _refuse(stage)
        await _move(stage)
        await stage.until("every kind is watched and listed", lambda: _all_watched(plane))
        reader = kubeconfig_of(plane, Process.STATUS)
        told = await asyncio.to_thread(
            gpubinder, "status", "--kubeconfig", str(reader), "--redis", stage.redis
        )
        assert told.returncode == 0, told.stderr


async def _refuse(stage: Stage) -> None:
    """A VM waits, is placed, is refused by the kubelet, and ends."""
    launcher = await start_recorded_vm(stage, "refused")
    await stage.until("it waits", lambda: waits(stage, "refused", "ClassConstraints"))
    await _label(stage, "refusing", LABEL)
    await stage.until(
        "the refused launcher is deleted", lambda: _is_gone(stage, PODS, launcher["metadata"]["name"])
    )
    key = stage.key(VIRTUAL_MACHINE_INSTANCES, "refused")
    await stage.client.patch(key, {"status": {"phase": "Failed"}})

    async def is_free() -> bool:
        return not await stage.claims()

    await stage.until("the claim of the VMI that ended goes", is_free)
    await stage.client.delete(_node(stage, "refusing"))


async def _move(stage: Stage) -> None:
    """A VM runs; its node leaves the class; its VMI is deleted so that it starts elsewhere."""
    first = _node(stage, "first")
    await _label(stage, "first", LABEL)
    launcher = await start_recorded_vm(stage, "moves")
    meta = launcher["metadata"]
    await stage.until("it is placed", lambda: is_bound(stage, meta["name"], first.name))
    ran = [{"phase": "Running", "phaseTransitionTimestamp": "2026-01-01T00:00:00Z"}]
    status = {"phase": "Running", "nodeName": first.name, "phaseTransitionTimestamps": ran}
    status["activePods"] = {meta["uid"]: first.name}
    await stage.client.patch(stage.key(VIRTUAL_MACHINE_INSTANCES, "moves"), {"status": status})
    await _label(stage, "second", LABEL)
    await _label(stage, "first", dict.fromkeys(LABEL))
    await stage.until("its VMI is deleted", lambda: _is_gone(stage, VIRTUAL_MACHINE_INSTANCES, "moves"))

    async def is_free() -> bool:
        return not await stage.claims()

    await stage.until("its claim goes with it", is_free)


async def _together(plane: ControlPlane, stage: Stage) -> None:
    """`gpubinder up` is both, with `admit` beside it; one VM runs at the end, and one waits."""
    account = kubeconfig_of(plane, Process.UP)
    with gpubinder_up(account, stage.redis, stage.folder / "up.log", options=UNHURRIED):
        runs = (await start_recorded_vm(stage, "runs"))["metadata"]["name"]
        await stage.until("it is ungated", lambda: is_ungated(stage, runs))
        await start_recorded_vm(stage, "stays")
        await stage.until("it waits", lambda: waits(stage, "stays", "NoRoom"))
        await admit(plane, stage)


async def _leave(plane: ControlPlane, stage: Stage) -> None:
    """`gpubinder uninstall`, with somebody else at every object before it."""
    account = kubeconfig_of(plane, Process.UNINSTALL)
    words = [sys.executable, "-m", "tests.rights.contended", "uninstall", "--kubeconfig", str(account)]
    done = await asyncio.to_thread(
        subprocess.run, words, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    pods = (await list_all(stage.client, PODS, Selection(stage.namespace))).items
    assert not [pod for pod in pods if {"name": GATE} in (pod["spec"].get("schedulingGates") or [])]


async def _label(stage: Stage, name: str, labels: Mapping[str, str | None]) -> None:
    """Let a node join the class or leave it."""
    await stage.client.patch(_node(stage, name), {"metadata": {"labels": labels}})


def _node(stage: Stage, name: str) -> ObjectKey:
    return ObjectKey(NODES, f"{stage.namespace}-{name}")


async def _are_ready(stage: Stage) -> bool:
    """And free of the taint that a node has until its lifecycle controller has seen it so."""
    nodes = [await stage.client.get(_node(stage, name)) for name in NODES_AT_FIRST]
    ready = {"type": "Ready", "status": "True"}.items()
    return all(
        any(ready <= one.items() for one in node["status"].get("conditions") or [])
        and not node["spec"].get("taints")
        for node in nodes
    )


async def _is_gone(stage: Stage, resource: object, name: str) -> bool:
    try:
        await stage.client.get(stage.key(resource, name))  # type: ignore[arg-type]
    except NotFound:
        return True
    return False


async def _all_watched(plane: ControlPlane) -> bool:
    calls = {(call.verb, call.resource) for call in calls_of(plane, WATCHER)}
    wanted = {(verb, kind.resource.plural) for verb in ("list", "watch") for kind in WATCHED}
    return wanted <= calls
