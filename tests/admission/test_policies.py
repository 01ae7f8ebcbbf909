"""The gate as a policy: what holds of its text. That it decides as the function does, a real server shows."""

from __future__ import annotations

from typing import Any

from admission.policies import gate_policy
from model.names import GATE


def parts() -> tuple[dict[str, Any], dict[str, Any]]:
    policy, binding = gate_policy()
    return policy, binding


def test_policy_fails_closed_and_sees_nothing_but_new_launchers() -> None:
    """A pod that is no launcher never waits for a class, and never fails with the policy."""
    policy, _ = parts()
    assert policy["spec"]["failurePolicy"] == "Fail"
    constraints = policy["spec"]["matchConstraints"]
    assert constraints["objectSelector"] == {"matchLabels": {"kubevirt.io": "virt-launcher"}}
    (rule,) = constraints["resourceRules"]
    assert (rule["operations"], rule["resources"], rule["apiGroups"]) == (["CREATE"], ["pods"], [""])


def test_every_class_is_a_parameter_and_none_is_no_error() -> None:
    policy, binding = parts()
    assert policy["spec"]["paramKind"] == {"apiVersion": "gpu.cozystack.io/v1alpha1", "kind": "GPUClass"}
    assert binding["spec"]["paramRef"] == {"selector": {}, "parameterNotFoundAction": "Allow"}
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]


def test_gate_is_applied_not_patched_so_that_two_classes_add_it_once() -> None:
    (mutation,) = parts()[0]["spec"]["mutations"]
    assert mutation["patchType"] == "ApplyConfiguration"
    assert mutation["applyConfiguration"]["expression"].count(GATE) == 1
