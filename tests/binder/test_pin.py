"""The pin as a patch, key by key (R10, R30), and the digest that it rests on."""

from __future__ import annotations

from typing import Any

from binder.core.pin import pin_patch, spec_digest, ungate_patch
from model.names import GATE
from model.pods import PodSpec
from model.taints import Toleration

ZONE = {"key": "zone", "operator": "In", "values": ["1"]}
BY_NAME = {"key": "metadata.name", "operator": "NotIn", "values": ["x"]}
PIN = {"key": "metadata.name", "operator": "In", "values": ["n"]}
OURS = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}


def pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": "7"}, "spec": spec}


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    return {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [*terms]}}
    }


def test_patch_says_everything_that_changes_and_nothing_else() -> None:
    """R10: the pin in each term that is not empty; foreign gates and the pod's own tolerations stay."""
    terms = ({}, {"matchExpressions": [ZONE]}, {"matchFields": [BY_NAME]})
    live = pod(
        affinity=required(*terms) | {"podAffinity": {}},
        schedulingGates=[{"name": GATE}, {"name": "other"}],
        tolerations=[OURS],
        nodeSelector={"a": "b"},
    )
    timed = Toleration(key="x", operator="Exists", effect="NoExecute", toleration_seconds=30)
    assert pin_patch(live, "n", [timed, Toleration(key="y")]) == {
        "metadata": {"resourceVersion": "7"},
        "spec": {
            "affinity": required(
                {}, {"matchExpressions": [ZONE], "matchFields": [PIN]}, {"matchFields": [BY_NAME, PIN]}
            ),
            "schedulingGates": [{"name": "other"}],
            "tolerations": [
                OURS,
                {"key": "x", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30},
                {"key": "y"},
            ],
        },
    }


def test_pod_without_terms_gets_one_and_without_new_tolerations_none() -> None:
    """R10."""
    gates = [{"name": GATE}]
    assert pin_patch(pod(schedulingGates=gates, tolerations=[OURS]), "n", [])["spec"] == {
        "affinity": required({"matchFields": [PIN]}), "schedulingGates": []
    }  # fmt: skip
    (only,) = pin_patch(pod(schedulingGates=gates), "n", [Toleration(key="y")])["spec"]["tolerations"]
    assert only == {"key": "y"}


def test_ungating_takes_our_gate_off_that_very_version() -> None:
    """R30."""
    assert ungate_patch(pod(schedulingGates=[{"name": "other"}, {"name": GATE}])) == {
        "metadata": {"resourceVersion": "7"},
        "spec": {"schedulingGates": [{"name": "other"}]},
    }
    assert ungate_patch(pod())["spec"] == {"schedulingGates": []}


def test_digest_tells_specs_apart_and_not_the_order_of_their_maps() -> None:
    """R10: the log's order of keys is not the API server's."""
    first, second = (
        PodSpec(node_selector=dict(one)) for one in ([("a", "1"), ("b", "2")], [("b", "2"), ("a", "1")])
    )
    assert spec_digest(first) == spec_digest(second)
    assert spec_digest(first) != spec_digest(PodSpec(node_selector={"a": "1"}))
    assert len(spec_digest(first)) == 16
