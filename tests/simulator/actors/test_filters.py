"""The simulated scheduler's filters, one claim a row."""

from __future__ import annotations

from fractions import Fraction

import pytest

from kube.port import Json
from simulator.actors.filters import accepts, is_tolerated, some_term_holds
from simulator.actors.quantities import allocatable, requests
from simulator.objects import gpu_node

H100 = "nvidia.com/GH100_H100_SXM5_80GB"
NODE = gpu_node("gpu-1", {H100: 2}, {"zone": "a", "memory": "80000"})


def pod(**spec: object) -> Json:
    """A pod that asks for one H100; `spec` adds to it."""
    container = {"name": "compute", "resources": {"requests": {H100: "1", "cpu": "1"}}}
    return {"metadata": {"name": "p"}, "spec": {"containers": [container], **spec}}


def tainted(**taint: str) -> Json:
    return {**NODE, "spec": {"taints": [taint]}}


def required(*terms: Json) -> Json:
    selector = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}


def expression(key: str, operator: str, *values: str) -> Json:
    return {"key": key, "operator": operator, "values": list(values)}


def test_node_takes_a_pod_that_asks_for_nothing_special() -> None:
    assert accepts(NODE, pod(), allocatable(NODE))


@pytest.mark.parametrize(
    ("node", "wanting"),
    [
        pytest.param({**NODE, "spec": {"unschedulable": True}}, pod(), id="cordoned"),
        pytest.param(NODE, pod(nodeSelector={"zone": "b"}), id="selector"),
        pytest.param(
            NODE, pod(affinity=required({"matchExpressions": [expression("zone", "In", "b")]})), id="affinity"
        ),
        pytest.param(tainted(key="gpu", effect="NoSchedule"), pod(), id="taint NoSchedule"),
        pytest.param(tainted(key="gpu", effect="NoExecute"), pod(), id="taint NoExecute"),
    ],
)
def test_node_refuses_what_one_filter_refuses(node: Json, wanting: Json) -> None:
    assert not accepts(node, wanting, allocatable(node))


@pytest.mark.parametrize("short", [H100, "cpu", "pods"])
def test_node_without_room_for_one_resource_refuses(short: str) -> None:
    free = allocatable(NODE) | {short: Fraction(1, 2)}
    assert not accepts(NODE, pod(), free)


def test_resource_that_the_node_does_not_name_is_not_there() -> None:
    wanting = pod()
    wanting["spec"]["containers"][0]["resources"]["requests"]["amd.com/gpu"] = "1"
    assert not accepts(NODE, wanting, allocatable(NODE))


PIN = {"matchFields": [expression("metadata.name", "In", "gpu-1")]}
OTHER_PIN = {"matchFields": [expression("metadata.name", "In", "gpu-2")]}
IN_A = {"matchExpressions": [expression("zone", "In", "a")]}


@pytest.mark.parametrize(
    ("terms", "holds"),
    [
        ([PIN], True),
        ([OTHER_PIN], False),
        ([OTHER_PIN, PIN], True),
        ([PIN | IN_A], True),
        ([OTHER_PIN | IN_A], False),
        ([{}], False),
        ([{}, IN_A], True),
        ([], False),
        ([{"matchExpressions": [expression("zone", "NotIn", "a")]}], False),
        ([{"matchExpressions": [expression("rack", "NotIn", "a")]}], True),
        ([{"matchExpressions": [expression("zone", "Exists")]}], True),
        ([{"matchExpressions": [expression("rack", "DoesNotExist")]}], True),
        ([{"matchExpressions": [expression("memory", "Gt", "79999")]}], True),
        ([{"matchExpressions": [expression("memory", "Gt", "80000")]}], False),
        ([{"matchExpressions": [expression("memory", "Lt", "80001")]}], True),
        ([{"matchExpressions": [expression("memory", "Gt", "150.1")]}], False),
        ([{"matchExpressions": [expression("zone", "Lt", "5")]}], False),
        ([{"matchExpressions": [expression("rack", "Lt", "5")]}], False),
        ([{"matchExpressions": [expression("zone", "Near", "a")]}], False),
    ],
)
def test_terms_are_ored_and_their_parts_anded(terms: list[Json], holds: bool) -> None:
    assert some_term_holds(terms, NODE) == holds


GPU = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("toleration", "tolerates"),
    [
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoSchedule"}, True),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "nvidia.com/gpu", "operator": "Exists"}, True),
        ({"key": "nvidia.com/gpu", "operator": "Equal", "value": "present"}, True),
        ({"key": "nvidia.com/gpu", "value": "present"}, True),
        ({"key": "nvidia.com/gpu"}, False),
        ({"value": "present"}, False),
        ({"key": "nvidia.com/gpu", "operator": "Lt", "value": "present"}, False),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_toleration_matches_key_value_and_effect(toleration: Json, tolerates: bool) -> None:
    """026."""
    assert is_tolerated(GPU, [toleration]) == tolerates


def test_preference_keeps_nobody_away() -> None:
    assert is_tolerated(GPU | {"effect": "PreferNoSchedule"}, [])


def test_request_is_what_the_scheduler_counts() -> None:
    """R29: sidecars with the containers, the largest init container, overhead, the pod's own request."""
    spec = {
        "containers": [_container("1", "1Gi"), _container("1", "1Gi")],
        "initContainers": [
            _container("500m", "1Gi"),
            _container("1", "1Gi") | {"restartPolicy": "Always"},
            _container("8", "1Gi"),
        ],
        "overhead": {"cpu": "250m"},
    }
    counted = requests({"spec": spec})
    assert counted == {"pods": 1, "cpu": Fraction(37, 4), "memory": 3 * 1024**3}
    whole = requests({"spec": spec | {"resources": {"requests": {"cpu": "10"}}}})
    assert whole == {"pods": 1, "cpu": Fraction(41, 4), "memory": 3 * 1024**3}


def _container(cpu: str, memory: str) -> Json:
    return {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
