"""What a write does besides what was asked: defaults, status kept apart, generations."""

from __future__ import annotations

from collections.abc import Iterator

from kube.port import Json
from model import resources as r
from model.resources import Resource
from simulator.apiserver import pod_defaults, pod_rules
from simulator.apiserver.object_rules import quoted
from simulator.apiserver.served import Served

_SERVERS_OWN = ("uid", "creationTimestamp", "generation", "namespace", "name", "resourceVersion")
"""Metadata that no update changes, whatever was sent."""
_DELETION = ("deletionTimestamp", "deletionGracePeriodSeconds")
_NOT_FROM_WRITERS = (*_DELETION, "managedFields", "selfLink", "resourceVersion", "generation")
_PENDING = (r.PERSISTENT_VOLUME_CLAIMS, r.PERSISTENT_VOLUMES)


def fill_in(resource: Resource, obj: Json) -> None:
    """Set the defaults of a built-in kind; filling in a second time changes nothing."""
    if resource == r.PODS:
        pod_defaults.fill_in(obj)
    elif resource == r.NODES:
        obj.setdefault("spec", {})
        obj.setdefault("status", {})
    elif resource == r.NAMESPACES:
        obj["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = obj["metadata"]["name"]
        obj["spec"] = {"finalizers": ["kubernetes"]}
    elif resource == r.STORAGE_CLASSES:
        obj.setdefault("volumeBindingMode", "Immediate")
        obj.setdefault("reclaimPolicy", "Delete")


def begin(served: Served, obj: Json, uid: str, now: str) -> None:
    """Give a new object the metadata and status that are the server's own."""
    resource, sent = served.resource, obj["metadata"]
    meta = {key: value for key, value in sent.items() if key not in _NOT_FROM_WRITERS}
    obj["metadata"] = _tidy(meta) | {"uid": uid, "creationTimestamp": now}
    if served.is_custom or resource == r.PODS:
        obj["metadata"]["generation"] = 1
    if served.is_custom and resource.has_status:
        obj.pop("status", None)
    if resource == r.PODS:
        pod_defaults.begin(obj, now)
    elif resource == r.NAMESPACES:
        obj["status"] = {"phase": "Active"}
    elif resource in _PENDING:
        obj["status"] = {"phase": "Pending"}


def merged(served: Served, old: Json, new: Json, subresource: str) -> Json:
    """What is stored: a status write changes only the status, another one all but it.

    Built-in kinds take labels and finalizers through their status too, custom ones do not.
    """
    result = dict(new)
    if subresource == "status":
        result = {**old, "metadata": old["metadata"] if served.is_custom else new["metadata"]}
        result["status"] = new.get("status")
    elif served.resource.has_status:
        result["status"] = old.get("status")
    if result.get("status") is None:
        result.pop("status", None)
    if served.resource == r.PODS:
        pod_defaults.drop_empty(result)
        result["status"] = {**(result.get("status") or {}), "qosClass": old["status"]["qosClass"]}
    result["metadata"] = _kept_metadata(old["metadata"], result["metadata"])
    return result


def deletion_faults(old: Json, new: Json) -> Iterator[str]:
    """A writer can leave the deletion's fields out, and cannot change them."""
    for name in _DELETION:
        wanted = new["metadata"].get(name)
        if wanted is not None and wanted != old["metadata"].get(name):
            yield f"metadata.{name}: Invalid value: {quoted(wanted)}: field is immutable"


def pod_faults(old: Json | None, pod: Json, subresource: str) -> Iterator[str]:
    """What a write of a pod may not do."""
    if subresource:
        return
    yield from pod_rules.pod_faults(pod)
    yield from pod_rules.creation_faults(pod) if old is None else pod_rules.update_faults(old, pod)


def raise_generation(served: Served, old: Json, new: Json) -> None:
    """The generation tells changes of what is asked for; without a status subresource, of everything."""
    if "generation" not in old["metadata"]:
        return
    ignored = {"metadata", "status"} if served.resource.has_status else {"metadata"}
    before, after = ({k: v for k, v in obj.items() if k not in ignored} for obj in (old, new))
    if before != after:
        new["metadata"] = {**new["metadata"], "generation": old["metadata"]["generation"] + 1}


def _kept_metadata(old: Json, new: Json) -> Json:
    own = (*_SERVERS_OWN, *_DELETION)
    meta = {key: value for key, value in new.items() if key not in (*own, "managedFields", "selfLink")}
    meta |= {key: old[key] for key in own if key in old}
    return _tidy(meta)


def _tidy(meta: Json) -> Json:
    """Without what is empty, and without an owner named twice."""
    owners: list[Json] = []
    for owner in meta.get("ownerReferences") or []:
        if owner not in owners:
            owners.append(owner)
    tidy = meta | {"ownerReferences": owners}
    return {key: value for key, value in tidy.items() if value not in (None, [], {}, "")}
