"""The API server's HTTP face: what the real client library, kubectl and gpubinder itself talk to.

Plain HTTP on a loopback port. Serves the paths, content types, Status bodies and watch streams of a real
server, lists streamed by a watch (sendInitialEvents) among them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import yaml
from aiohttp import web

from kube.errors import BadRequest, Refused
from kube.port import DeleteOptions, Json, ObjectKey, PatchOptions, PatchType, Propagation, Selection
from model.resources import PODS, Resource
from simulator.apiserver.server import ApiServer

HOST = "127.0.0.1"
VERSION = {"major": "1", "minor": "37", "gitVersion": "v1.37.2-simulated", "platform": "linux/amd64"}
MAX_BODY = 3 * 1024 * 1024
"""What a real API server takes."""


@asynccontextmanager
async def serving(server: ApiServer, port: int = 0) -> AsyncIterator[str]:
    """Serve while the context is open; port 0 takes a free one. Gives the URL; raises OSError."""
    runner = web.AppRunner(_application(server), access_log=None, shutdown_timeout=0.2)
    await runner.setup()
    try:
        site = web.TCPSite(runner, HOST, port)
        await site.start()
        yield f"http://{HOST}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def write_kubeconfig(path: Path, url: str) -> None:
    """A kubeconfig for kubectl and the real client library."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "simulated", "cluster": {"server": url}}],
        "users": [{"name": "anyone", "user": {}}],
        "contexts": [{"name": "simulated", "context": {"cluster": "simulated", "user": "anyone"}}],
        "current-context": "simulated",
    }
    path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")


def _application(server: ApiServer) -> web.Application:
    face = HttpFace(server)
    app = web.Application(client_max_size=MAX_BODY, middlewares=[_refusals_as_status])
    for path in ("/readyz", "/healthz", "/livez"):
        app.router.add_get(path, face.healthy)
    app.router.add_get("/version", face.version)
    app.router.add_get("/api", face.core_versions)
    app.router.add_get("/apis", face.groups)
    app.router.add_get("/api/{version}", face.kinds)
    app.router.add_get("/apis/{group}/{version}", face.kinds)
    for root in ("/api/{version}", "/apis/{group}/{version}"):
        app.router.add_route(
            "*", f"{root}/{{plural:namespaces}}/{{name}}/{{subresource:status|finalize}}", face.single
        )
        # The namespaced path first: the other one would take `namespaces` for a kind.
        for scope in ("/namespaces/{namespace}", ""):
            app.router.add_route("*", f"{root}{scope}/{{plural}}", face.collection)
            app.router.add_route("*", f"{root}{scope}/{{plural}}/{{name}}", face.single)
            app.router.add_route("*", f"{root}{scope}/{{plural}}/{{name}}/{{subresource}}", face.single)
    return app


@web.middleware
async def _refusals_as_status(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        return await handler(request)
    except Refused as error:
        return _answer(_status(error), error.status)


class HttpFace:
    """Requests to calls of the server, answers to JSON."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server

    async def healthy(self, _: web.Request) -> web.Response:
        """It is up."""
        return web.Response(text="ok")

    async def version(self, _: web.Request) -> web.Response:
        """The version that it plays."""
        return _answer(VERSION)

    async def core_versions(self, _: web.Request) -> web.Response:
        """The versions of the core group."""
        return _answer({"kind": "APIVersions", "versions": ["v1"]})

    async def groups(self, _: web.Request) -> web.Response:
        """All named groups."""
        kinds = [one.resource for one in self._server.kinds.by_name.values() if one.resource.group]
        named = []
        for group in sorted({kind.group for kind in kinds}):
            versions = [
                {"groupVersion": f"{group}/{version}", "version": version}
                for version in sorted({kind.version for kind in kinds if kind.group == group})
            ]
            named.append({"name": group, "versions": versions, "preferredVersion": versions[0]})
        return _answer({"kind": "APIGroupList", "apiVersion": "v1", "groups": named})

    async def kinds(self, request: web.Request) -> web.Response:
        """The kinds of one group and version; 404 for an unknown one."""
        group, version = request.match_info.get("group", ""), request.match_info["version"]
        found = self._server.kinds.in_group(group, version)
        if not found:
            raise _not_found(request.path)
        listed = [
            {
                "name": kind.plural,
                "singularName": kind.kind.lower(),
                "namespaced": kind.is_namespaced,
                "kind": kind.kind,
                "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"],
            }
            for kind in found
        ]
        group_version = found[0].api_version
        return _answer({"kind": "APIResourceList", "groupVersion": group_version, "resources": listed})

    async def collection(self, request: web.Request) -> web.StreamResponse:
        """List, watch or create."""
        resource = self._resource(request)
        if request.method == "POST":
            return _answer(await self._create(resource, request), 201)
        if request.method != "GET":
            raise BadRequest(request.path, "method not allowed", 405, "MethodNotAllowed")
        if request.query.get("watch") in ("1", "true"):
            return await self._watch(resource, request)
        page = await self._server.list_page(
            resource,
            _selection(request),
            limit=int(request.query.get("limit") or 0),
            continue_token=request.query.get("continue", ""),
        )
        metadata = {"resourceVersion": page.resource_version}
        if page.continue_token:
            metadata["continue"] = page.continue_token
        body = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": metadata}
        return _answer(body | {"items": page.items})

    async def single(self, request: web.Request) -> web.StreamResponse:
        """Get, replace, patch or delete one object; status and binding."""
        resource = self._resource(request)
        namespace = request.match_info.get("namespace", "")
        key = ObjectKey(resource, request.match_info["name"], namespace)
        subresource = request.match_info.get("subresource", "")
        match request.method:
            case "GET":
                return _answer(await self._server.get(key))
            case "PUT":
                return _answer(await self._server.replace(key, await _json(request), subresource))
            case "PATCH":
                options = PatchOptions(_patch_type(request), subresource)
                return _answer(await self._server.patch(key, await _json(request), options))
            case "DELETE":
                await self._server.delete(key, _delete_options(await _json(request)))
                return _answer({"kind": "Status", "apiVersion": "v1", "status": "Success"})
            case "POST" if subresource == "binding" and resource == PODS:
                await self._server.bind(key, (await _json(request))["target"]["name"])
                return _answer({"kind": "Status", "apiVersion": "v1", "status": "Success"}, 201)
            case method:
                raise BadRequest(request.path, f"{method} not allowed", 405, "MethodNotAllowed")

    async def _create(self, resource: Resource, request: web.Request) -> Json:
        body = await _json(request)
        if not isinstance(body.get("metadata"), dict):
            raise BadRequest(request.path, "metadata: Required value", 400, "BadRequest")
        namespace = request.match_info.get("namespace")
        if namespace and body["metadata"].setdefault("namespace", namespace) != namespace:
            text = "the namespace of the provided object does not match the namespace sent on the request"
            raise BadRequest(request.path, text, 400, "BadRequest")
        return await self._server.create(resource, body)

    async def _watch(self, resource: Resource, request: web.Request) -> web.StreamResponse:
        version = request.query.get("resourceVersion") or str(self._server.store.revision)
        if request.query.get("sendInitialEvents") == "true":
            version = ""
        timeout_s = int(request.query.get("timeoutSeconds") or 1800)
        bookmarks = request.query.get("allowWatchBookmarks") in ("1", "true")
        events = self._server.watch(
            resource, _selection(request), resource_version=version, timeout_s=timeout_s
        )
        self._server.kinds.of(resource)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        async with aclosing(events) as stream:
            try:
                async for event in stream:
                    if bookmarks or event.type != "BOOKMARK":
                        await _send(response, {"type": event.type, "object": event.object})
            except Refused as error:
                await _send(response, {"type": "ERROR", "object": _status(error)})
            except ConnectionResetError:
                return response  # the watcher has gone
        return response

    def _resource(self, request: web.Request) -> Resource:
        group, version = request.match_info.get("group", ""), request.match_info["version"]
        for resource in self._server.kinds.in_group(group, version):
            if resource.plural == request.match_info["plural"]:
                return resource
        raise _not_found(request.path)


def _not_found(path: str) -> Refused:
    return Refused(path, "the server could not find the requested resource", 404, "NotFound")


async def _json(request: web.Request) -> Any:
    raw = await request.read()
    if not raw:
        return {}
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise BadRequest(request.path, f"the body is no JSON: {error}", 400, "BadRequest") from None
    if isinstance(body, dict) or (isinstance(body, list) and request.method == "PATCH"):
        return body
    raise BadRequest(request.path, "the body is no JSON object", 400, "BadRequest")


def _patch_type(request: web.Request) -> PatchType:
    try:
        return PatchType(request.content_type)
    except ValueError:
        text = f"the body of the request was in an unknown format: {request.content_type}"
        raise BadRequest(request.path, text, 415, "UnsupportedMediaType") from None


def _selection(request: web.Request) -> Selection:
    return Selection(
        request.match_info.get("namespace", ""),
        request.query.get("labelSelector", ""),
        request.query.get("fieldSelector", ""),
    )


def _delete_options(body: Json) -> DeleteOptions:
    wanted = body.get("preconditions") or {}
    propagation = body.get("propagationPolicy")
    return DeleteOptions(
        uid=wanted.get("uid", ""),
        resource_version=wanted.get("resourceVersion", ""),
        grace_s=body.get("gracePeriodSeconds"),
        propagation=Propagation(propagation) if propagation else None,
    )


def _status(error: Refused) -> Json:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": error.message,
        "reason": error.reason,
        "code": error.status,
    }


def _answer(body: Any, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(body), status=status, content_type="application/json")


async def _send(response: web.StreamResponse, event: Json) -> None:
    await response.write(orjson.dumps(event) + b"\n")
