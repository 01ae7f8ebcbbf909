"""The API server's refusals, worded as a real one words them."""

from __future__ import annotations

from collections.abc import Sequence

from kube.errors import AlreadyExists, BadRequest, Conflict, Invalid, NotFound, Refused, ServerFault
from kube.port import Json, ObjectKey
from model import resources as r
from model.resources import Resource

_NO_GROUP = (r.EVENTS,)
"""Kinds of a group whose refusals name none."""


def invalid(key: ObjectKey, faults: Sequence[str]) -> Invalid:
    """422: the object breaks these rules."""
    resource = key.resource
    kind = (
        resource.kind if not resource.group or resource in _NO_GROUP else f"{resource.kind}.{resource.group}"
    )
    text = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
    return Invalid(str(key), f'{kind} "{key.name}" is invalid: {text}', 422, "Invalid")


def undecodable(key: ObjectKey, why: object) -> BadRequest:
    """400: the body is none of the kind's objects."""
    kind = key.resource.kind
    text = f'{kind} in version "{key.resource.version}" cannot be handled as a {kind}: {why}'
    return BadRequest(str(key), text, 400, "BadRequest")


def unpatchable(key: ObjectKey, why: object) -> Invalid:
    """422: the patched object is none of the kind's objects."""
    return Invalid(str(key), f' "" is invalid: patch: Invalid value: {why}', 422, "Invalid")


def rejected_patch(key: ObjectKey, why: object) -> Invalid:
    """422: a JSON patch that does not apply (a real server does not say why)."""
    text = f"the server rejected our request due to an error in our request: {why}"
    return Invalid(str(key), text, 422, "Invalid")


def bad_request(target: object, text: str) -> BadRequest:
    """400."""
    return BadRequest(str(target), text, 400, "BadRequest")


def server_fault(target: object, text: str) -> ServerFault:
    """500: what a real server has no better answer to."""
    return ServerFault(str(target), text, 500, "")


def not_found(key: ObjectKey) -> NotFound:
    """404: no such object."""
    return NotFound(str(key), f'{key.resource.full_name} "{key.name}" not found', 404, "NotFound")


def not_served(target: object) -> NotFound:
    """404: no such kind or subresource."""
    return NotFound(str(target), "the server could not find the requested resource", 404, "NotFound")


def not_allowed(target: object) -> Refused:
    """405: not with this method."""
    text = "the server does not allow this method on the requested resource"
    return Refused(str(target), text, 405, "MethodNotAllowed")


def already_exists(key: ObjectKey) -> AlreadyExists:
    """409 on create."""
    text = f'{key.resource.full_name} "{key.name}" already exists'
    return AlreadyExists(str(key), text, 409, "AlreadyExists")


def modified(key: ObjectKey) -> Conflict:
    """409: the write rests on an older version."""
    text = "the object has been modified; please apply your changes to the latest version and try again"
    return _unfulfilled(key, key.resource.full_name, text)


def another_uid(key: ObjectKey, wanted: str, found: str) -> Conflict:
    """409: the write is meant for another object of the name."""
    text = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    return _unfulfilled(key, key.resource.full_name, text)


def unmet(key: ObjectKey, name: str, wanted: str, found: str) -> Conflict:
    """409: a deletion's precondition does not hold."""
    why = "deleted and then recreated" if name == "UID" else "modified"
    text = f"the {name} in the precondition ({wanted}) does not match the {name} in record ({found})"
    return _unfulfilled(key, key.resource.kind, f"{text}. The object might have been {why}")


def unbindable(key: ObjectKey, why: str) -> Conflict:
    """409: the pod cannot be bound."""
    return _unfulfilled(key, "pods/binding", f"pod {key.name} {why}")


def rejected_version(target: object, version: object) -> ServerFault:
    """500: a resourceVersion that is no number."""
    return server_fault(target, f'resourceVersion: Invalid value: "{version}": parsing: invalid syntax')


def collection(resource: Resource, namespace: str = "") -> str:
    """What a list or watch is about."""
    return f"{resource.full_name}{' in ' + namespace if namespace else ''}"


def of_object(resource: Resource, obj: Json) -> ObjectKey:
    """The key of an object."""
    return ObjectKey(resource, obj["metadata"].get("name", ""), obj["metadata"].get("namespace", ""))


def _unfulfilled(key: ObjectKey, what: str, why: str) -> Conflict:
    text = f'Operation cannot be fulfilled on {what} "{key.name}": {why}'
    return Conflict(str(key), text, 409, "Conflict")
