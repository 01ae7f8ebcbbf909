"""What the API server finds wrong with any object: metadata, and the fields of nodes, events and leases.

Rules read in k8s.io/apimachinery pkg/api/validation and pkg/apis/{core,events,coordination}/validation; all
checked against a real server.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from kube.port import Json
from model import resources as r
from model.quantity import parse_quantity
from model.resource_names import is_extended
from model.resources import Resource
from simulator.apiserver.names import crd_name_fault, label_value_fault, name_fault, qualified_fault

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_EVENT_FIELDS = ("eventTime", "type", "reason", "action", "reportingController", "reportingInstance")
_EVENT_TYPES = ("Normal", "Warning")
_NOTE_BYTES = 1024
_ANNOTATION_BYTES = 256 * 1024
_CLUSTERS_EVENTS_IN = ("default", "kube-system")
_LEAST_IN_SERIES = 2
_FIXED_IN_EVENTS = (*_EVENT_FIELDS, "note", "regarding", "related")


def faults_of(resource: Resource, obj: Json) -> Iterator[str]:
    """What is wrong with an object, one line each."""
    yield from _name_faults(resource, obj)
    yield from _metadata_faults(obj["metadata"])
    if resource == r.NODES:
        yield from _node_faults(obj)
    elif resource == r.EVENTS:
        yield from _event_faults(obj)
    elif resource == r.LEASES:
        yield from _lease_faults(obj.get("spec") or {})


def change_faults(resource: Resource, old: Json, new: Json) -> Iterator[str]:
    """What no change may do: give an object that is being deleted a finalizer, or rewrite an event."""
    had = old["metadata"].get("finalizers") or []
    added = [name for name in new["metadata"].get("finalizers") or [] if name not in had]
    if old["metadata"].get("deletionTimestamp") and added:
        text = "no new finalizers can be added if the object is being deleted, found new finalizers"
        yield f"metadata.finalizers: Forbidden: {text} []string{{{', '.join(map(quoted, added))}}}"
    if resource == r.EVENTS:
        for name in _FIXED_IN_EVENTS:
            if old.get(name) != new.get(name):
                yield f"{name}: Invalid value: {quoted(new.get(name))}: field is immutable"


def quoted(value: Any) -> str:
    """The value as the server's messages show it."""
    return orjson.dumps(value).decode()


def _name_faults(resource: Resource, obj: Json) -> Iterator[str]:
    name = obj["metadata"]["name"]
    is_crd = resource == r.CUSTOM_RESOURCE_DEFINITIONS
    fault = crd_name_fault(obj) if is_crd else name_fault(resource, name)
    if fault:
        yield f"metadata.name: Invalid value: {quoted(name)}: {fault}"


def _metadata_faults(meta: Json) -> Iterator[str]:
    for key, value in (meta.get("labels") or {}).items():
        if fault := qualified_fault(key):
            yield f"metadata.labels: Invalid value: {quoted(key)}: {fault}"
        if fault := label_value_fault(value):
            yield f"metadata.labels: Invalid value: {quoted(value)}: {fault}"
    for key in meta.get("annotations") or {}:
        if fault := qualified_fault(key.lower()):
            yield f"metadata.annotations: Invalid value: {quoted(key)}: {fault}"
    size = sum(
        len(key.encode()) + len(value.encode()) for key, value in (meta.get("annotations") or {}).items()
    )
    if size > _ANNOTATION_BYTES:
        yield f"metadata.annotations: Too long: may not be more than {_ANNOTATION_BYTES} bytes"
    finalizers = meta.get("finalizers") or []
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        text = "finalizer orphan and foregroundDeletion cannot be both set"
        yield f"metadata.finalizers: Invalid value: {quoted(finalizers)}: {text}"
    for name in finalizers:
        if fault := qualified_fault(name):
            yield f"metadata.finalizers: Invalid value: {quoted(name)}: {fault}"
    yield from _owner_faults(meta.get("ownerReferences") or [])


def _owner_faults(owners: list[Json]) -> Iterator[str]:
    for index, owner in enumerate(owners):
        for name in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(name):
                yield f"metadata.ownerReferences[{index}].{name}: Required value: must not be empty"
        if str(owner.get("apiVersion")).count("/") > 1:
            text = "must be <group>/<version> or <version>"
            where = f"metadata.ownerReferences[{index}].apiVersion"
            yield f"{where}: Invalid value: {quoted(owner['apiVersion'])}: {text}"
    if sum(owner.get("controller") is True for owner in owners) > 1:
        text = "Only one reference can have Controller set to true"
        yield f"metadata.ownerReferences: Invalid value: {quoted(owners)}: {text}"


def _node_faults(node: Json) -> Iterator[str]:
    seen: set[tuple[Any, Any]] = set()
    for index, taint in enumerate((node.get("spec") or {}).get("taints") or []):
        where = f"metadata.taints[{index}]"  # sic
        key, effect = taint.get("key", ""), taint.get("effect", "")
        if fault := qualified_fault(key):
            yield f"{where}.key: Invalid value: {quoted(key)}: {fault}"
        if fault := label_value_fault(taint.get("value", "")):
            yield f"{where}.value: Invalid value: {quoted(taint['value'])}: {fault}"
        if effect not in _EFFECTS:
            yield f"{where}.effect: " + (
                f"Unsupported value: {quoted(effect)}" if effect else "Required value"
            )
        if (key, effect) in seen:
            yield f"{where}: Duplicate value: {quoted(taint)}: taints must be unique by key and effect pair"
        seen.add((key, effect))
    for part in ("capacity", "allocatable"):
        for name, value in ((node.get("status") or {}).get(part) or {}).items():
            amount, where = parse_quantity(value), f"status.{part}.{name}"
            if amount < 0:
                yield f"{where}: Invalid value: {quoted(value)}: must be greater than or equal to 0"
            if is_extended(name) and amount.denominator != 1:
                yield f"{where}: Invalid value: {quoted(value)}: must be an integer"


def _event_faults(event: Json) -> Iterator[str]:
    yield from (f"{name}: Required value" for name in _EVENT_FIELDS if not event.get(name))
    if event.get("type") not in (None, "", *_EVENT_TYPES):
        yield f'type: Invalid value: "": has invalid value: {event["type"]}'
    if len((event.get("note") or "").encode()) > _NOTE_BYTES:
        yield f"note: Too long: may not be more than {_NOTE_BYTES} bytes"
    if fault := qualified_fault(event.get("reportingController") or "x"):
        yield f"reportingController: Invalid value: {quoted(event['reportingController'])}: {fault}"
    is_of_cluster = not (event.get("regarding") or {}).get("namespace")
    if is_of_cluster and event["metadata"].get("namespace") not in _CLUSTERS_EVENTS_IN:
        yield 'involvedObject.namespace: Invalid value: "": does not match event.namespace'
    series = event.get("series")
    if series is not None and series.get("count", 0) < _LEAST_IN_SERIES:
        yield f'series.count: Invalid value: "": should be at least {_LEAST_IN_SERIES}'


def _lease_faults(spec: Json) -> Iterator[str]:
    duration, transitions = spec.get("leaseDurationSeconds", 1), spec.get("leaseTransitions", 0)
    if duration <= 0:
        yield f"spec.leaseDurationSeconds: Invalid value: {duration}: must be greater than 0"
    if transitions < 0:
        yield f"spec.leaseTransitions: Invalid value: {transitions}: must be greater than or equal to 0"
