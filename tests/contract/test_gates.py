"""Contract: what the API server allows for a gated pod and refuses for one without gates (R10)."""

from __future__ import annotations

import pytest

from kube.errors import Conflict, Invalid
from kube.port import Json
from model.resources import NODES, PODS
from tests.contract.builders import GATE, H100, a_pod, an_object, expression, named, required
from tests.contract.environment import Environment

KUBEVIRT = expression("node-labeller.kubevirt.io/obsolete-host-model", "DoesNotExist")
TERM = {"matchExpressions": [KUBEVIRT]}
TOLERATION = {"key": "gpu", "operator": "Equal", "value": "h100", "effect": "NoSchedule"}


async def a_gated(env: Environment, *gates: str, **spec: object) -> Json:
    return await env.create(PODS, a_pod(gates=gates or (GATE,), **spec))


async def patch(env: Environment, spec: Json) -> Json:
    return await env.client.patch(env.key(PODS, "pod"), {"spec": spec})


def terms_of(pod: Json) -> list[Json]:
    affinity = pod["spec"]["affinity"]["nodeAffinity"]
    return affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]


def pod_scheduled(pod: Json) -> Json:
    return next(each for each in pod["status"]["conditions"] if each["type"] == "PodScheduled")


async def test_gated_pod_says_so_in_its_conditions(env: Environment) -> None:
    pod = await a_gated(env)
    condition = pod_scheduled(pod)
    assert (condition["status"], condition["reason"]) == ("False", "SchedulingGated")
    assert pod["status"]["phase"] == "Pending"


async def test_pod_without_gates_has_no_such_condition(env: Environment) -> None:
    assert not (await env.create(PODS, a_pod()))["status"].get("conditions")


async def test_condition_outlives_the_gate_until_the_scheduler_writes(env: Environment) -> None:
    await a_gated(env)
    after = await patch(env, {"schedulingGates": []})
    assert not after["spec"].get("schedulingGates")
    assert pod_scheduled(after)["reason"] == "SchedulingGated"


async def test_gates_and_a_node_name_together_are_invalid(env: Environment) -> None:
    with pytest.raises(Invalid):
        await a_gated(env, nodeName="node-1")


async def test_two_gates_of_one_name_are_invalid(env: Environment) -> None:
    with pytest.raises(Invalid):
        await a_gated(env, GATE, GATE)


async def test_gates_can_be_removed_one_by_one_and_not_added(env: Environment) -> None:
    await a_gated(env, GATE, "other.io/gate")
    with pytest.raises(Invalid):
        await patch(
            env, {"schedulingGates": [{"name": GATE}, {"name": "other.io/gate"}, {"name": "third.io/x"}]}
        )
    with pytest.raises(Invalid):
        await patch(env, {"schedulingGates": [{"name": "third.io/x"}]})
    after = await patch(env, {"schedulingGates": [{"name": "other.io/gate"}]})
    assert after["spec"]["schedulingGates"] == [{"name": "other.io/gate"}]
    await patch(env, {"schedulingGates": None})
    with pytest.raises(Invalid):
        await patch(env, {"schedulingGates": [{"name": GATE}]})


async def test_pod_made_without_gates_cannot_get_one(env: Environment) -> None:
    await env.create(PODS, a_pod())
    with pytest.raises(Invalid):
        await patch(env, {"schedulingGates": [{"name": GATE}]})


async def test_gated_pod_cannot_be_bound(env: Environment) -> None:
    await a_gated(env)
    with pytest.raises(Conflict):
        await env.client.bind(env.key(PODS, "pod"), "node-1")
    await patch(env, {"schedulingGates": None})
    await env.client.bind(env.key(PODS, "pod"), "node-1")
    bound = await env.client.get(env.key(PODS, "pod"))
    assert bound["spec"]["nodeName"] == "node-1"
    assert pod_scheduled(bound)["status"] == "True"


async def test_bound_pod_cannot_be_bound_again(env: Environment) -> None:
    await env.create(PODS, a_pod())
    await env.client.bind(env.key(PODS, "pod"), "node-1")
    with pytest.raises(Conflict):
        await env.client.bind(env.key(PODS, "pod"), "node-2")


async def test_pin_toleration_and_removed_gate_go_in_one_patch(env: Environment) -> None:
    pod = await a_gated(env, affinity=required(TERM), tolerations=[TOLERATION | {"key": "own"}])
    after = await env.client.patch(
        env.key(PODS, "pod"),
        {
            "metadata": {"resourceVersion": pod["metadata"]["resourceVersion"]},
            "spec": {
                "schedulingGates": [],
                "tolerations": [*pod["spec"]["tolerations"], TOLERATION],
                "affinity": required(TERM | {"matchFields": [named("gpu-1")]}),
            },
        },
    )
    assert terms_of(after) == [TERM | {"matchFields": [named("gpu-1")]}]
    assert TOLERATION in after["spec"]["tolerations"]
    assert "schedulingGates" not in after["spec"]
    assert after["metadata"]["generation"] == pod["metadata"]["generation"] + 1


async def test_pin_with_a_stale_version_conflicts(env: Environment) -> None:
    pod = await a_gated(env)
    await env.client.patch(env.key(PODS, "pod"), {"metadata": {"labels": {"a": "1"}}})
    stale = {"metadata": {"resourceVersion": pod["metadata"]["resourceVersion"]}}
    pin = {"spec": {"schedulingGates": [], "affinity": required({"matchFields": [named("gpu-1")]})}}
    with pytest.raises(Conflict):
        await env.client.patch(env.key(PODS, "pod"), stale | pin)


async def test_gated_pod_without_required_terms_takes_any(env: Environment) -> None:
    await a_gated(env)
    after = await patch(env, {"affinity": required({"matchFields": [named("gpu-1")]})})
    assert terms_of(after) == [{"matchFields": [named("gpu-1")]}]


@pytest.mark.parametrize(
    "terms",
    [
        [TERM | {"matchExpressions": [KUBEVIRT, expression("zone", "In", "a")]}],
        [TERM | {"matchFields": [named("gpu-1")]}],
    ],
    ids=["expression appended", "field appended"],
)
async def test_terms_of_a_gated_pod_can_be_tightened(env: Environment, terms: list[Json]) -> None:
    await a_gated(env, affinity=required(TERM))
    assert terms_of(await patch(env, {"affinity": required(*terms)})) == terms


@pytest.mark.parametrize(
    "terms",
    [
        [{"matchExpressions": [expression("zone", "In", "a")]}],
        [{"matchExpressions": [expression("zone", "In", "a"), KUBEVIRT]}],
        [{"matchFields": [named("gpu-1")]}],
        [TERM, TERM],
        [TERM, {"matchFields": [named("gpu-1")]}],
    ],
    ids=["replaced", "prepended", "dropped", "term added", "pin as a term"],
)
async def test_terms_of_a_gated_pod_cannot_be_loosened(env: Environment, terms: list[Json]) -> None:
    await a_gated(env, affinity=required(TERM))
    with pytest.raises(Invalid):
        await patch(env, {"affinity": required(*terms)})


async def test_required_terms_of_a_gated_pod_cannot_be_dropped(env: Environment) -> None:
    await a_gated(env, affinity=required(TERM))
    with pytest.raises(Invalid):
        await patch(env, {"affinity": None})


async def test_each_of_several_terms_must_be_pinned_in_place(env: Environment) -> None:
    terms = [TERM, {"matchExpressions": [expression("zone", "In", "a")]}]
    await a_gated(env, affinity=required(*terms))
    pinned = [term | {"matchFields": [named("gpu-1")]} for term in terms]
    with pytest.raises(Invalid):
        await patch(env, {"affinity": required(*reversed(pinned))})
    assert terms_of(await patch(env, {"affinity": required(*pinned)})) == pinned


@pytest.mark.parametrize(
    "field",
    [
        expression("metadata.name", "In", "a", "b"),
        expression("metadata.name"),
        expression("metadata.namespace", "In", "a"),
    ],
    ids=["two values", "no values", "another field"],
)
async def test_pin_names_exactly_one_node(env: Environment, field: Json) -> None:
    await a_gated(env)
    with pytest.raises(Invalid):
        await patch(env, {"affinity": required({"matchFields": [field]})})


async def test_node_selector_of_a_gated_pod_takes_additions_only(env: Environment) -> None:
    await a_gated(env, nodeSelector={"a": "1"})
    assert (await patch(env, {"nodeSelector": {"b": "2"}}))["spec"]["nodeSelector"] == {"a": "1", "b": "2"}
    for change in ({"a": "2"}, {"a": None}):
        with pytest.raises(Invalid):
            await patch(env, {"nodeSelector": change})


async def test_pod_affinity_of_a_gated_pod_is_immutable(env: Environment) -> None:
    await a_gated(env)
    term = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "kubernetes.io/hostname"}
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    with pytest.raises(Invalid):
        await patch(env, {"affinity": anti})


@pytest.mark.parametrize(
    "change",
    [
        {"affinity": required(TERM | {"matchFields": [named("gpu-1")]})},
        {"nodeSelector": {"b": "2"}},
        {"nodeName": "gpu-1"},
        {"priority": 5},
    ],
    ids=lambda change: next(iter(change)),
)
async def test_placement_of_a_pod_without_gates_is_immutable(env: Environment, change: Json) -> None:
    await env.create(PODS, a_pod(affinity=required(TERM)))
    with pytest.raises(Invalid):
        await patch(env, change)


async def test_tolerations_can_be_added_and_not_removed(env: Environment) -> None:
    pod = await env.create(PODS, a_pod(tolerations=[TOLERATION]))
    more = [*pod["spec"]["tolerations"], TOLERATION | {"key": "second"}]
    assert (await patch(env, {"tolerations": more}))["spec"]["tolerations"] == more
    with pytest.raises(Invalid):
        await patch(env, {"tolerations": [each for each in more if each["key"] != "gpu"]})


async def test_requests_of_a_gated_pod_are_immutable(env: Environment) -> None:
    resources = {"limits": {H100: "1"}}
    pod = await a_gated(env, containers=[{"name": "main", "image": "none", "resources": resources}])
    container = pod["spec"]["containers"][0]
    assert container["resources"]["requests"] == {H100: "1"}
    changed = {"limits": {H100: "2"}, "requests": {H100: "2"}}
    with pytest.raises(Invalid):
        await patch(env, {"containers": [container | {"resources": changed}]})


async def test_extended_resource_is_whole_and_its_request_is_its_limit(env: Environment) -> None:
    for resources in (
        {"limits": {H100: "500m"}},
        {"requests": {H100: "1"}},
        {"requests": {H100: "1"}, "limits": {H100: "2"}},
    ):
        with pytest.raises(Invalid):
            await a_gated(env, containers=[{"name": "main", "image": "none", "resources": resources}])


async def test_scheduler_binds_an_ungated_pod_to_its_pin_and_leaves_gated_ones(managed: Environment) -> None:
    """The whole of R10 as the API server and the scheduler see it, with a tainted node."""
    node = managed.namespace
    allocatable = {"cpu": "8", "memory": "8Gi", "pods": "10", H100: "1"}
    status = {
        "allocatable": allocatable,
        "capacity": allocatable,
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
    }
    taint = {"key": "gpu", "value": "h100", "effect": "NoSchedule"}
    await managed.client.create(NODES, an_object(NODES, node, spec={"taints": [taint]}, status=status))
    key = managed.key(PODS, "pod")
    try:
        pod = await a_gated(managed, schedulerName="default-scheduler")
        for _ in range(5):
            await managed.step()
        assert "nodeName" not in (await managed.client.get(key))["spec"]
        not_ready = {"operator": "Exists"}  # of the fresh node, which has no kubelet
        await patch(
            managed,
            {
                "schedulingGates": None,
                "tolerations": [*pod["spec"]["tolerations"], TOLERATION, not_ready],
                "affinity": required({"matchFields": [named(node)]}),
            },
        )

        async def is_bound() -> bool:
            return (await managed.client.get(key))["spec"].get("nodeName") == node

        await managed.until(is_bound)
        assert pod_scheduled(await managed.client.get(key))["status"] == "True"
    finally:
        await managed.client.delete(managed.key(NODES, node))
