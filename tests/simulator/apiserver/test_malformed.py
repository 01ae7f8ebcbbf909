"""Whatever is sent, the server answers with a refusal or stores an object: nothing crashes it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube.errors import BadRequest, Invalid, Refused
from kube.port import MERGE_STATUS, Json, PatchOptions, PatchType
from model import resources as r
from model.resources import Resource
from simulator.apiserver.patches import merge_patch
from tests.simulator.apiserver.cluster_objects import a_pod, a_server, key

WORDS = st.sampled_from(
    ["", "a", "A b", "2", "1.5", "metadata.name", "In", "Exists", "NoSchedule", "nvidia.com/x"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=6,
)
PATHS: dict[Resource, tuple[str, ...]] = {
    r.PODS: (
        *("metadata", "metadata.labels", "metadata.ownerReferences", "metadata.finalizers", "metadata.name"),
        *("metadata.annotations", "metadata.resourceVersion", "metadata.deletionTimestamp", "spec", "status"),
        *(
            "spec.containers",
            "spec.tolerations",
            "spec.schedulingGates",
            "spec.nodeSelector",
            "spec.nodeName",
        ),
        *("spec.affinity", "spec.affinity.nodeAffinity", "spec.activeDeadlineSeconds", "status.conditions"),
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms",
    ),
    r.NODES: ("spec", "spec.taints", "status.allocatable", "status", "metadata.labels"),
    r.EVENTS: ("regarding", "series", "note", "type", "eventTime"),
    r.LEASES: ("spec", "spec.leaseDurationSeconds", "spec.renewTime"),
    r.CUSTOM_RESOURCE_DEFINITIONS: ("spec", "spec.names", "spec.versions", "spec.group"),
    r.GPU_CLAIMS: ("spec", "status"),
}


def at(path: str, value: Any) -> Json:
    for part in reversed(path.split(".")):
        value = {part: value}
    return dict(value)


async def refusal_of(attempt: Coroutine[Any, Any, Any]) -> Refused | None:
    """Why an attempt is refused, or None; any other error is the test's to fail with."""
    try:
        await attempt
    except Refused as error:
        return error
    return None


@st.composite
def odd_patches(draw: st.DrawFn) -> tuple[Resource, Json]:
    resource = draw(st.sampled_from(sorted(PATHS, key=lambda one: one.kind)))
    return resource, at(draw(st.sampled_from(PATHS[resource])), draw(JSON))


@given(odd_patches())
@settings(max_examples=300, deadline=None)
def test_odd_object_is_stored_or_refused(odd: tuple[Resource, Json]) -> None:
    resource, patch = odd

    async def main() -> None:
        server = a_server()
        plain = a_pod() if resource == r.PODS else {"metadata": {"name": "pod", "namespace": "default"}}
        place, changed = key(resource, "pod"), merge_patch(plain, patch)
        await refusal_of(server.create(resource, changed))
        await refusal_of(server.create(resource, plain))
        await refusal_of(server.patch(place, patch))
        await refusal_of(server.replace(place, changed))
        await refusal_of(server.patch(place, patch, MERGE_STATUS))
        await refusal_of(server.delete(place))

    asyncio.run(main())


@given(JSON)
@settings(max_examples=100, deadline=None)
def test_odd_patch_is_applied_or_refused(patch: Any) -> None:
    async def main() -> None:
        server = a_server()
        await server.create(r.PODS, a_pod())
        for kind in PatchType:
            refusal = await refusal_of(server.patch(key(r.PODS, "pod"), patch, PatchOptions(kind)))
            assert refusal is None or refusal.status in (400, 409, 422, 500)

    asyncio.run(main())


@pytest.mark.parametrize("path", ["spec", "spec.containers", "spec.tolerations", "metadata.labels", "status"])
async def test_type_of_a_field_is_a_bad_request_on_create_and_invalid_in_a_patch(path: str) -> None:
    server = a_server()
    await server.create(r.PODS, a_pod("there"))
    odd = at(path, 5)
    with pytest.raises(BadRequest, match="cannot unmarshal number into Go struct field Pod"):
        await server.create(r.PODS, merge_patch(a_pod(), odd))
    with pytest.raises(Invalid, match="cannot unmarshal number"):
        await server.patch(key(r.PODS, "there"), odd)


@pytest.mark.parametrize("odd", [10**30, {1: 2}, object(), "\ud800"])
async def test_what_cannot_be_json_is_a_bad_request(odd: Any) -> None:
    server = a_server()
    with pytest.raises(BadRequest):
        await server.create(r.PODS, a_pod(metadata={"annotations": {"a": odd}}))
    await server.create(r.PODS, a_pod())
    with pytest.raises(Invalid):
        await server.patch(key(r.PODS, "pod"), {"spec": {"odd": odd}})


async def test_lease_without_microseconds_is_a_bad_request() -> None:
    lease = {"metadata": {"name": "l", "namespace": "default"}, "spec": {"renewTime": "2026-01-01T00:00:00Z"}}
    with pytest.raises(BadRequest, match="000000"):
        await a_server().create(r.LEASES, lease)
