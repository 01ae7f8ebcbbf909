"""The HTTP face: what clients find there, and that nonsense is refused with a Status."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import orjson
import pytest
from yarl import URL

from model import resources as r
from simulator.apiserver.server import ApiServer
from simulator.http_face import serving
from tests.simulator.apiserver.cluster_objects import a_crd, a_pod, a_server

pytestmark = pytest.mark.enable_socket
PODS = "/api/v1/namespaces/default/pods"
MERGE = {"Content-Type": "application/merge-patch+json"}


class Face:
    """Requests to a served simulator, answered as status and JSON."""

    def __init__(self, server: ApiServer, session: aiohttp.ClientSession) -> None:
        self.server = server
        self._session = session

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        data = body if isinstance(body, bytes | None) else orjson.dumps(body)
        sent = {"Content-Type": "application/json"} | {k.replace("_", "-"): v for k, v in headers.items()}
        async with self._session.request(method, path, data=data, headers=sent) as answer:
            lines = (await answer.read()).splitlines()
            return answer.status, [orjson.loads(line) for line in lines if line[:1] == b"{"]


@pytest.fixture
async def face() -> AsyncIterator[Face]:
    server = a_server()
    async with serving(server) as url, aiohttp.ClientSession(url) as session:
        yield Face(server, session)


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", PODS, b"{", 400),
        ("POST", PODS, [1], 400),
        ("POST", PODS, {"metadata": 5}, 400),
        ("POST", PODS, {"metadata": {"name": "a", "namespace": "other"}}, 400),
        ("POST", PODS, {"kind": "Node"}, 400),
        ("POST", "/api/v1/pods", {"metadata": {"name": "a"}}, 405),
        ("POST", "/api/v1/namespaces/none/pods", a_pod() | {"metadata": {"name": "a"}}, 404),
        ("PUT", PODS, {}, 405),
        ("GET", f"{PODS}/none", None, 404),
        ("GET", f"{PODS}/pod/nonsense", None, 404),
        ("GET", f"{PODS}?limit=x", None, 400),
        ("GET", f"{PODS}?labelSelector=a%20b", None, 400),
        ("GET", f"{PODS}?fieldSelector=a=b", None, 400),
        ("GET", f"{PODS}?watch=1&fieldSelector=a=b", None, 400),
        ("GET", f"{PODS}?watch=1&resourceVersion=x", None, 500),
        ("GET", f"{PODS}?watch=1&sendInitialEvents=true", None, 422),
        ("GET", f"{PODS}?watch=1&timeoutSeconds=x", None, 400),
        ("GET", f"{PODS}?continue=x", None, 400),
        ("PATCH", f"{PODS}/pod", {}, 415),
        ("DELETE", f"{PODS}/pod", {"gracePeriodSeconds": "soon"}, 400),
        ("DELETE", f"{PODS}/pod", {"propagationPolicy": "Sideways"}, 400),
        ("DELETE", f"{PODS}/pod", {"preconditions": [1]}, 400),
        ("POST", f"{PODS}/pod/binding", {}, 400),
        ("POST", f"{PODS}/pod/binding", {"target": [1]}, 400),
        ("GET", "/apis/none.example.com", None, 404),
        ("GET", "/apis/none.example.com/v1", None, 404),
        ("GET", "/apis/none.example.com/v1/things", None, 404),
    ],
)
async def test_nonsense_is_refused_with_a_status(
    face: Face, method: str, path: str, body: Any, status: int
) -> None:
    await face.server.create(r.PODS, a_pod())
    answered, found = await face.ask(method, path, body)
    assert answered == status
    assert found[0]["kind"] == "Status"
    assert found[0]["code"] == status
    assert found[0]["message"]


async def test_protobuf_is_an_unsupported_media_type(face: Face) -> None:
    answered, _ = await face.ask("POST", PODS, b"k8s\0", Content_Type="application/vnd.kubernetes.protobuf")
    assert answered == 415


async def test_object_lives_through_the_face(face: Face) -> None:
    pod = a_pod()
    del pod["metadata"]["namespace"]
    assert (await face.ask("POST", PODS, pod))[0] == 201
    assert (await face.ask("POST", f"{PODS}/pod/binding", {"target": {"name": "n"}}))[0] == 201
    _, (patched,) = await face.ask("PATCH", f"{PODS}/pod/status", {"status": {"phase": "Running"}}, **MERGE)
    assert (patched["spec"]["nodeName"], patched["status"]["phase"]) == ("n", "Running")
    assert (await face.ask("DELETE", f"{PODS}/pod", {"gracePeriodSeconds": 0}))[0] == 200
    assert (await face.ask("GET", f"{PODS}/pod"))[0] == 404


async def test_watch_without_a_version_streams_what_there_is(face: Face) -> None:
    await face.server.create(r.PODS, a_pod())
    _, events = await face.ask("GET", f"{PODS}?watch=true&timeoutSeconds=0")
    assert [event["type"] for event in events if event["type"] != "BOOKMARK"] == ["ADDED"]


async def test_streamed_list_ends_with_its_mark(face: Face) -> None:
    query = "watch=true&timeoutSeconds=0&allowWatchBookmarks=true&sendInitialEvents=true"
    _, events = await face.ask("GET", f"{PODS}?{query}&resourceVersionMatch=NotOlderThan")
    assert events[0]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_version_that_is_too_old_is_an_error_in_the_stream(face: Face) -> None:
    await face.server.create(r.PODS, a_pod())
    face.server.store.compact()
    answered, events = await face.ask("GET", f"{PODS}?watch=true&resourceVersion=1&timeoutSeconds=0")
    assert answered == 200
    assert (events[0]["type"], events[0]["object"]["code"]) == ("ERROR", 410)


async def test_kinds_are_discovered_with_short_names_and_subresources(face: Face) -> None:
    await face.server.create(r.CUSTOM_RESOURCE_DEFINITIONS, a_crd(subresources={"status": {}}))
    _, (core,) = await face.ask("GET", "/api/v1")
    names = {entry["name"]: entry for entry in core["resources"]}
    assert names["pods"]["shortNames"] == ["po"]
    assert {"pods/status", "pods/binding", "nodes/status"} <= set(names)
    _, (group,) = await face.ask("GET", "/apis/example.com")
    assert group["preferredVersion"]["groupVersion"] == "example.com/v1"
    _, (things,) = await face.ask("GET", "/apis/example.com/v1")
    assert [entry["name"] for entry in things["resources"]] == ["things", "things/status"]
    assert things["resources"][0]["shortNames"] == ["th"]
    _, (groups,) = await face.ask("GET", "/apis")
    assert "example.com" in [one["name"] for one in groups["groups"]]


async def test_watcher_that_goes_before_its_answer_is_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    """Each one made a stack trace on the terminal of `gpubinder up`."""
    async with serving(a_server()) as url:
        for _ in range(20):
            client = socket.create_connection(("127.0.0.1", URL(url).port or 0))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.sendall(b"GET /api/v1/pods?watch=true&resourceVersion=1 HTTP/1.1\r\nHost: x\r\n\r\n")
            client.close()
            await asyncio.sleep(0.01)
    assert caplog.records == []
