"""The gate as a policy of the API server: no server of ours stands between a tenant and a pod (R6).

Needs MutatingAdmissionPolicy in `admissionregistration.k8s.io/v1` (Kubernetes 1.36 and newer). A GPUClass is
a parameter; two classes of one resource add the gate once: gates are a map by name. It fails closed for
launchers only: nothing else matches.

The CRDs come first and go last. While the API server does not know the kind GPUClass, it refuses every
launcher, also those without GPUs, and after the CRD appears it may do so for some 25 s more (measured on
1.37.2, policy applied before the CRD; none refused when the CRD is applied before the policy).
"""

from __future__ import annotations

from typing import Any

from model.names import GATE, LABEL_KUBEVIRT, LABEL_LAUNCHER, LABEL_OURS, OURS
from model.resources import GPU_CLASSES

Json = dict[str, Any]
NAME = "gpu.cozystack.io-placement"
_API = "admissionregistration.k8s.io/v1"

_ASKS = (
    "(object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers : []))"
    ".exists(c, has(c.resources) && "
    "((has(c.resources.requests) && params.spec.resourceName in c.resources.requests"
    " && quantity(string(c.resources.requests[params.spec.resourceName])).compareTo(quantity('1')) >= 0) || "
    "(has(c.resources.limits) && params.spec.resourceName in c.resources.limits"
    " && quantity(string(c.resources.limits[params.spec.resourceName])).compareTo(quantity('1')) >= 0)))"
)


def gate_policy() -> list[Json]:
    """The policy and its binding, ready to be applied."""
    policy = {
        "apiVersion": _API,
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": NAME, "labels": {LABEL_OURS: OURS}},
        "spec": {
            "paramKind": {"apiVersion": GPU_CLASSES.api_version, "kind": GPU_CLASSES.kind},
            "failurePolicy": "Fail",
            "reinvocationPolicy": "IfNeeded",
            "matchConstraints": {
                "objectSelector": {"matchLabels": {LABEL_KUBEVIRT: LABEL_LAUNCHER}},
                "resourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["pods"],
                    }
                ],
            },
            "matchConditions": [{"name": "asks-for-a-unit-of-the-class", "expression": _ASKS}],
            "mutations": [
                {
                    "patchType": "ApplyConfiguration",
                    "applyConfiguration": {
                        "expression": "Object{spec: Object.spec{schedulingGates: "
                        f"[Object.spec.schedulingGates{{name: '{GATE}'}}]}}}}"
                    },
                }
            ],
        },
    }
    binding = {
        "apiVersion": _API,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": NAME, "labels": {LABEL_OURS: OURS}},
        "spec": {
            "policyName": NAME,
            "paramRef": {"selector": {}, "parameterNotFoundAction": "Allow"},
        },
    }
    return [policy, binding]
