"""Which fields the API server decodes of which kind: the data to `simulator.apiserver.shapes`."""

from __future__ import annotations

import orjson

from kube.port import Json
from model import resources as r
from model.resources import Resource
from simulator.apiserver.shapes import Leaf, ListOf, MapOf, Misfit, Shape, Struct, decoded
from simulator.apiserver.store import copied


def _texts(*names: str) -> dict[str, Shape]:
    return dict.fromkeys(names, Leaf.TEXT)


_AMOUNTS = MapOf(Leaf.QUANTITY)
_RESOURCES = Struct({"limits": _AMOUNTS, "requests": _AMOUNTS})
_OWNER = Struct(
    {
        **_texts("apiVersion", "kind", "name", "uid"),
        "controller": Leaf.FLAG,
        "blockOwnerDeletion": Leaf.FLAG,
    },
    is_closed=True,
)
_METADATA = Struct(
    {
        **_texts("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"),
        "generation": Leaf.WHOLE,
        "deletionGracePeriodSeconds": Leaf.WHOLE,
        "creationTimestamp": Leaf.TIME,
        "deletionTimestamp": Leaf.TIME,
        "labels": MapOf(Leaf.TEXT),
        "annotations": MapOf(Leaf.TEXT),
        "finalizers": ListOf(Leaf.TEXT),
        "ownerReferences": ListOf(_OWNER),
        "managedFields": Leaf.ANY,
    },
    is_closed=True,
)
_CONDITIONS = ListOf(
    Struct(
        {
            **_texts("type", "status", "reason", "message"),
            "lastTransitionTime": Leaf.TIME,
            "lastProbeTime": Leaf.TIME,
            "lastHeartbeatTime": Leaf.TIME,
        }
    )
)
_REQUIREMENTS = ListOf(Struct({**_texts("key", "operator"), "values": ListOf(Leaf.TEXT)}))
_TERM = Struct({"matchExpressions": _REQUIREMENTS, "matchFields": _REQUIREMENTS})
_NODE_SELECTOR = Struct({"nodeSelectorTerms": ListOf(_TERM)})
_AFFINITY = Struct(
    {
        "nodeAffinity": Struct(
            {
                "requiredDuringSchedulingIgnoredDuringExecution": _NODE_SELECTOR,
                "preferredDuringSchedulingIgnoredDuringExecution": ListOf(
                    Struct({"weight": Leaf.WHOLE, "preference": _TERM})
                ),
            }
        ),
        "podAffinity": Struct({}),
        "podAntiAffinity": Struct({}),
    }
)
_CONTAINERS = ListOf(
    Struct(
        {
            **_texts("name", "image", "restartPolicy", "imagePullPolicy"),
            "command": ListOf(Leaf.TEXT),
            "args": ListOf(Leaf.TEXT),
            "resources": _RESOURCES,
        }
    )
)
_TOLERATIONS = ListOf(
    Struct({**_texts("key", "operator", "value", "effect"), "tolerationSeconds": Leaf.WHOLE})
)
_POD_SPEC = Struct(
    {
        **_texts("nodeName", "schedulerName", "restartPolicy", "dnsPolicy", "serviceAccountName"),
        **_texts("priorityClassName", "preemptionPolicy", "hostname", "runtimeClassName"),
        "containers": _CONTAINERS,
        "initContainers": _CONTAINERS,
        "volumes": ListOf(Struct(_texts("name"))),
        "nodeSelector": MapOf(Leaf.TEXT),
        "affinity": _AFFINITY,
        "tolerations": _TOLERATIONS,
        "schedulingGates": ListOf(Struct(_texts("name"))),
        "terminationGracePeriodSeconds": Leaf.WHOLE,
        "activeDeadlineSeconds": Leaf.WHOLE,
        "priority": Leaf.WHOLE,
        "resources": _RESOURCES,
        "overhead": _AMOUNTS,
        "hostNetwork": Leaf.FLAG,
        "enableServiceLinks": Leaf.FLAG,
        "securityContext": Struct({}),
    }
)
_POD_STATUS = Struct(
    {
        **_texts("phase", "reason", "message", "nominatedNodeName", "qosClass", "podIP"),
        "conditions": _CONDITIONS,
        "containerStatuses": ListOf(Struct(_texts("name"))),
        "startTime": Leaf.TIME,
    }
)
_TAINTS = ListOf(Struct({**_texts("key", "value", "effect"), "timeAdded": Leaf.TIME}))
_NODE: dict[str, Shape] = {
    "spec": Struct({"taints": _TAINTS, "unschedulable": Leaf.FLAG, **_texts("providerID", "podCIDR")}),
    "status": Struct({"allocatable": _AMOUNTS, "capacity": _AMOUNTS, "conditions": _CONDITIONS}),
}
_CLAIM: dict[str, Shape] = {
    "spec": Struct(
        {
            **_texts("volumeName", "storageClassName", "volumeMode"),
            "accessModes": ListOf(Leaf.TEXT),
            "resources": _RESOURCES,
        }
    ),
    "status": Struct({"capacity": _AMOUNTS, **_texts("phase")}),
}
_VOLUME: dict[str, Shape] = {
    "spec": Struct(
        {
            **_texts("storageClassName", "persistentVolumeReclaimPolicy"),
            "capacity": _AMOUNTS,
            "nodeAffinity": Struct({"required": _NODE_SELECTOR}),
            "accessModes": ListOf(Leaf.TEXT),
            "claimRef": Struct(_texts("name", "namespace", "uid")),
        }
    ),
    "status": Struct(_texts("phase")),
}
_LEASE_SPEC = Struct(
    {
        **_texts("holderIdentity"),
        "leaseDurationSeconds": Leaf.WHOLE,
        "leaseTransitions": Leaf.WHOLE,
        "acquireTime": Leaf.MICRO_TIME,
        "renewTime": Leaf.MICRO_TIME,
    }
)
_EVENT = {
    **_texts("type", "reason", "action", "reportingController", "reportingInstance", "note"),
    "eventTime": Leaf.MICRO_TIME,
    "regarding": Struct(_texts("kind", "apiVersion", "namespace", "name", "uid")),
    "series": Struct({"count": Leaf.WHOLE, "lastObservedTime": Leaf.MICRO_TIME}),
}
_CRD_VERSION = Struct(
    {
        **_texts("name"),
        "served": Leaf.FLAG,
        "storage": Leaf.FLAG,
        "schema": Struct({"openAPIV3Schema": Struct({})}),
        "subresources": Struct({"status": Struct({})}),
    }
)
_CRD_SPEC = Struct(
    {
        **_texts("group", "scope"),
        "names": Struct(
            {
                **_texts("plural", "singular", "kind", "listKind"),
                "shortNames": ListOf(Leaf.TEXT),
                "categories": ListOf(Leaf.TEXT),
            }
        ),
        "versions": ListOf(_CRD_VERSION),
    }
)
_SHAPES: dict[Resource, dict[str, Shape]] = {
    r.PODS: {"spec": _POD_SPEC, "status": _POD_STATUS},
    r.NODES: _NODE,
    r.PERSISTENT_VOLUME_CLAIMS: _CLAIM,
    r.PERSISTENT_VOLUMES: _VOLUME,
    r.NAMESPACES: {"spec": Struct({}), "status": Struct(_texts("phase"))},
    r.SERVICES: {"spec": Struct({"selector": MapOf(Leaf.TEXT), "ports": ListOf(Struct({}))})},
    r.STORAGE_CLASSES: _texts("provisioner", "volumeBindingMode", "reclaimPolicy"),
    r.LEASES: {"spec": _LEASE_SPEC},
    r.EVENTS: _EVENT,
    r.CUSTOM_RESOURCE_DEFINITIONS: {"spec": _CRD_SPEC, "status": Struct({"conditions": _CONDITIONS})},
}


def decoded_object(resource: Resource, obj: Json) -> Json:
    """A copy of the object as the server holds it after decoding. Raises Misfit for what cannot be one."""
    try:
        plain = copied(obj)
    except orjson.JSONEncodeError as error:
        raise Misfit(f"the body is no JSON: {error}") from None
    shape = Struct({"metadata": _METADATA, **_SHAPES.get(resource, {})})
    result: Json = decoded(shape, plain, resource.kind)
    for name, wanted in (("apiVersion", resource.api_version), ("kind", resource.kind)):
        found = result.setdefault(name, wanted)
        if found != wanted:
            text = f"the {name} in the data ({found}) does not match the expected one ({wanted})"
            raise Misfit(text)
    return result
