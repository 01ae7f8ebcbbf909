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

from kube.errors import Refused
from kube.port import Json, ObjectKey, PatchOptions
from model.resources import PODS, Resource
from simulator import http_discovery, http_requests
from simulator.apiserver import refusals
from simulator.apiserver.server import ApiServer

HOST = "127.0.0.1"
MAX_BODY = 3 * 1024 * 1024
"""What a real API server takes."""
WATCH_S = 1800
"""How long a watch lasts that does not say."""


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
    for path in ("/version", "/api", "/apis", "/openapi/v3"):
        app.router.add_get(path, face.about)
    app.router.add_get("/openapi/v2", face.no_schemas)
    app.router.add_get("/api/{version}", face.kinds)
    app.router.add_get("/apis/{group}", face.group)
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

    async def about(self, request: web.Request) -> web.Response:
        """What the server is, and which groups it has."""
        match request.path:
            case "/version":
                return _answer(http_discovery.VERSION)
            case "/api":
                return _answer(http_discovery.core_versions())
            case "/apis":
                return _answer(http_discovery.groups(self._server.kinds))
            case _:
                return _answer({"paths": {}})

    async def no_schemas(self, _: web.Request) -> web.Response:
        """An empty OpenAPI document, as protobuf: kubectl then leaves validation to the server."""
        return web.Response(body=b"", content_type="application/octet-stream")

    async def group(self, request: web.Request) -> web.Response:
        """One group; 404 for an unknown one."""
        found = http_discovery.one_group(self._server.kinds, request.match_info["group"])
        return _answer(_known(found, request))

    async def kinds(self, request: web.Request) -> web.Response:
        """The kinds of one group and version; 404 for an unknown one."""
        group, version = request.match_info.get("group", ""), request.match_info["version"]
        return _answer(_known(http_discovery.resources(self._server.kinds, group, version), request))

    async def collection(self, request: web.Request) -> web.StreamResponse:
        """List, watch or create."""
        resource = self._resource(request)
        if request.method == "POST":
            return _answer(await self._create(resource, request), 201)
        if request.method != "GET":
            raise refusals.not_allowed(request.path)
        if http_requests.is_set(request, "watch"):
            return await self._watch(resource, request)
        page = await self._server.list_page(
            resource,
            http_requests.selection_of(request),
            limit=http_requests.number_of(request, "limit", 0),
            continue_token=request.query.get("continue", ""),
        )
        metadata = {"resourceVersion": page.resource_version}
        if page.continue_token:
            metadata["continue"] = page.continue_token
        body = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": metadata}
        return _answer(body | {"items": page.items})

    async def single(self, request: web.Request) -> web.StreamResponse:
        """Get, replace, patch or delete one object; status and binding."""
        resource, subresource = self._resource(request), request.match_info.get("subresource", "")
        key = ObjectKey(resource, request.match_info["name"], request.match_info.get("namespace", ""))
        has_it = not subresource or (subresource == "status" and resource.has_status)
        match request.method:
            case "POST" if subresource == "binding" and resource == PODS:
                target = (await http_requests.read_object(request)).get("target")
                if not isinstance(target, dict) or not isinstance(target.get("name", ""), str):
                    raise refusals.bad_request(key, "the body is no Binding")
                await self._server.bind(key, target.get("name", ""))
                return _answer({"kind": "Status", "apiVersion": "v1", "status": "Success"}, 201)
            case "GET" if has_it:
                return _answer(await self._server.get(key))
            case "PUT" if has_it:
                body = await http_requests.read_object(request)
                return _answer(await self._server.replace(key, body, subresource))
            case "PATCH" if has_it:
                kind, patch = await http_requests.read_patch(request)
                return _answer(await self._server.patch(key, patch, PatchOptions(kind, subresource)))
            case "DELETE" if not subresource:
                await self._server.delete(key, await http_requests.read_delete_options(request))
                return _answer({"kind": "Status", "apiVersion": "v1", "status": "Success"})
            case "GET" | "PUT" | "PATCH":
                raise refusals.not_served(request.path)
            case _:
                raise refusals.not_allowed(request.path)

    async def _create(self, resource: Resource, request: web.Request) -> Json:
        body = await http_requests.read_object(request)
        namespace, metadata = request.match_info.get("namespace"), body.setdefault("metadata", {})
        if namespace and isinstance(metadata, dict):
            if (metadata.get("namespace") or namespace) != namespace:
                text = "the namespace of the provided object does not match the namespace sent on the request"
                raise refusals.bad_request(request.path, text)
            metadata["namespace"] = namespace
        return await self._server.create(resource, body)

    async def _watch(self, resource: Resource, request: web.Request) -> web.StreamResponse:
        selection, version = http_requests.selection_of(request), http_requests.watch_version_of(request)
        timeout_s = http_requests.number_of(request, "timeoutSeconds", WATCH_S)
        bookmarks = http_requests.is_set(request, "allowWatchBookmarks")
        self._server.check_watch(resource, selection, version)
        events = self._server.watch(resource, selection, resource_version=version, timeout_s=timeout_s)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        async with aclosing(events) as stream:
            try:
                await response.prepare(request)
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
        raise refusals.not_served(request.path)


def _known(found: Json | None, request: web.Request) -> Json:
    if found is None:
        raise refusals.not_served(request.path)
    return found


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
