"""When an object that is deleted goes: grace, finalizers, marks. Stores nothing itself."""

from __future__ import annotations

from kube.port import DeleteOptions, Json, ObjectKey, Propagation
from model import resources as r
from model.instants import parse_rfc3339, rfc3339
from model.resources import Resource
from simulator.apiserver import refusals

_DEFAULT_GRACE_S = 30
_PROPAGATION_FINALIZERS = {Propagation.FOREGROUND: "foregroundDeletion", Propagation.ORPHAN: "orphan"}
_ENDED = ("Succeeded", "Failed")


def check_preconditions(key: ObjectKey, meta: Json, options: DeleteOptions) -> None:
    """Raises Conflict where the object is not the one that is meant."""
    for name, wanted, found in (
        ("UID", options.uid, meta["uid"]),
        ("ResourceVersion", options.resource_version, meta["resourceVersion"]),
    ):
        if wanted and wanted != found:
            raise refusals.unmet(key, name, wanted, found)


def grace_of(resource: Resource, obj: Json, asked_s: int | None) -> int:
    """Seconds until the object goes: pods that run somewhere are given time, all else goes at once."""
    if resource != r.PODS:
        return 0
    if not obj["spec"].get("nodeName") or obj.get("status", {}).get("phase") in _ENDED:
        return 0
    own_s = int(obj["spec"].get("terminationGracePeriodSeconds", _DEFAULT_GRACE_S))
    grace_s = own_s if asked_s is None else asked_s
    return 1 if grace_s < 0 else grace_s  # as the server reads a negative one


def add_propagation(meta: Json, propagation: Propagation | None) -> None:
    """Let the object wait for its dependents as is asked for now, whatever was asked for before."""
    if propagation is None:
        return
    finalizers = meta.get("finalizers") or []
    waits_for = _PROPAGATION_FINALIZERS.get(propagation)
    kept = [one for one in finalizers if one == waits_for or one not in _PROPAGATION_FINALIZERS.values()]
    if waits_for and waits_for not in kept:
        kept.append(waits_for)
    meta["finalizers"] = kept
    if not kept:
        del meta["finalizers"]


def mark(obj: Json, grace_s: int, now_ms: int) -> None:
    """Set the deletion's time; a second deletion can only bring it forward, from the first one's moment."""
    meta = obj["metadata"]
    begun_ms = now_ms
    if meta.get("deletionTimestamp"):
        old_s = meta.get("deletionGracePeriodSeconds", 0)
        if old_s <= grace_s:
            return
        begun_ms = (parse_rfc3339(meta["deletionTimestamp"]) or now_ms) - old_s * 1000
    elif "generation" in meta:
        meta["generation"] += 1
    meta["deletionTimestamp"] = rfc3339(begun_ms + grace_s * 1000)
    meta["deletionGracePeriodSeconds"] = grace_s


def may_go(resource: Resource, obj: Json) -> bool:
    """Whether nothing holds a marked object any more; the namespace controller ends namespaces."""
    meta = obj["metadata"]
    waits = resource == r.PODS and meta.get("deletionGracePeriodSeconds", 0) > 0
    is_marked = bool(meta.get("deletionTimestamp"))
    return is_marked and not meta.get("finalizers") and not waits and resource != r.NAMESPACES
