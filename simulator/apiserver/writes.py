"""What a write does besides what was asked: defaults, status kept apart, generations, deletion."""

from __future__ import annotations

from collections.abc import Iterator

from kube.port import Json
from model import resources as r
from model.instants import rfc3339
from model.resources import Resource
from simulator.apiserver import pod_rules
from simulator.apiserver.served import Served

_KEPT = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "namespace",
)
"""Metadata that no update changes."""


def prepare(served: Served, obj: Json, now: str) -> None:
    """Complete a new object: generation, defaults, and a status that is the server's own."""
    resource = served.resource
    if served.is_custom or resource == r.PODS:
        obj["metadata"]["generation"] = 1
    if served.is_custom and resource.has_status:
        obj.pop("status", None)
    if resource == r.PODS:
        pod_rules.prepare_pod(obj, now)
    elif resource == r.NAMESPACES:
        obj["status"] = {"phase": "Active"}
    elif resource in (r.PERSISTENT_VOLUME_CLAIMS, r.PERSISTENT_VOLUMES):
        obj["status"] = {"phase": "Pending"}
    elif resource == r.NODES:
        obj.setdefault("spec", {})
        obj.setdefault("status", {})


def creation_faults(resource: Resource, obj: Json) -> Iterator[str]:
    """What the built-in kinds find wrong with a new object."""
    if resource == r.PODS:
        yield from pod_rules.creation_faults(obj)


def merged(served: Served, old: Json, new: Json, subresource: str) -> Json:
    """What is stored: a status write changes only the status, another one all but it."""
    result = dict(new)
    if subresource == "status":
        result = {**old, "status": new.get("status", {})}
        result["metadata"] = dict(old["metadata"])
        if "status" not in new:
            result.pop("status")
    elif served.resource.has_status and (served.is_custom or served.resource == r.PODS):
        result.pop("status", None)
        if "status" in old:
            result["status"] = old["status"]
    if served.resource == r.PODS:
        pod_rules.drop_empty(result)
    meta = dict(result["metadata"])
    for name in _KEPT:
        meta.pop(name, None)
        if name in old["metadata"]:
            meta[name] = old["metadata"][name]
    meta["name"] = old["metadata"]["name"]
    meta["resourceVersion"] = old["metadata"]["resourceVersion"]
    meta.pop("managedFields", None)
    result["metadata"] = {key: value for key, value in meta.items() if value not in (None, [], {})}
    result |= {"apiVersion": old["apiVersion"], "kind": old["kind"]}
    return result


def raise_generation(served: Served, old: Json, new: Json) -> None:
    """The generation tells changes of what is asked for; without a status subresource, of everything."""
    if "generation" not in old["metadata"]:
        return
    ignored = {"metadata", "status"} if served.resource.has_status else {"metadata"}
    before, after = ({k: v for k, v in obj.items() if k not in ignored} for obj in (old, new))
    if before != after:
        new["metadata"] = {**new["metadata"], "generation": old["metadata"]["generation"] + 1}


def grace_of(resource: Resource, obj: Json, asked_s: int | None) -> int:
    """Seconds until the object goes: pods that run somewhere are given time, all else goes at once."""
    if resource != r.PODS:
        return 0
    ended = obj.get("status", {}).get("phase") in ("Succeeded", "Failed")
    if not obj["spec"].get("nodeName") or ended:
        return 0
    return int(obj["spec"].get("terminationGracePeriodSeconds", 30)) if asked_s is None else asked_s


def mark_deleted(obj: Json, grace_s: int, now_ms: int) -> None:
    """Set the deletion's time; a second deletion can only bring it forward."""
    meta = obj["metadata"]
    if meta.get("deletionTimestamp") and meta.get("deletionGracePeriodSeconds", 0) <= grace_s:
        return
    meta["deletionTimestamp"] = rfc3339(now_ms + grace_s * 1000)
    meta["deletionGracePeriodSeconds"] = grace_s
    if "generation" in meta:
        meta["generation"] += 1
