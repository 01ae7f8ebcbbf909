"""The story's part in which `gpubinder admit` does all that it ever does."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from gpubinder.rights import Process
from kube.errors import ApiError
from kube.port import Json
from model.resources import GPU_BUDGETS, GPU_CLAIMS, GPU_CLASSES, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from tests.cluster.control_plane import ControlPlane
from tests.cluster.processes import free_ports
from tests.rights.applying import apply, kubeconfig_of, printed
from tests.rights.calls import calls_of
from tests.stories.binder_process import gpubinder_up
from tests.stories.conftest import Stage

ADMITTING = "system:serviceaccount:gpubinder-system:gpubinder-admit"
WEBHOOKS = {MUTATING_WEBHOOKS.kind, VALIDATING_WEBHOOKS.kind}


async def admit(plane: ControlPlane, stage: Stage) -> None:
    """It makes certificates, has them trusted, renews them for a further name, is asked about each write."""
    account = kubeconfig_of(plane, Process.ADMIT)
    (port,) = free_ports(1)
    url = f"https://127.0.0.1:{port}"
    for document in printed("crds", "--gate", "webhook", "--checks", "webhook", "--webhook-url", url):
        if document["kind"] in WEBHOOKS:
            apply(plane.rest(), document)
    for number, names in enumerate((["127.0.0.1"], ["127.0.0.1", "localhost"])):
        words = [word for name in names for word in ("--cert-name", name)]
        options = ("--admission-port", str(port), *words)
        log = stage.folder / f"admit-{number}.log"
        with gpubinder_up(account, stage.redis, log, options=options, command="admit"):
            await stage.until("it serves", partial(_is_serving, log))
            if number:
                await _write_each(plane, stage)


async def _is_serving(log: Path) -> bool:
    return "admission_serving" in await asyncio.to_thread(log.read_text)


async def _write_each(plane: ControlPlane, stage: Stage) -> None:
    """Until each was reviewed: the API server takes a moment to know and to trust a webhook."""
    client, number = stage.client, 0

    async def is_asked() -> bool:
        nonlocal number
        number += 1
        spec = {"resourceName": f"nvidia.com/ADMITTED_{number}"}
        await client.create(GPU_CLASSES, {"metadata": {"name": f"admitted-{number}"}, "spec": spec})
        budget: Json = {"namespaceSelector": {}, "classes": {stage.class_name: 1000}}
        await client.create(GPU_BUDGETS, {"metadata": {"name": f"admitted-{number}"}, "spec": budget})
        order = {"className": f"admitted-{number}", "units": 1}  # the ledger hears of it later
        meta = {"name": f"admitted-{number}", "namespace": stage.namespace}
        try:
            await client.create(GPU_CLAIMS, {"metadata": meta, "spec": order})
        except ApiError as error:
            raise AssertionError(f"{error}; logs in {stage.folder}") from error
        asked = {(call.verb, call.resource) for call in calls_of(plane, ADMITTING)}
        return {("list", "gpuclasses"), ("get", "gpuclasses"), ("list", "gpubudgets")} <= asked

    await stage.until("every kind of write is reviewed", is_asked)
