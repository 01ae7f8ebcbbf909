"""Objects for the contract suite: the least that an API server takes, and what a test adds."""

from __future__ import annotations

from typing import Any

from kube.port import Json
from model.resources import Resource

GATE = "gpu.cozystack.io/placement"
H100 = "nvidia.com/GH100_H100_SXM5_80GB"


def an_object(resource: Resource, name: str, **fields: Any) -> Json:
    """Any kind: `metadata` entries go in as `metadata={...}`."""
    metadata = {"name": name} | fields.pop("metadata", {})
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata} | fields


def a_pod(
    name: str = "pod", *, gates: tuple[str, ...] = (), metadata: Json | None = None, **spec: Any
) -> Json:
    """A pod that no scheduler touches, unless the test names another one than `nobody`."""
    base: Json = {
        "schedulerName": "nobody",
        "containers": [{"name": "main", "image": "none"}],
    }
    if gates:
        base["schedulingGates"] = [{"name": gate} for gate in gates]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name} | (metadata or {}),
        "spec": base | spec,
    }


def required(*terms: Json) -> Json:
    """An affinity with these required terms."""
    return {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    }


def expression(key: str, operator: str = "Exists", *values: str) -> Json:
    """A node selector requirement."""
    return {"key": key, "operator": operator} | ({"values": list(values)} if values else {})


def named(node_name: str) -> Json:
    """The requirement on matchFields that names one node."""
    return expression("metadata.name", "In", node_name)


def owned_by(owner: Json, *, is_blocking: bool = False) -> Json:
    """metadata with a controller reference."""
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": is_blocking,
    }
    return {"ownerReferences": [reference]}
