"""The webhook configurations: what the API server asks `gpubinder admit` about.

The gate is closed while no replica answers (failurePolicy Fail), so it is asked about as little as can be:
new pods that carry KubeVirt's launcher label **and** ask for a device that not every VM has. The checks are
open (Ignore) and see new claims, changed classes and budgets, and new pods that ask for a device; pods of
kube-system are never looked at: no budget may keep a cluster's own parts from starting.

Each configuration carries the label by which `gpubinder uninstall` finds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from admission.gate import EVERY_VM_HAS
from model.names import LABEL_KUBEVIRT, LABEL_LAUNCHER, LABEL_OURS, OURS
from model.resources import GPU_BUDGETS, GPU_CLAIMS, GPU_CLASSES, PODS, Resource

Json = dict[str, Any]
GATE_CONFIGURATION = "gpu.cozystack.io-gate"
CHECKS_CONFIGURATION = "gpu.cozystack.io-checks"
GATE_PATH, CHECK_PATH = "/gate", "/check"
TIMEOUT_S = 1
"""What a tenant may wait for us; `gpubinder admit` answers within 0.8 s of it."""
INJECT = "cert-manager.io/inject-ca-from"
"""Of cert-manager: the Certificate whose authority it writes into the caBundle."""
PORT = 9443
_API = "admissionregistration.k8s.io/v1"
_POD_LABELS = {"app.kubernetes.io/name": "gpubinder", "app.kubernetes.io/component": "admit"}


@dataclass(frozen=True, slots=True)
class Address:
    """Where the API server finds the webhooks: a Service, or a URL (`https://HOST:PORT`)."""

    namespace: str = "gpubinder-system"
    service: str = "gpubinder-admission"
    url: str = ""
    inject_from: str = ""
    """NAMESPACE/NAME of cert-manager's Certificate; empty: `gpubinder admit` writes the caBundle itself."""

    @property
    def names(self) -> tuple[str, ...]:
        """The host names that the Service is called by; the first is the API server's."""
        short = f"{self.service}.{self.namespace}"
        return (f"{short}.svc", f"{short}.svc.cluster.local", short)


def gate_webhook(address: Address) -> Json:
    """The gate for servers without MutatingAdmissionPolicy; it means what the policy means (R6)."""
    webhook = _webhook(address, "gate", GATE_PATH, [_rule(PODS, "CREATE")]) | {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "IfNeeded",
        "objectSelector": {"matchLabels": {LABEL_KUBEVIRT: LABEL_LAUNCHER}},
        "matchConditions": [{"name": "asks-for-a-device", "expression": _ASKS}],
    }
    return _configuration("MutatingWebhookConfiguration", GATE_CONFIGURATION, address, [webhook])


def check_webhooks(address: Address) -> Json:
    """The checks of orders and raw pods, and what operators hear about classes and budgets."""
    written = {"name": "spec-is-new", "expression": _IS_NEW_SPEC}
    webhooks = [
        _check(address, "claims", _rule(GPU_CLAIMS, "CREATE")),
        _check(address, "pods", _rule(PODS, "CREATE"))
        | {
            "namespaceSelector": {"matchExpressions": [_NOT_KUBE_SYSTEM]},
            "matchConditions": [{"name": "asks-for-a-device", "expression": f"{_ASKS} || {_HAS_OVERHEAD}"}],
        },
        _check(address, "classes", _rule(GPU_CLASSES, "CREATE", "UPDATE")) | {"matchConditions": [written]},
        _check(address, "budgets", _rule(GPU_BUDGETS, "CREATE", "UPDATE", "DELETE"))
        | {"matchConditions": [written]},
    ]
    return _configuration("ValidatingWebhookConfiguration", CHECKS_CONFIGURATION, address, webhooks)


def service(address: Address) -> list[Json]:
    """The Service in front of the replicas; none where a URL is called."""
    if address.url:
        return []
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": address.service,
                "namespace": address.namespace,
                "labels": {LABEL_OURS: OURS},
            },
            "spec": {
                "selector": dict(_POD_LABELS),
                "ports": [{"name": "https", "port": 443, "targetPort": PORT, "protocol": "TCP"}],
            },
        }
    ]


_OTHERS = "[" + ", ".join(f"'{name}'" for name in sorted(EVERY_VM_HAS)) + "]"
_DEVICE = f"k.contains('/') && !(k in {_OTHERS})"
_ASKS = (
    "(object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers : []))"
    ".exists(c, has(c.resources) && "
    f"((has(c.resources.requests) && c.resources.requests.exists(k, {_DEVICE})) || "
    f"(has(c.resources.limits) && c.resources.limits.exists(k, {_DEVICE}))))"
)
_HAS_OVERHEAD = f"(has(object.spec.overhead) && object.spec.overhead.exists(k, {_DEVICE}))"
_IS_NEW_SPEC = "object == null || oldObject == null || object.spec != oldObject.spec"
_NOT_KUBE_SYSTEM = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}


def _check(address: Address, name: str, rule: Json) -> Json:
    return _webhook(address, name, CHECK_PATH, [rule]) | {"failurePolicy": "Ignore"}


def _webhook(address: Address, name: str, path: str, rules: list[Json]) -> Json:
    if address.url:
        called: Json = {"url": f"{address.url.rstrip('/')}{path}"}
    else:
        called = {"service": {"namespace": address.namespace, "name": address.service, "path": path}}
    return {
        "name": f"{name}.gpu.cozystack.io",
        "clientConfig": called,
        "rules": rules,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_S,
    }


def _rule(resource: Resource, *operations: str) -> Json:
    return {
        "apiGroups": [resource.group],
        "apiVersions": [resource.version],
        "resources": [resource.plural],
        "operations": list(operations),
        "scope": "Namespaced" if resource.is_namespaced else "Cluster",
    }


def _configuration(kind: str, name: str, address: Address, webhooks: list[Json]) -> Json:
    metadata: Json = {"name": name, "labels": {LABEL_OURS: OURS}}
    if address.inject_from:
        metadata["annotations"] = {INJECT: address.inject_from}
    return {"apiVersion": _API, "kind": kind, "metadata": metadata, "webhooks": webhooks}
