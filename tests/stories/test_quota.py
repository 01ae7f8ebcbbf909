"""A ResourceQuota on claims: the API server itself refuses what would place a VM."""

from __future__ import annotations

import asyncio

import pytest

from kube.port import Json, ObjectKey, Selection, list_all
from model.resources import EVENTS, GPU_CLAIMS, NAMESPACES, VIRTUAL_MACHINES, Resource
from simulator.objects import gpu_vm
from tests.stories.binder_process import gpubinder_up
from tests.stories.conftest import Stage
from tests.stories.test_placing import runs

pytestmark = [
    pytest.mark.envtest,
    pytest.mark.allow_hosts(["127.0.0.1"]),
    pytest.mark.timeout(180),
    pytest.mark.usefixtures("actors"),
]

QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota", is_namespaced=True)
KEY = "count/gpuclaims.gpu.cozystack.io"


async def set_quota(stage: Stage, claims: int) -> None:
    """So many claims may be in the namespace; in force once the quota's own controller has counted."""
    key, hard = stage.key(QUOTAS, "few"), {"hard": {KEY: str(claims)}}
    if not (await list_all(stage.client, QUOTAS, Selection(stage.namespace))).items:
        await stage.client.create(
            QUOTAS, {"metadata": {"name": "few", "namespace": stage.namespace}, "spec": hard}
        )
    else:
        await stage.client.patch(key, {"spec": hard})

    async def is_counted() -> bool:
        status = (await stage.client.get(key)).get("status") or {}
        return bool(status.get("hard") == hard["hard"] and KEY in status.get("used", {}))

    await stage.until("the quota is in force", is_counted)


async def warnings_of(stage: Stage, vmi: str) -> list[tuple[str, str]]:
    """Reason and note of our events on it."""
    found = (await list_all(stage.client, EVENTS, Selection(stage.namespace))).items
    return [(one["reason"], one["note"]) for one in found if _is_ours(one, vmi)]


def _is_ours(event: Json, vmi: str) -> bool:
    is_ours = event.get("reportingController") == "gpu.cozystack.io/binder"
    return is_ours and (event.get("regarding") or {}).get("name") == vmi


async def test_vm_over_a_quota_of_claims_says_so_and_starts_once_the_quota_is_raised(stage: Stage) -> None:
    """R12, decision 0096: one reason; a VM of another namespace has the unit meanwhile."""
    await stage.add_node("only", 2)
    other = f"{stage.namespace}-other"
    await stage.client.create(NAMESPACES, {"metadata": {"name": other}})
    await set_quota(stage, 1)
    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "up.log") as process:
        await stage.start_vm("first")
        await stage.until("the first runs", lambda: runs(stage, "first"))
        await stage.start_vm("second")
        await asyncio.sleep(1)
        await stage.client.create(VIRTUAL_MACHINES, gpu_vm("third", {stage.resource: 1}, other))

        async def third_is(status: str) -> bool:
            body = await stage.client.get(ObjectKey(VIRTUAL_MACHINES, "third", other))
            return bool((body.get("status") or {}).get("printableStatus") == status)

        await stage.until("the other tenant's VM runs", lambda: third_is("Running"))
        await asyncio.sleep(10)
        ((reason, note),) = await warnings_of(stage, "second")
        assert reason == "WriteRefused"
        assert f"exceeded quota: few, requested: {KEY}=1, used: {KEY}=1, limited: {KEY}=1" in note
        (claim,) = await stage.claims()
        assert claim["metadata"]["ownerReferences"][0]["name"] == "first"
        tried = process.log.read_text().count("exceeded quota")
        assert 0 < tried < 12, "it backs off"
        await set_quota(stage, 2)
        await stage.client.delete(ObjectKey(VIRTUAL_MACHINES, "third", other))
        await stage.until("the second runs", lambda: runs(stage, "second"))
    assert (await list_all(stage.client, GPU_CLAIMS, Selection(other))).items == []
    await stage.client.delete(ObjectKey(NAMESPACES, other))
