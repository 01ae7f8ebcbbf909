"""What the server refuses of pods and other built-in objects, as a real API server answered it."""

from __future__ import annotations

from typing import Any

import pytest

from kube.errors import Conflict, Invalid, ServerFault
from kube.port import DeleteOptions, Json, Propagation, Selection
from model import resources as r
from tests.simulator.apiserver.cluster_objects import a_pod, a_server, key

GPU = "nvidia.com/gpu"


def asking(**resources: Json) -> Json:
    return {"containers": [{"name": "main", "image": "none", "resources": resources}]}


def bound_by(where: str, *requirements: Json) -> Json:
    terms = {"nodeSelectorTerms": [{where: list(requirements)}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def wants(key: str, operator: str, *values: str) -> Json:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"containers": []}, "spec.containers: Required value"),
        ({"containers": [{"name": "a"}]}, "spec.containers[0].image: Required value"),
        ({"containers": [{"image": "a"}]}, "spec.containers[0].name: Required value"),
        (
            {"initContainers": [{"name": "main", "image": "a"}]},
            'spec.initContainers[0].name: Duplicate value: "main"',
        ),
        ({"restartPolicy": "Sometimes"}, 'spec.restartPolicy: Unsupported value: "Sometimes"'),
        (asking(requests={"cpu": "2"}, limits={"cpu": "1"}), "must be less than or equal to cpu limit of 1"),
        (asking(requests={GPU: "1"}), "Limit must be set for non overcommitable resources"),
        (asking(requests={GPU: "1"}, limits={GPU: "2"}), f"must be equal to {GPU} limit of 2"),
        (asking(limits={GPU: "1500m"}), "must be an integer"),
        (asking(limits={"cpu": "-1"}), "must be greater than or equal to 0"),
        (asking(limits={"gpu": "1"}), "must be a standard resource for containers"),
        (asking(limits={"requests.x.io/y": "1"}), "doesn't follow extended resource name standard"),
        ({"nodeSelector": {"a b": "c"}}, 'spec.nodeSelector: Invalid value: "a b"'),
        (bound_by("matchFields", wants("metadata.name", "In", "a", "b")), "must be only one value"),
        (bound_by("matchFields", wants("metadata.name", "Gt", "1")), "not a valid selector operator"),
        (bound_by("matchFields", wants("metadata.uid", "In", "a")), "not a valid field selector key"),
        (
            bound_by("matchFields", wants("metadata.name", "In", "A_")),
            "matchFields[0].values[0]: Invalid value",
        ),
        (
            bound_by("matchExpressions", wants("a", "In")),
            "must be specified when `operator` is 'In' or 'NotIn'",
        ),
        (
            bound_by("matchExpressions", wants("a", "Exists", "b")),
            "may not be specified when `operator` is 'Exists'",
        ),
        (bound_by("matchExpressions", wants("a", "Gt", "1", "2")), "must be specified single value"),
        (bound_by("matchExpressions", wants("a", "Near", "1")), "not a valid selector operator"),
        ({"tolerations": [{"key": "a", "operator": "Gt", "value": "5"}]}, 'Unsupported value: "Gt"'),
        ({"tolerations": [{"operator": "Equal"}]}, "operator must be Exists when `key` is empty"),
        ({"tolerations": [{"key": "a", "effect": "Never"}]}, 'effect: Unsupported value: "Never"'),
        ({"tolerations": [{"key": "a", "tolerationSeconds": 5}]}, "effect must be 'NoExecute'"),
        (
            {"schedulingGates": [{"name": "a"}, {"name": "a"}]},
            'spec.schedulingGates[1].name: Duplicate value: "a"',
        ),
        ({"schedulingGates": [{"name": "A b"}]}, "spec.schedulingGates[0]: Invalid value"),
        ({"activeDeadlineSeconds": 0}, "must be between 1 and 2147483647, inclusive"),
    ],
)
async def test_pod_that_breaks_a_rule_is_invalid_and_told_where(spec: Json, says: str) -> None:
    with pytest.raises(Invalid) as caught:
        await a_server().create(r.PODS, a_pod(**spec))
    assert says in caught.value.message


@pytest.mark.parametrize(
    ("spec", "qos"),
    [
        ({}, "BestEffort"),
        (asking(limits={GPU: "1"}), "BestEffort"),
        (asking(requests={"cpu": "1"}), "Burstable"),
        (asking(limits={"cpu": "1", "memory": "1Gi"}), "Guaranteed"),
        ({"resources": {"limits": {"cpu": "1"}}}, "Burstable"),
    ],
)
async def test_quality_of_service_follows_from_what_is_asked_for(spec: Json, qos: str) -> None:
    assert (await a_server().create(r.PODS, a_pod(**spec)))["status"]["qosClass"] == qos


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        ({"name": "a..b"}, "metadata.name: Invalid value"),
        ({"labels": {"a/b/c": "d"}}, "prefix part"),
        ({"labels": {"a": "b\n"}}, "a valid label must be an empty string"),
        ({"annotations": {"a": "x" * 300_000}}, "Too long: may not be more than 262144 bytes"),
        ({"finalizers": ["foregroundDeletion", "orphan"]}, "cannot be both set"),
        ({"ownerReferences": [{"kind": "A"}]}, "metadata.ownerReferences[0].uid: Required value"),
    ],
)
async def test_metadata_that_breaks_a_rule_is_invalid(metadata: Json, says: str) -> None:
    with pytest.raises(Invalid) as caught:
        await a_server().create(r.PODS, a_pod(metadata=metadata))
    assert says in caught.value.message


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"spec": {"taints": [{"key": "a"}]}}, "metadata.taints[0].effect: Required value"),
        ({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}] * 2}}, "taints must be unique"),
        ({"status": {"allocatable": {GPU: "1.5"}}}, "must be an integer"),
        ({"status": {"allocatable": {GPU: "-1"}}}, "must be greater than or equal to 0"),
    ],
)
async def test_node_that_breaks_a_rule_is_invalid(fields: Json, says: str) -> None:
    with pytest.raises(Invalid) as caught:
        await a_server().create(r.NODES, {"metadata": {"name": "n"}} | fields)
    assert says in caught.value.message


@pytest.mark.parametrize(
    ("asked", "finalizers"),
    [
        ((None,), ["a/b"]),
        ((Propagation.FOREGROUND,), ["a/b", "foregroundDeletion"]),
        ((Propagation.ORPHAN,), ["a/b", "orphan"]),
        ((Propagation.FOREGROUND, Propagation.ORPHAN), ["a/b", "orphan"]),
        ((Propagation.ORPHAN, Propagation.BACKGROUND), ["a/b"]),
        ((Propagation.ORPHAN, None), ["a/b", "orphan"]),
    ],
)
async def test_last_propagation_that_is_asked_for_counts(
    asked: tuple[Any, ...], finalizers: list[str]
) -> None:
    server = a_server()
    await server.create(r.PODS, a_pod(metadata={"finalizers": ["a/b"]}))
    for propagation in asked:
        await server.delete(key(r.PODS, "pod"), DeleteOptions(propagation=propagation))
    assert (await server.get(key(r.PODS, "pod")))["metadata"]["finalizers"] == finalizers


async def test_tolerations_stay_and_only_their_seconds_change() -> None:
    server = a_server()
    created = await server.create(r.PODS, a_pod())
    first, second = created["spec"]["tolerations"]
    longer = [first | {"tolerationSeconds": 9}, second]
    await server.patch(key(r.PODS, "pod"), {"spec": {"tolerations": longer}})
    with pytest.raises(Invalid, match="existing toleration can not be modified"):
        await server.patch(
            key(r.PODS, "pod"), {"spec": {"tolerations": [first | {"operator": "Equal"}, second]}}
        )


async def test_page_that_is_full_may_be_followed_by_an_empty_one() -> None:
    server = a_server()
    await server.create(r.PODS, a_pod("a", metadata={"labels": {"x": "1"}, "name": "a"}))
    await server.create(r.PODS, a_pod("b"))
    selection = Selection("default", "x=1")
    page = await server.list_page(r.PODS, selection, limit=1)
    assert page.continue_token
    last = await server.list_page(r.PODS, selection, limit=1, continue_token=page.continue_token)
    assert (last.items, last.continue_token) == ([], "")


async def test_pod_that_is_going_and_no_node_at_all_are_not_bound() -> None:
    server = a_server()
    await server.create(r.PODS, a_pod(metadata={"finalizers": ["a/b"]}))
    with pytest.raises(ServerFault):
        await server.bind(key(r.PODS, "pod"), "")
    await server.delete(key(r.PODS, "pod"))
    with pytest.raises(Conflict, match="is being deleted"):
        await server.bind(key(r.PODS, "pod"), "n")
