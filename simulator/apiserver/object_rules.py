"""What the API server finds wrong with any object: its labels, finalizers, taints, and an event's fields.

Rules read in k8s.io/apimachinery pkg/api/validation and pkg/apis/{core,events}/validation; all checked
against a real server by the contract suite.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kube.port import Json
from model import resources as r
from model.resources import Resource

_NAME = r"([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]"
_LABEL_VALUE = re.compile(rf"({_NAME})?")
_QUALIFIED = re.compile(rf"([a-z0-9]([-a-z0-9.]{{0,251}}[a-z0-9])?/)?{_NAME}")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_EVENT_FIELDS = ("eventTime", "type", "reason", "action", "reportingController", "reportingInstance")
_NOTE_BYTES = 1024


def faults_of(resource: Resource, obj: Json) -> Iterator[str]:
    """What is wrong with an object, one line each."""
    yield from _metadata_faults(obj["metadata"])
    if resource == r.NODES:
        for taint in (obj.get("spec") or {}).get("taints") or []:
            if taint.get("effect") not in _EFFECTS:
                yield f"spec.taints.effect: Unsupported value: {taint.get('effect')!r}"
    if resource == r.EVENTS:
        yield from (f"{name}: Required value" for name in _EVENT_FIELDS if not obj.get(name))
        if len(str(obj.get("note") or "").encode()) > _NOTE_BYTES:
            yield f"note: Too long: may not be more than {_NOTE_BYTES} bytes"


def change_faults(old: Json, new: Json) -> Iterator[str]:
    """What no change of an object may do: give one that is being deleted another finalizer."""
    had = old["metadata"].get("finalizers") or []
    added = [name for name in new["metadata"].get("finalizers") or [] if name not in had]
    if old["metadata"].get("deletionTimestamp") and added:
        text = "no new finalizers can be added if the object is being deleted"
        yield f"metadata.finalizers: Forbidden: {text}, found new finalizers {added}"


def _metadata_faults(meta: Json) -> Iterator[str]:
    labels: Any = meta.get("labels") or {}
    for key, value in labels.items():
        if not _QUALIFIED.fullmatch(key):
            yield f"metadata.labels: Invalid value: {key!r}: must consist of alphanumeric characters"
        if not isinstance(value, str) or not _LABEL_VALUE.fullmatch(value):
            yield f"metadata.labels: Invalid value: {value!r}: a label is an empty string or a name"
    for key, value in (meta.get("annotations") or {}).items():
        if not isinstance(value, str) or not _QUALIFIED.fullmatch(key.lower()):
            yield f"metadata.annotations: Invalid value: {key!r}"
    for name in meta.get("finalizers") or []:
        if not isinstance(name, str) or not _QUALIFIED.fullmatch(name):
            yield f"metadata.finalizers: Invalid value: {name!r}: name part must consist of alphanumerics"
