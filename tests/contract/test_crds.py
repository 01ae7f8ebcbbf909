"""Contract: our three kinds: what their schemas take, refuse, and keep (30-api)."""

from __future__ import annotations

from typing import Any

import pytest

from kube.errors import ApiError, BadRequest, Invalid
from kube.port import MERGE_STATUS, Json
from model.resources import GPU_BUDGETS, GPU_CLAIMS, GPU_CLASSES, Resource
from tests.contract.builders import H100, an_object
from tests.contract.environment import Environment


def a_claim(name: str = "claim", **spec: Any) -> Json:
    return an_object(GPU_CLAIMS, name, spec={"className": "h100", "units": 2} | spec)


async def create(env: Environment, resource: Resource, spec: Any, **fields: Any) -> Json:
    """Cluster-scoped objects are named after the test's namespace, so that tests do not meet."""
    return await env.create(resource, an_object(resource, env.namespace, spec=spec, **fields))


async def test_claim_as_documented_is_taken(env: Environment) -> None:
    created = await env.create(GPU_CLAIMS, a_claim())
    assert created["spec"] == {"className": "h100", "units": 2}
    assert created["metadata"]["generation"] == 1


@pytest.mark.parametrize("units", [1, 1024])
async def test_units_at_the_bounds_are_taken(env: Environment, units: int) -> None:
    assert (await env.create(GPU_CLAIMS, a_claim(units=units)))["spec"]["units"] == units


@pytest.mark.parametrize("units", [0, -1, 1025, 2**31, 2**63 - 1, 2**63, 1.5, "2", None, True, [2]])
async def test_units_that_make_no_sense_are_refused(env: Environment, units: Any) -> None:
    with pytest.raises(ApiError) as caught:
        await env.create(GPU_CLAIMS, a_claim(units=units))
    assert isinstance(caught.value, Invalid | BadRequest)


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"units": 1},
        {"className": "h100"},
        {"className": "", "units": 1},
        {"className": 5, "units": 1},
        None,
        "x",
    ],
    ids=str,
)
async def test_claim_without_a_whole_spec_is_invalid(env: Environment, spec: Any) -> None:
    with pytest.raises(Invalid):
        await env.create(GPU_CLAIMS, an_object(GPU_CLAIMS, "claim", spec=spec))


@pytest.mark.parametrize("change", [{"units": 3}, {"className": "a100"}], ids=str)
async def test_spec_of_a_claim_never_changes(env: Environment, change: Json) -> None:
    created = await env.create(GPU_CLAIMS, a_claim())
    key = env.key(GPU_CLAIMS, "claim")
    with pytest.raises(Invalid, match="immutable"):
        await env.client.patch(key, {"spec": change})
    with pytest.raises(Invalid, match="immutable"):
        await env.client.replace(key, created | {"spec": created["spec"] | change})
    assert await env.client.get(key) == created


async def test_fields_that_the_schema_does_not_know_are_dropped(env: Environment) -> None:
    created = await env.create(GPU_CLAIMS, a_claim(colour="red") | {"extra": {"a": 1}})
    assert created["spec"] == {"className": "h100", "units": 2}
    assert "extra" not in created


async def test_status_is_written_through_its_subresource_alone(env: Environment) -> None:
    """R1: RBAC can keep everyone but the binder from a claim's placement."""
    key = env.key(GPU_CLAIMS, "claim")
    bound = {"status": {"phase": "Bound", "nodeName": "gpu-1", "vm": {"name": "vm", "uid": "u"}}}
    created = await env.create(GPU_CLAIMS, a_claim() | bound)
    assert "status" not in created
    assert await env.client.patch(key, bound) == created
    after = await env.client.patch(key, bound | {"spec": {"units": 9}}, MERGE_STATUS)
    assert after["status"] == bound["status"]
    assert after["spec"] == created["spec"]
    assert after["metadata"]["generation"] == created["metadata"]["generation"]


@pytest.mark.parametrize("phase", ["Pending", "Bound", "Lost"])
async def test_claim_goes_through_its_phases(env: Environment, phase: str) -> None:
    await env.create(GPU_CLAIMS, a_claim())
    condition = {
        "type": "Placed",
        "status": "False",
        "reason": "NoRoom",
        "message": "2 nodes: 2 without room",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = {"phase": phase, "conditions": [condition]}
    after = await env.client.patch(env.key(GPU_CLAIMS, "claim"), {"status": status}, MERGE_STATUS)
    assert after["status"]["phase"] == phase
    assert after["status"]["conditions"][0]["reason"] == "NoRoom"


async def test_unknown_phase_is_invalid(env: Environment) -> None:
    await env.create(GPU_CLAIMS, a_claim())
    with pytest.raises(Invalid):
        await env.client.patch(env.key(GPU_CLAIMS, "claim"), {"status": {"phase": "Maybe"}}, MERGE_STATUS)


async def test_class_as_documented_is_taken(env: Environment) -> None:
    toleration = {
        "key": "gpu",
        "operator": "Equal",
        "value": "h100",
        "effect": "NoExecute",
        "tolerationSeconds": 60,
    }
    spec = {
        "resourceName": H100,
        "nodeSelector": {"gpu": "h100"},
        "tolerations": [toleration],
        "default": True,
        "description": "80 GB",
    }
    created = await create(env, GPU_CLASSES, spec)
    try:
        assert created["spec"] == spec
    finally:
        await env.client.delete(env.key(GPU_CLASSES, env.namespace))


@pytest.mark.parametrize("name", ["nvidia.com/gpu", "amd.com/a.b_c-d", "a/B", "x.y.z/1"])
async def test_name_of_an_extended_resource_is_taken(env: Environment, name: str) -> None:
    assert (await create(env, GPU_CLASSES, {"resourceName": name}))["spec"]["resourceName"] == name
    await env.client.delete(env.key(GPU_CLASSES, env.namespace))


@pytest.mark.parametrize(
    "name",
    [
        "",
        "cpu",
        "gpu",
        "/gpu",
        "nvidia.com/",
        "nvidia.com/a/b",
        "Nvidia.com/gpu",
        "nvidia.com/-gpu",
        "nvidia.com/gpu ",
        "nvidia.com/gpu\n",
        "kubernetes.io/gpu",
        "node.kubernetes.io/gpu",
        "x" * 400 + "/gpu",
        None,
        5,
    ],
    ids=repr,
)
async def test_name_that_is_no_extended_resource_is_invalid(env: Environment, name: Any) -> None:
    with pytest.raises(Invalid):
        await create(env, GPU_CLASSES, {"resourceName": name})


async def test_resource_of_a_class_never_changes_and_the_rest_does(env: Environment) -> None:
    key = env.key(GPU_CLASSES, env.namespace)
    await create(env, GPU_CLASSES, {"resourceName": H100})
    try:
        with pytest.raises(Invalid, match="immutable"):
            await env.client.patch(key, {"spec": {"resourceName": "nvidia.com/other"}})
        after = await env.client.patch(key, {"spec": {"nodeSelector": {"a": "b"}, "default": True}})
        assert after["spec"] == {"resourceName": H100, "nodeSelector": {"a": "b"}, "default": True}
    finally:
        await env.client.delete(key)


async def test_budget_as_documented_is_taken_and_can_change(env: Environment) -> None:
    key = env.key(GPU_BUDGETS, env.namespace)
    spec = {
        "parent": "root",
        "namespaceSelector": {
            "matchLabels": {"tenant": "a"},
            "matchExpressions": [{"key": "tier", "operator": "In", "values": ["x"]}],
        },
        "classes": {"h100": 8, "t4": 0},
        "resources": {H100: 4},
    }
    created = await create(env, GPU_BUDGETS, spec)
    try:
        assert created["spec"] == spec
        after = await env.client.patch(key, {"spec": {"classes": {"h100": 2, "t4": None}}})
        assert after["spec"]["classes"] == {"h100": 2}
    finally:
        await env.client.delete(key)


@pytest.mark.parametrize("limit", [-1, 1.5, "8", 2**63])
async def test_limit_that_makes_no_sense_is_refused(env: Environment, limit: Any) -> None:
    with pytest.raises(ApiError) as caught:
        await create(env, GPU_BUDGETS, {"classes": {"h100": limit}})
    assert isinstance(caught.value, Invalid | BadRequest)
