"""Contract: changing objects: preconditions, patch kinds, status subresources, generation, no-ops."""

from __future__ import annotations

from typing import Any

import pytest

from kube.errors import ApiError, BadRequest, Conflict, Invalid, NotFound
from kube.port import MERGE_STATUS, Json, PatchOptions, PatchType
from model.resources import NODES, PODS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES, WORKLOADS, Resource
from tests.contract.builders import a_pod, an_object
from tests.contract.environment import Environment

JSON_PATCH = PatchOptions(PatchType.JSON)


async def a_vm(env: Environment, **fields: Any) -> Json:
    return await env.create(VIRTUAL_MACHINES, an_object(VIRTUAL_MACHINES, "vm", **fields))


def changed(body: Json, **labels: str) -> Json:
    return body | {"metadata": body["metadata"] | {"labels": labels}}


async def test_put_with_a_stale_version_conflicts(env: Environment) -> None:
    for resource, body in ((PODS, a_pod("x")), (VIRTUAL_MACHINES, an_object(VIRTUAL_MACHINES, "x"))):
        first = await env.create(resource, body)
        second = await env.client.replace(env.key(resource, "x"), changed(first, a="1"))
        assert second["metadata"]["resourceVersion"] != first["metadata"]["resourceVersion"]
        with pytest.raises(Conflict):
            await env.client.replace(env.key(resource, "x"), changed(first, a="2"))


async def test_put_without_a_version_is_unconditional_for_pods_and_refused_for_custom_kinds(
    env: Environment,
) -> None:
    for resource, body in ((PODS, a_pod("x")), (VIRTUAL_MACHINES, an_object(VIRTUAL_MACHINES, "x"))):
        created = await env.create(resource, body)
        del created["metadata"]["resourceVersion"]
        if resource is PODS:
            assert (await env.client.replace(env.key(resource, "x"), changed(created, a="1")))["metadata"][
                "labels"
            ]
            continue
        with pytest.raises(Invalid):
            await env.client.replace(env.key(resource, "x"), changed(created, a="1"))


async def test_put_of_another_uid_conflicts(env: Environment) -> None:
    created = await env.create(PODS, a_pod())
    other = created | {"metadata": created["metadata"] | {"uid": "00000000-0000-0000-0000-000000000000"}}
    with pytest.raises(Conflict):
        await env.client.replace(env.key(PODS, "pod"), other)


async def test_put_of_another_name_is_a_bad_request(env: Environment) -> None:
    created = await env.create(PODS, a_pod())
    with pytest.raises(BadRequest):
        await env.client.replace(
            env.key(PODS, "pod"), created | {"metadata": created["metadata"] | {"name": "else"}}
        )


async def test_merge_patch_with_a_stale_version_conflicts(env: Environment) -> None:
    created = await env.create(PODS, a_pod())
    version = created["metadata"]["resourceVersion"]
    patch = {"metadata": {"resourceVersion": version, "labels": {"a": "1"}}}
    await env.client.patch(env.key(PODS, "pod"), patch)
    with pytest.raises(Conflict):
        await env.client.patch(env.key(PODS, "pod"), patch)


async def test_merge_patch_without_a_version_is_unconditional(env: Environment) -> None:
    await env.create(PODS, a_pod())
    for value in ("1", "2"):
        patched = await env.client.patch(env.key(PODS, "pod"), {"metadata": {"labels": {"a": value}}})
        assert patched["metadata"]["labels"] == {"a": value}


async def test_merge_patch_of_another_uid_is_refused(env: Environment) -> None:
    await env.create(PODS, a_pod())
    with pytest.raises(Invalid):  # where a PUT conflicts
        await env.client.patch(
            env.key(PODS, "pod"), {"metadata": {"uid": "00000000-0000-0000-0000-000000000000"}}
        )


async def test_merge_patch_merges_maps_replaces_lists_and_removes_nulls(env: Environment) -> None:
    await a_vm(env, spec={"keep": 1, "drop": 2, "list": [1, 2], "deep": {"a": 1, "b": 2}})
    patched = await env.client.patch(
        env.key(VIRTUAL_MACHINES, "vm"),
        {"spec": {"drop": None, "list": [3], "deep": {"b": None, "c": 3}, "absent": None}},
    )
    assert patched["spec"] == {"keep": 1, "list": [3], "deep": {"a": 1, "c": 3}}


async def test_json_patch_adds_replaces_removes_and_tests(env: Environment) -> None:
    await a_vm(env, spec={"list": [1, 2], "old": True})
    operations = [
        {"op": "test", "path": "/spec/list/0", "value": 1},
        {"op": "add", "path": "/spec/list/-", "value": 3},
        {"op": "add", "path": "/spec/list/0", "value": 0},
        {"op": "replace", "path": "/spec/list/1", "value": 9},
        {"op": "remove", "path": "/spec/old"},
        {"op": "add", "path": "/metadata/labels", "value": {"a~b": "1"}},
    ]
    with pytest.raises(Invalid):  # `a~b` is no label's name
        await env.client.patch(env.key(VIRTUAL_MACHINES, "vm"), operations, JSON_PATCH)
    operations[-1] = {"op": "add", "path": "/metadata/annotations", "value": {"x/y": "1"}}
    operations.append({"op": "replace", "path": "/metadata/annotations/x~1y", "value": "2"})
    patched = await env.client.patch(env.key(VIRTUAL_MACHINES, "vm"), operations, JSON_PATCH)
    assert patched["spec"] == {"list": [0, 9, 2, 3]}
    assert patched["metadata"]["annotations"] == {"x/y": "2"}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/spec/a", "value": 2},
        {"op": "test", "path": "/spec/none", "value": 2},
        {"op": "remove", "path": "/spec/none"},
        {"op": "add", "path": "/spec/none/deeper", "value": 1},
    ],
    ids=lambda operation: f"{operation['op']} {operation['path']}",
)
async def test_json_patch_that_does_not_apply_is_invalid_and_changes_nothing(
    env: Environment, operation: Json
) -> None:
    created = await a_vm(env, spec={"a": 1})
    operations = [{"op": "add", "path": "/spec/b", "value": 1}, operation]
    with pytest.raises(Invalid):
        await env.client.patch(env.key(VIRTUAL_MACHINES, "vm"), operations, JSON_PATCH)
    assert await env.client.get(env.key(VIRTUAL_MACHINES, "vm")) == created


async def test_json_patch_replaces_a_member_that_is_not_there(env: Environment) -> None:
    await a_vm(env, spec={"a": 1})
    operations = [{"op": "replace", "path": "/spec/b", "value": 2}]  # against RFC 6902, as the server does it
    patched = await env.client.patch(env.key(VIRTUAL_MACHINES, "vm"), operations, JSON_PATCH)
    assert patched["spec"] == {"a": 1, "b": 2}


async def test_json_patch_that_is_no_list_is_a_bad_request(env: Environment) -> None:
    await a_vm(env)
    with pytest.raises(BadRequest):
        await env.client.patch(env.key(VIRTUAL_MACHINES, "vm"), {"spec": {}}, JSON_PATCH)


async def test_patch_that_changes_nothing_keeps_the_version(env: Environment) -> None:
    created = await a_vm(env, spec={"a": 1}, metadata={"labels": {"l": "1"}})
    for patch in ({}, {"spec": {"a": 1}}, {"metadata": {"labels": {"l": "1"}}}, {"spec": {"none": None}}):
        patched = await env.client.patch(env.key(VIRTUAL_MACHINES, "vm"), patch)
        assert patched == created, patch
    assert await env.client.replace(env.key(VIRTUAL_MACHINES, "vm"), created) == created


@pytest.mark.parametrize("resource", [VIRTUAL_MACHINES, PODS], ids=lambda resource: resource.kind)
async def test_status_subresource_separates_spec_and_status(env: Environment, resource: Resource) -> None:
    body = a_pod("x") if resource is PODS else an_object(resource, "x", spec={"a": 1})
    created = await env.create(resource, body)
    key = env.key(resource, "x")
    spec_change = {"spec": {"activeDeadlineSeconds": 5}}
    status_change = {"status": {"message": "hello"}}

    through_main = await env.client.patch(key, status_change)
    assert through_main["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]
    through_status = await env.client.patch(key, spec_change | status_change, MERGE_STATUS)
    assert through_status["status"]["message"] == "hello"
    assert through_status["spec"] == created["spec"]

    stored = await env.client.patch(key, spec_change)
    assert stored["spec"]["activeDeadlineSeconds"] == 5
    assert stored["status"]["message"] == "hello"


async def test_put_of_status_changes_the_status_alone(env: Environment) -> None:
    created = await a_vm(env, spec={"a": 1})
    wanted = created | {"spec": {"a": 2}, "status": {"ready": True}}
    after = await env.client.replace(env.key(VIRTUAL_MACHINES, "vm"), wanted, "status")
    assert (after["spec"], after["status"]) == ({"a": 1}, {"ready": True})
    with pytest.raises(Conflict):
        await env.client.replace(env.key(VIRTUAL_MACHINES, "vm"), wanted, "status")


async def test_status_write_leaves_the_labels_of_a_custom_kind_alone(env: Environment) -> None:
    await a_vm(env)
    patch = {"metadata": {"labels": {"a": "1"}}, "status": {"ready": True}}
    after = await env.client.patch(env.key(VIRTUAL_MACHINES, "vm"), patch, MERGE_STATUS)
    assert "labels" not in after["metadata"]


async def test_new_object_of_a_kind_with_a_status_subresource_has_no_status(env: Environment) -> None:
    assert "status" not in await a_vm(env, status={"ready": True})


@pytest.mark.parametrize("resource", [VIRTUAL_MACHINE_INSTANCES, WORKLOADS], ids=lambda r: r.kind)
async def test_kind_without_a_status_subresource_takes_status_with_the_object(
    env: Environment, resource: Resource
) -> None:
    created = await env.create(resource, an_object(resource, "x", status={"phase": "Pending"}))
    assert created["status"] == {"phase": "Pending"}
    patched = await env.client.patch(env.key(resource, "x"), {"status": {"phase": "Running"}})
    assert patched["status"] == {"phase": "Running"}
    with pytest.raises(NotFound):
        await env.client.patch(env.key(resource, "x"), {"status": {"phase": "Failed"}}, MERGE_STATUS)


async def test_generation_counts_changes_of_the_spec_only(env: Environment) -> None:
    key = env.key(VIRTUAL_MACHINES, "vm")
    await a_vm(env, spec={"a": 1})
    seen = [
        (await env.client.patch(key, {"metadata": {"labels": {"a": "1"}}}))["metadata"]["generation"],
        (await env.client.patch(key, {"status": {"x": 1}}, MERGE_STATUS))["metadata"]["generation"],
        (await env.client.patch(key, {"spec": {"a": 2}}))["metadata"]["generation"],
        (await env.client.patch(key, {"spec": {"a": 2}}))["metadata"]["generation"],
    ]
    assert seen == [1, 1, 2, 2]


async def test_generation_counts_status_too_where_status_is_no_subresource(env: Environment) -> None:
    key = env.key(VIRTUAL_MACHINE_INSTANCES, "vmi")
    await env.create(VIRTUAL_MACHINE_INSTANCES, an_object(VIRTUAL_MACHINE_INSTANCES, "vmi"))
    patched = await env.client.patch(key, {"status": {"phase": "Running"}})
    assert patched["metadata"]["generation"] == 2


async def test_writers_cannot_change_what_the_server_owns(env: Environment) -> None:
    created = await a_vm(env)
    patch = {
        "metadata": {"generation": 99, "creationTimestamp": "2000-01-01T00:00:00Z", "generateName": "g-"}
    }
    patched = await env.client.patch(env.key(VIRTUAL_MACHINES, "vm"), patch)
    for field in ("generation", "creationTimestamp", "uid"):
        assert patched["metadata"][field] == created["metadata"][field]


async def test_unknown_subresource_is_not_found(env: Environment) -> None:
    await a_vm(env)
    with pytest.raises(NotFound):
        await env.client.patch(env.key(VIRTUAL_MACHINES, "vm"), {}, PatchOptions(subresource="nonsense"))


async def test_patch_that_is_invalid_changes_nothing(env: Environment) -> None:
    created = await env.create(PODS, a_pod())
    with pytest.raises(Invalid):
        await env.client.patch(env.key(PODS, "pod"), {"metadata": {"labels": {"a": "not allowed"}}})
    assert await env.client.get(env.key(PODS, "pod")) == created


async def test_merge_patch_that_breaks_the_types_of_a_kind_is_refused(env: Environment) -> None:
    await env.create(PODS, a_pod())
    with pytest.raises(ApiError) as caught:
        await env.client.patch(env.key(PODS, "pod"), {"metadata": {"labels": {"a": 5}}})
    assert isinstance(caught.value, BadRequest | Invalid)


async def test_node_takes_status_through_its_subresource_and_taints_through_its_spec(
    env: Environment,
) -> None:
    name = env.namespace
    await env.create(NODES, an_object(NODES, name))
    key = env.key(NODES, name)
    try:
        status = {"status": {"allocatable": {"nvidia.com/gpu": "2"}, "capacity": {"nvidia.com/gpu": "2"}}}
        after = await env.client.patch(key, status, MERGE_STATUS)
        assert after["status"]["allocatable"] == {"nvidia.com/gpu": "2"}
        taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
        after = await env.client.patch(key, {"spec": {"taints": [taint]}})
        assert taint in after["spec"]["taints"]
        with pytest.raises(Invalid):
            await env.client.patch(key, {"spec": {"taints": [taint | {"effect": "Nonsense"}]}})
    finally:
        await env.client.delete(key)
