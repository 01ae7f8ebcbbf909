"""What a pod takes from a node (R29), as the scheduler counts it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.pods import Pod
from model.quantity import MAX_INT64
from model.requests import allocatable_units, effective_request
from tests.builders import H100

Json = dict[str, Any]


def container(name: str = "c", always: bool = False, **requests: str) -> Json:
    made: Json = {
        "name": name,
        "resources": {"requests": {key.replace("_", "/"): v for key, v in requests.items()}},
    }
    return made | ({"restartPolicy": "Always"} if always else {})


def taken(
    *containers: Json, init: tuple[Json, ...] = (), status: Json | None = None, **spec: Any
) -> dict[str, int]:
    written = {"containers": list(containers), "initContainers": list(init), **spec}
    return effective_request(
        Pod.model_validate({"metadata": {"name": "p"}, "spec": written, "status": status or {}})
    )


def test_containers_add_up() -> None:
    gpus = {"name": "gpus", "resources": {"requests": {H100: "2"}}}
    assert taken(container(cpu="1", memory="1Gi"), container(cpu="500m"), gpus) == {
        "cpu": 1500,
        "memory": 2**30,
        H100: 2,
    }


@pytest.mark.parametrize(
    ("init", "cpu"),
    [
        ((), 1000),
        ((container(cpu="3"), container(cpu="2")), 3000),
        ((container(cpu="500m"),), 1000),
        ((container(always=True, cpu="2"),), 3000),
        ((container(always=True, cpu="1"), container(cpu="4")), 5000),
        ((container(cpu="4"), container(always=True, cpu="1")), 4000),
        ((container(always=True, cpu="1"), container(cpu="1"), container(always=True, cpu="1")), 3000),
    ],
)
def test_init_containers_run_one_by_one_beside_the_sidecars_before_them(
    init: tuple[Json, ...], cpu: int
) -> None:
    assert taken(container(cpu="1"), init=init) == {"cpu": cpu}


def test_requests_of_the_whole_pod_replace_the_sum_where_a_pod_can_have_them() -> None:
    whole = {"requests": {"cpu": "3", "hugepages-2Mi": "4Mi", "ephemeral-storage": "9Gi", H100: "8"}}
    got = taken(container(cpu="1", memory="1Gi"), resources=whole)
    assert got == {"cpu": 3000, "memory": 2**30, "hugepages-2Mi": 4 * 2**20}


def test_overhead_comes_on_top_of_whichever_counts() -> None:
    """Case 037."""
    got = taken(
        container(cpu="1"), resources={"requests": {"cpu": "3"}}, overhead={"cpu": "250m", "memory": "1Mi"}
    )
    assert got == {"cpu": 3250, "memory": 2**20}


def test_sums_are_exact_and_rounded_up_once() -> None:
    assert taken(container(memory="500m"), container(memory="500m")) == {"memory": 1}
    assert taken(container(memory="100m", cpu="1n")) == {"memory": 1, "cpu": 1}


def test_what_is_asked_for_zero_times_is_not_wanted() -> None:
    """A node that has given away more than it has still takes a pod that asks for none of it."""
    assert taken(container(cpu="0", memory="0Mi"), container(cpu="0m")) == {}


def test_resources_that_the_scheduler_does_not_count_are_left_out() -> None:
    odd = {
        "name": "c",
        "resources": {"requests": {"pods": "9", "storage": "1Gi", "gpu": "1", "x.io/gpu": "1"}},
    }
    assert taken(odd) == {"x.io/gpu": 1}


@pytest.mark.parametrize("text", ["NaN", "", "1K", "x", "1" * 200])
def test_request_that_is_no_quantity_fits_nowhere(text: str) -> None:
    assert taken(container(cpu=text), container(cpu="1")) == {"cpu": MAX_INT64}


def test_amounts_beyond_64_bits_saturate() -> None:
    assert taken(container(memory="1e30"), container(memory="1e30")) == {"memory": MAX_INT64}
    assert taken(container(memory="-5")) == {}


# Resizes in place, of a pod that is on a node


def resizing(*, reason: str = "", **container_status: Any) -> Json:
    condition = [{"type": "PodResizePending", "status": "True", "reason": reason}] if reason else []
    statuses = [{"name": "c", **container_status}] if container_status else []
    return {"conditions": condition, "containerStatuses": statuses}


@pytest.mark.parametrize(
    ("status", "cpu"),
    [
        ({}, 2000),
        (resizing(allocatedResources={"cpu": "3"}), 3000),
        (resizing(allocatedResources={"cpu": "1"}), 2000),
        (resizing(allocatedResources={"cpu": "1"}, resources={"requests": {"cpu": "4"}}), 4000),
        (resizing(allocatedResources={"cpu": "4"}, resources={"requests": {"cpu": "3"}}), 4000),
        (resizing(resources={"requests": {"cpu": "1"}}), 2000),
        (resizing(reason="Infeasible"), 0),
        (resizing(reason="Infeasible", resources={"requests": {"cpu": "1"}}), 1000),
        (resizing(reason="Deferred", allocatedResources={"cpu": "1"}), 2000),
        (resizing(reason="Infeasible", allocatedResources={"cpu": "1"}), 1000),
        (
            resizing(
                reason="Infeasible", allocatedResources={"cpu": "1"}, resources={"requests": {"cpu": "3"}}
            ),
            3000,
        ),
    ],
    ids=str,
)
def test_the_most_of_wanted_given_and_in_force_counts_while_resized(status: Json, cpu: int) -> None:
    """What the node can never give does not count as wanted."""
    assert taken(container(cpu="2"), status=status, nodeName="gpu-1").get("cpu", 0) == cpu


def test_container_without_a_status_counts_by_its_spec_beside_one_that_is_resized() -> None:
    status = resizing(allocatedResources={"cpu": "3"})
    assert taken(container(cpu="2"), container("d", cpu="1"), status=status, nodeName="gpu-1") == {
        "cpu": 4000
    }


def test_amounts_of_the_whole_pods_status_count_also_where_its_spec_has_none() -> None:
    status = {"allocatedResources": {"cpu": "5"}, "resources": {"requests": {"cpu": "4", "memory": "1Gi"}}}
    assert taken(container(cpu="1"), status=status, nodeName="gpu-1") == {"cpu": 5000, "memory": 2**30}
    assert taken(container(cpu="1"), status={"allocatedResources": {"cpu": "5"}}, nodeName="gpu-1") == {
        "cpu": 1000
    }


def test_status_of_a_pod_without_a_node_counts_nothing() -> None:
    """The scheduler places a pod by its spec; whoever writes its status gains nothing."""
    assert taken(container(cpu="2"), status=resizing(allocatedResources={"cpu": "9"})) == {"cpu": 2000}


def test_pod_level_resize_counts_the_most_of_the_pods_own_status() -> None:
    status = {"allocatedResources": {"cpu": "5"}, "resources": {"requests": {"cpu": "4", "memory": "1Gi"}}}
    got = taken(container(cpu="1"), resources={"requests": {"cpu": "2"}}, status=status, nodeName="gpu-1")
    assert got == {"cpu": 5000, "memory": 2**30}
    in_force = {"allocatedResources": {"cpu": "5"}, "resources": {"requests": {"cpu": "6"}}}
    got = taken(container(cpu="1"), resources={"requests": {"cpu": "2"}}, status=in_force, nodeName="gpu-1")
    assert got == {"cpu": 6000}
    infeasible = {**status, **resizing(reason="Infeasible")}
    got = taken(container(cpu="1"), resources={"requests": {"cpu": "9"}}, status=infeasible, nodeName="gpu-1")
    assert got == {"cpu": 5000, "memory": 2**30}


def test_gpus_of_a_container_stay_counted_while_its_cpu_is_resized() -> None:
    gpus = {"name": "c", "resources": {"requests": {H100: "2", "cpu": "1"}}}
    status = resizing(allocatedResources={"cpu": "3"}, resources={"requests": {"cpu": "3"}})
    assert taken(gpus, status=status, nodeName="gpu-1") == {H100: 2, "cpu": 3000}


def test_allocatable_that_is_no_quantity_holds_nothing() -> None:
    offered = {"cpu": "1500m", "memory": "0.5", H100: "8", "x.io/odd": "many", "x.io/less": "-1"}
    assert allocatable_units(offered) == {"cpu": 1500, "memory": 1, H100: 8, "x.io/less": 0}


quantities = st.sampled_from(
    ["0", "1", "500m", "1e30", "-1", "NaN", "9" * 128, "1Ei", "0.0000000001"]
) | st.text(max_size=5)
amounts = st.dictionaries(st.sampled_from(["cpu", "memory", H100, "pods", "hugepages-1Gi", ""]), quantities)
containers = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("ab"), "resources": st.fixed_dictionaries({"requests": amounts})},
        optional={"restartPolicy": st.sampled_from(["Always", "Never"])},
    ),
    max_size=3,
)
statuses = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("ab")}, optional={"allocatedResources": amounts}),
    max_size=2,
)


@given(containers, containers, amounts, statuses)
def test_any_pod_has_a_request_of_amounts_above_zero(plain: Any, init: Any, extra: Any, status: Any) -> None:
    whole = {"requests": extra}
    got = taken(
        *plain,
        init=tuple(init),
        overhead=extra,
        resources=whole,
        nodeName="n",
        status={"containerStatuses": status},
    )
    assert all(0 < amount <= MAX_INT64 for amount in got.values())


@pytest.mark.timeout(20)
def test_cost_is_linear_in_containers_and_resources() -> None:
    many = {f"x.io/{number}": "1" for number in range(100)}
    each = [{"name": f"c{number}", "resources": {"requests": many}} for number in range(2_000)]
    status = {
        "containerStatuses": [{"name": one["name"], "allocatedResources": {"cpu": "1"}} for one in each]
    }
    assert taken(*each, status=status, nodeName="n")["x.io/7"] == 2_000
