"""The client port over HTTP: what the port's methods mean as requests, and the answers as plain JSON.

Connect with `connect`, and close the client (or use it as an async context manager). Must not know: how a
connection or its credentials are made.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Any, Self

import orjson

from kube.adapters import credentials
from kube.adapters.stream import MAX_LINE, LineCutter, decode_event
from kube.adapters.transport import Request, Transport
from kube.errors import ApiError, BadRequest, NotFound, Unreachable
from kube.port import (
    ALL,
    MERGE,
    PLAIN_DELETE,
    DeleteOptions,
    Json,
    ObjectKey,
    Page,
    PatchOptions,
    PatchType,
    Selection,
    WatchEvent,
)
from model.resources import Resource

# The API server sends a bookmark each minute while a kind's version moves. A longer silence is an idle kind
# or a dead connection; opening the watch again tells which, and costs one request.
SILENCE_S = 90.0
_ASK = "is this a Kubernetes API server?"


class HttpClient:
    """A `kube.port.Client` that talks to a real API server."""

    def __init__(self, transport: Transport, *, silence_s: float = SILENCE_S) -> None:
        self._transport = transport
        self._silence_s = silence_s

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def url(self) -> str:
        """The API server's address."""
        return self._transport.server

    async def close(self) -> None:
        """Closes every connection."""
        await self._transport.close()

    async def get(self, key: ObjectKey) -> Json:
        """One object; raises NotFound."""
        return await self._object(Request("GET", _path(key), str(key)))

    async def list_page(
        self, resource: Resource, selection: Selection = ALL, *, limit: int = 500, continue_token: str = ""
    ) -> Page:
        """One page of at most `limit` objects; raises Gone for an old token."""
        query = _selectors(selection) | {"limit": str(limit)}
        if continue_token:
            query["continue"] = continue_token
        target = _collection(resource, selection)
        answer = await self._object(Request("GET", resource.path(selection.namespace), target, query))
        items, metadata = answer.get("items") or [], answer.get("metadata") or {}
        is_list = isinstance(items, list) and all(isinstance(item, dict) for item in items)
        if not is_list or not isinstance(metadata, dict):
            raise ApiError(target, f"the answer is no list; {_ASK}")
        for item in items:  # lists of built-in kinds leave both out
            item.setdefault("apiVersion", resource.api_version)
            item.setdefault("kind", resource.kind)
        version, token = (str(metadata.get(field) or "") for field in ("resourceVersion", "continue"))
        return Page(items, version, token)

    async def watch(
        self, resource: Resource, selection: Selection = ALL, *, resource_version: str, timeout_s: int = 300
    ) -> AsyncGenerator[WatchEvent, None]:
        """Changes after `resource_version` until the server ends the stream, `timeout_s` or so later.

        Raises Gone when the version is too old, Unreachable when the stream breaks or falls silent.
        """
        query = _selectors(selection) | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(timeout_s),
        }
        if resource_version:
            query["resourceVersion"] = resource_version
        else:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        target = f"watch of {_collection(resource, selection)}"
        request = Request("GET", resource.path(selection.namespace), target, query)
        cutter = LineCutter()
        async with aclosing(self._transport.stream(request, self._silence_s)) as chunks:
            async for chunk in chunks:
                for line in cutter.feed(chunk):
                    yield decode_event(line, target)
                if cutter.is_too_long:
                    raise ApiError(target, f"the watch sends an event of more than {MAX_LINE} bytes; {_ASK}")
        if not cutter.is_empty:
            raise Unreachable(target, "the stream ended within an event")

    async def create(self, resource: Resource, body: Json) -> Json:
        """The created object; raises AlreadyExists, Invalid."""
        metadata = body.get("metadata") or {}
        namespace = metadata.get("namespace", "")
        key = ObjectKey(resource, metadata.get("name") or metadata.get("generateName", ""), namespace)
        # Built-in kinds may leave them out, custom ones may not.
        named = {"apiVersion": resource.api_version, "kind": resource.kind} | body
        return await self._object(
            Request("POST", resource.path(namespace), str(key), body=orjson.dumps(named))
        )

    async def replace(self, key: ObjectKey, body: Json, subresource: str = "") -> Json:
        """PUT; `body.metadata.resourceVersion`, if set, is a precondition (Conflict)."""
        return await self._object(Request("PUT", _path(key, subresource), str(key), body=orjson.dumps(body)))

    async def patch(
        self,
        key: ObjectKey,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        options: PatchOptions = MERGE,
    ) -> Json:
        """The patched object; raises Conflict, Invalid, NotFound."""
        query = {}
        if options.type is PatchType.APPLY:
            query = {
                "fieldManager": options.field_manager or "gpubinder",
                "force": str(options.force).lower(),
            }
        path, body = _path(key, options.subresource), orjson.dumps(patch)
        return await self._object(Request("PATCH", path, str(key), query, body, options.type.value))

    async def delete(self, key: ObjectKey, options: DeleteOptions = PLAIN_DELETE) -> None:
        """Asks for the deletion; raises NotFound, Conflict for a failed precondition."""
        body = orjson.dumps(_delete_body(options))
        await self._transport.send(Request("DELETE", _path(key), str(key), body=body))

    async def bind(self, key: ObjectKey, node_name: str) -> None:
        """Binds a pod to a node, as the scheduler does; raises Conflict for a bound or gated pod."""
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": key.name, "namespace": key.namespace},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node_name},
        }
        await self._transport.send(Request("POST", _path(key, "binding"), str(key), body=orjson.dumps(body)))

    async def served(self, group: str, version: str) -> frozenset[str]:
        """The plurals that the API server serves in a group and version; none for an unknown one (R32)."""
        path = Resource(group, version, "", "").path().rstrip("/")
        try:
            answer = await self._object(Request("GET", path, f"the kinds of {group or 'core'}/{version}"))
        except NotFound:
            return frozenset()
        return frozenset(
            str(each["name"]) for each in answer.get("resources") or [] if "/" not in each["name"]
        )

    async def version(self) -> str:
        """The API server's version, e.g. `v1.37.2`."""
        answer = await self._object(Request("GET", "/version", "the API server's version"))
        return str(answer.get("gitVersion"))

    async def _object(self, request: Request) -> Json:
        answer = await self._transport.send(request)
        if not isinstance(answer, dict):
            raise ApiError(request.target, f"the answer is no JSON object; {_ASK}")
        return answer


async def connect(
    kubeconfig: str | None = None, context: str | None = None, *, silence_s: float = SILENCE_S
) -> HttpClient:
    """A client for the cluster that a kubeconfig (default: $KUBECONFIG, ~/.kube/config, the pod's own) names.

    Makes no request. A watch that sends no byte for `silence_s` seconds ends. Raises Misconfigured.
    """
    return HttpClient(Transport(await credentials.load(kubeconfig, context)), silence_s=silence_s)


def _path(key: ObjectKey, subresource: str = "") -> str:
    # Names come from annotations too: `../pods/x` must not become another URL, nor `` the collection.
    for part in (key.name, key.namespace or "-"):
        if not part or part in {".", ".."} or "/" in part or "%" in part:
            raise BadRequest(str(key), f"{part!r} cannot be a name", 400, "BadRequest")
    return key.resource.path(key.namespace, key.name, subresource)


def _collection(resource: Resource, selection: Selection) -> str:
    return f"{resource.full_name}{' in ' + selection.namespace if selection.namespace else ''}"


def _selectors(selection: Selection) -> dict[str, str]:
    chosen = {"labelSelector": selection.label_selector, "fieldSelector": selection.field_selector}
    return {key: value for key, value in chosen.items() if value}


def _delete_body(options: DeleteOptions) -> Json:
    body: Json = {"apiVersion": "v1", "kind": "DeleteOptions"}
    preconditions = {"uid": options.uid, "resourceVersion": options.resource_version}
    if any(preconditions.values()):
        body["preconditions"] = {key: value for key, value in preconditions.items() if value}
    if options.grace_s is not None:
        body["gracePeriodSeconds"] = options.grace_s
    if options.propagation is not None:
        body["propagationPolicy"] = options.propagation.value
    return body


__all__ = ["SILENCE_S", "HttpClient", "connect"]
