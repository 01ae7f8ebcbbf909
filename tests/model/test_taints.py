"""A class's tolerations are given to launchers: one that the API server refuses would stop every pin."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binder.core.nodes import tolerates
from model.claims import GPUClass
from model.pods import Pod
from model.taints import Taint, Toleration, for_pods


def tolerations_of_class(*written: dict[str, Any]) -> list[dict[str, Any]]:
    spec = {"resourceName": "nvidia.com/gpu", "tolerations": list(written)}
    read = GPUClass.model_validate({"spec": spec}).spec.tolerations
    return [one.model_dump(by_alias=True, exclude_defaults=True) for one in read]


@pytest.mark.parametrize(
    "toleration",
    [
        {"key": "gpu", "operator": "Exists"},
        {"operator": "Exists"},
        {"key": "nvidia.com/gpu", "value": "h100", "effect": "NoSchedule"},
        {"key": "gpu", "operator": "Equal", "effect": "NoExecute", "tolerationSeconds": 0},
    ],
    ids=str,
)
def test_what_the_server_takes_is_given_as_it_is_written(toleration: dict[str, Any]) -> None:
    assert tolerations_of_class(toleration) == [toleration]


@pytest.mark.parametrize(
    ("written", "given_to_pods"),
    [
        ({"key": "gpu", "operator": "Exists", "value": "x"}, [{"key": "gpu", "operator": "Exists"}]),
        ({"operator": "Exists", "tolerationSeconds": 5}, [{"operator": "Exists"}]),
        ({"operator": "Equal", "value": "x"}, []),
        ({}, []),
        ({"key": "gpu", "value": "two words"}, []),
        ({"key": "gpu/", "operator": "Exists"}, []),
        ({"key": "a" * 254 + "/gpu", "operator": "Exists"}, []),
        ({"key": "gpu", "operator": "Exist"}, []),
        ({"key": "gpu", "operator": "Gt", "value": "3"}, []),
        ({"key": "gpu", "operator": "Exists", "effect": "NoRun"}, []),
    ],
    ids=str,
)
def test_what_the_server_refuses_is_cut_to_what_it_means(
    written: dict[str, Any], given_to_pods: list[dict[str, Any]]
) -> None:
    assert tolerations_of_class(written) == given_to_pods


words = st.sampled_from(["", "gpu", "a b", "nvidia.com/gpu", "x/", "h100"])
taints = st.builds(
    Taint,
    key=st.sampled_from(["gpu", "nvidia.com/gpu"]),
    value=st.sampled_from(["", "h100"]),
    effect=st.sampled_from(["NoSchedule", "NoExecute"]),
)
tolerations = st.builds(
    Toleration,
    key=words,
    operator=st.sampled_from(["", "Equal", "Exists", "Exist"]),
    value=words,
    effect=st.sampled_from(["", "NoSchedule", "NoExecute", "NoRun"]),
    toleration_seconds=st.none() | st.integers(0, 9),
)


@given(st.lists(tolerations, max_size=3), taints)
def test_cut_tolerations_tolerate_the_same_taints(written: list[Toleration], taint: Taint) -> None:
    cut = for_pods(written)
    assert any(tolerates(one, taint) for one in cut) == any(tolerates(one, taint) for one in written)
    assert for_pods(cut) == cut


def test_pods_of_others_keep_the_words_of_a_newer_server() -> None:
    """What others put on their pods is read, not judged."""
    raw = {"spec": {"tolerations": [{"key": "k", "operator": "Gt", "value": "3", "effect": "NoNewPods"}]}}
    assert Pod.model_validate(raw).spec.tolerations[0].operator == "Gt"
