"""What an HTTP request to the API server says: body, selectors, options. Raises a Refused for nonsense."""

from __future__ import annotations

from typing import Any

import orjson
from aiohttp import web

from kube.errors import Refused
from kube.port import DeleteOptions, Json, PatchType, Propagation, Selection
from simulator.apiserver.refusals import bad_request

_JSON_TYPES = ("", "application/json", "application/octet-stream", "text/plain")
"""Sent by kubectl, by libraries and by hand; a real server, too, takes a body of no type for JSON."""
_MAX_WATCH_S = 24 * 3600


async def read_object(request: web.Request) -> Json:
    """The body, a JSON object; empty where there is none."""
    body = await _read(request)
    if not isinstance(body, dict):
        raise bad_request(request.path, "the body is no JSON object")
    return body


async def read_patch(request: web.Request) -> tuple[PatchType, Any]:
    """A patch and its type, by the content type."""
    try:
        kind = PatchType(request.content_type)
    except ValueError:
        kind = PatchType.APPLY
    if kind is PatchType.APPLY:
        text = f"the body of the request was in an unknown format: {request.content_type}"
        raise Refused(request.path, text, 415, "UnsupportedMediaType")
    return kind, await _read(request)


async def read_delete_options(request: web.Request) -> DeleteOptions:
    """The options of a deletion, from the body or the query."""
    body = await read_object(request)
    wanted = body.get("preconditions") or {}
    grace_s = body.get("gracePeriodSeconds", request.query.get("gracePeriodSeconds"))
    propagation = body.get("propagationPolicy") or request.query.get("propagationPolicy")
    try:
        return DeleteOptions(
            uid=str(wanted.get("uid") or ""),
            resource_version=str(wanted.get("resourceVersion") or ""),
            grace_s=None if grace_s is None else int(grace_s),
            propagation=Propagation(propagation) if propagation else None,
        )
    except (ValueError, TypeError, AttributeError) as error:
        raise bad_request(request.path, f"DeleteOptions cannot be read: {error}") from None


def selection_of(request: web.Request) -> Selection:
    """Which objects the request covers."""
    return Selection(
        request.match_info.get("namespace", ""),
        request.query.get("labelSelector", ""),
        request.query.get("fieldSelector", ""),
    )


def number_of(request: web.Request, name: str, default: int) -> int:
    """A number of the query, of a day's seconds at most; `default` where it is not there."""
    text = request.query.get(name, "")
    if not text:
        return default
    if not text.isascii() or not text.isdigit():
        raise bad_request(request.path, f'{name}: "{text:.40}" is no number')
    return min(int(text[:9]), _MAX_WATCH_S)


def is_set(request: web.Request, name: str) -> bool:
    """A flag of the query."""
    return request.query.get(name) in ("1", "true", "True")


def watch_version_of(request: web.Request) -> str:
    """Where a watch begins: empty for a streamed list that marks its end, 0 for one that does not."""
    version = request.query.get("resourceVersion", "")
    if "sendInitialEvents" not in request.query:
        return version or "0"
    if request.query.get("resourceVersionMatch") != "NotOlderThan":
        text = "resourceVersionMatch must be NotOlderThan where sendInitialEvents is set"
        raise Refused(request.path, f"resourceVersionMatch: Forbidden: {text}", 422, "Invalid")
    return "" if is_set(request, "sendInitialEvents") else version or "0"


async def _read(request: web.Request) -> Any:
    raw = await request.read()
    if not raw:
        return {}
    if request.method != "PATCH" and request.content_type not in _JSON_TYPES:
        text = f"the body of the request was in an unknown format: {request.content_type}"
        raise Refused(request.path, f"{text}; the simulator takes JSON", 415, "UnsupportedMediaType")
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise bad_request(request.path, f"the body is no JSON: {error}") from None
