"""The HTTP adapter against servers that misbehave: each failure is the error that says what happened."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest
from aiohttp import web

from kube import errors
from kube.adapters import stream, transport
from kube.adapters.http import connect
from kube.port import ObjectKey
from model.resources import NODES, PODS
from tests.kube.fake_server import Handler, client_of, serving, write_kubeconfig

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])
NODE = ObjectKey(NODES, "node")
POD = {"metadata": {"name": "pod", "namespace": "ns"}}


def status(code: int, reason: str = "", **headers: str) -> Handler:
    async def handler(_: web.Request) -> web.Response:
        body = {"kind": "Status", "code": code, "reason": reason, "message": "because"}
        return web.json_response(body, status=code, headers=headers)

    return handler


def answering(body: object) -> Handler:
    async def handler(_: web.Request) -> web.Response:
        return web.json_response(body)

    return handler


def text(code: int, body: str) -> Handler:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(status=code, text=body)

    return handler


def streaming(*chunks: bytes, then_hang: bool = False) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        for chunk in chunks:
            await answer.write(chunk)
        if then_hang:
            await asyncio.Event().wait()
        return answer

    return handler


async def hang(_: web.Request) -> web.Response:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "READ_TIMEOUT_S", 0.2)
    monkeypatch.setattr(transport, "WRITE_TIMEOUT_S", 0.2)


@asynccontextmanager
async def watching(handler: Handler, folder: Path, silence_s: float = 5.0) -> AsyncIterator[list[str]]:
    """The names that a watch of pods gave, whatever ends it."""
    async with serving(handler) as server, client_of(server, folder, silence_s=silence_s) as client:
        names: list[str] = []
        try:
            async for event in client.watch(PODS, resource_version="1"):
                names.append(event.object["metadata"]["name"])  # noqa: PERF401
        finally:
            yield names


@pytest.mark.parametrize(
    ("code", "reason", "wanted"),
    [
        (400, "BadRequest", errors.BadRequest),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (409, "Conflict", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "Expired", errors.Gone),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.ServerFault),
        (503, "ServiceUnavailable", errors.ServerFault),
    ],
)
async def test_each_status_is_its_error(
    tmp_path: Path, code: int, reason: str, wanted: type[errors.Refused]
) -> None:
    async with serving(status(code, reason)) as server, client_of(server, tmp_path) as client:
        with pytest.raises(wanted) as caught:
            await client.get(NODE)
        assert type(caught.value) is wanted
        assert (caught.value.status, caught.value.reason, caught.value.message) == (code, reason, "because")
        assert str(caught.value) == "Node node: because"


@pytest.mark.parametrize(("header", "wanted_s"), [("7", 7.0), ("100000", 60.0), ("soon", 1.0), ("-1", 1.0)])
async def test_retry_after_is_told_and_bounded(tmp_path: Path, header: str, wanted_s: float) -> None:
    handler = status(429, "TooManyRequests", **{"Retry-After": header})
    async with serving(handler) as server, client_of(server, tmp_path) as client:
        with pytest.raises(errors.TooManyRequests) as caught:
            await client.get(NODE)
        assert caught.value.retry_after_s == wanted_s


async def test_refusal_without_a_status_object_tells_its_text(tmp_path: Path) -> None:
    async with serving(text(404, "404 page not found\n")) as server, client_of(server, tmp_path) as client:
        with pytest.raises(errors.NotFound, match=f"{server} answered HTTP 404 .*404 page not found"):
            await client.get(NODE)
    async with serving(text(502, "<html>" * 1000)) as server, client_of(server, tmp_path) as client:
        with pytest.raises(errors.ServerFault, match=f"{server} answered HTTP 502") as told:
            await client.get(NODE)
    assert len(str(told.value)) < 250


@pytest.mark.parametrize("body", ["<html>", "[1]", ""])
async def test_answer_that_is_no_object_is_an_error(tmp_path: Path, body: str) -> None:
    async with serving(text(200, body)) as server, client_of(server, tmp_path) as client:
        with pytest.raises(errors.ApiError, match="Node node"):
            await client.get(NODE)


async def test_refused_connection_is_unreachable_for_reads_and_writes(tmp_path: Path) -> None:
    with socket.socket() as taken:  # bound and not listening: nobody answers there
        taken.bind(("127.0.0.1", 0))
        async with client_of(f"http://127.0.0.1:{taken.getsockname()[1]}", tmp_path) as client:
            with pytest.raises(errors.Unreachable):
                await client.get(NODE)
            with pytest.raises(errors.Unreachable):
                await client.create(PODS, POD)


async def test_plain_http_behind_an_https_url_is_unreachable(tmp_path: Path) -> None:
    async with serving(status(200)) as server, client_of("https" + server[4:], tmp_path) as client:
        with pytest.raises(errors.Unreachable, match="Node node: no answer from https://127"):
            await client.get(NODE)


async def test_write_without_an_answer_may_have_happened(tmp_path: Path, impatient: None) -> None:
    async with serving(hang) as server, client_of(server, tmp_path) as client:
        with pytest.raises(errors.OutcomeUnknown):
            await client.create(PODS, POD)
        with pytest.raises(errors.OutcomeUnknown):
            await client.patch(NODE, {})
        with pytest.raises(errors.Unreachable):
            await client.get(NODE)


async def test_read_of_which_nothing_comes_is_given_up_long_before_a_large_list_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dead connection gives no sign; the active binder waits for its list of claims on it."""
    monkeypatch.setattr(transport, "READ_SILENCE_S", 0.2)

    async def slowly(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        for piece in (b'{"metadata":', b'{"name":', b'"node"', b"}}"):
            await asyncio.sleep(0.1)
            await answer.write(piece)
        return answer

    async with serving(hang) as server, client_of(server, tmp_path) as client:
        with pytest.raises(errors.Unreachable, match="no answer"):
            await asyncio.wait_for(client.get(NODE), 2.0)
    async with serving(slowly) as server, client_of(server, tmp_path) as client:
        assert (await client.get(NODE))["metadata"] == {"name": "node"}


async def test_write_whose_connection_breaks_may_have_happened(tmp_path: Path) -> None:
    async def cut(request: web.Request) -> web.Response:
        await request.read()
        assert request.transport
        request.transport.abort()
        return web.Response()

    async with serving(cut) as server, client_of(server, tmp_path) as client:
        with pytest.raises(errors.OutcomeUnknown):
            await client.create(PODS, POD)


async def test_write_that_ran_out_of_time_in_the_server_may_have_happened(tmp_path: Path) -> None:
    async with serving(status(504, "Timeout")) as server, client_of(server, tmp_path) as client:
        with pytest.raises(errors.OutcomeUnknown):
            await client.create(PODS, POD)
        with pytest.raises(errors.ServerFault):
            await client.get(NODE)


async def test_server_is_told_how_long_we_wait(tmp_path: Path) -> None:
    async def echo(request: web.Request) -> web.Response:
        return web.json_response(dict(request.query))

    async with serving(echo) as server, client_of(server, tmp_path) as client:
        assert await client.get(NODE) == {"timeout": "60s"}
        assert await client.create(PODS, POD) == {"timeout": "5s"}


@pytest.mark.parametrize("name", ["", ".", "..", "../pods/x", "a/b", "a%2Fb"])
async def test_name_that_would_be_another_url_is_refused_and_not_sent(tmp_path: Path, name: str) -> None:
    async with client_of("http://127.0.0.1:1", tmp_path) as client:
        for key in (ObjectKey(NODES, name), *([ObjectKey(PODS, "pod", name)] if name else [])):
            with pytest.raises(errors.BadRequest):
                await client.get(key)


async def test_watch_gives_events_of_any_size(tmp_path: Path) -> None:
    big = {"type": "ADDED", "object": {"metadata": {"name": "big"}, "spec": "x" * 1_500_000}}
    small = {"type": "ADDED", "object": {"metadata": {"name": "small"}}}
    handler = streaming(orjson.dumps(big) + b"\n" + orjson.dumps(small) + b"\n")
    async with watching(handler, tmp_path) as names:
        assert names == ["big", "small"]


async def test_watch_without_a_line_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "MAX_LINE", 1_000)
    with pytest.raises(errors.ApiError, match=r"more than .* bytes; is this a Kubernetes API server"):
        async with watching(streaming(*[b"x" * 400] * 4, then_hang=True), tmp_path):
            pass


@pytest.mark.parametrize(
    "body", [{"items": 5}, {"items": [None]}, {"items": ["x"]}, {"items": [], "metadata": 5}]
)
async def test_answer_that_is_no_list_is_an_error_of_the_api(tmp_path: Path, body: object) -> None:
    async with serving(answering(body)) as server, client_of(server, tmp_path) as client:
        with pytest.raises(errors.ApiError, match="no list"):
            await client.list_page(PODS)


async def test_list_without_items_and_metadata_is_empty(tmp_path: Path) -> None:
    async with (
        serving(answering({"items": None, "metadata": None})) as server,
        client_of(server, tmp_path) as client,
    ):
        page = await client.list_page(PODS)
    assert (page.items, page.resource_version, page.continue_token) == ([], "", "")


async def test_silent_watch_ends_as_unreachable(tmp_path: Path) -> None:
    event = orjson.dumps({"type": "ADDED", "object": {"metadata": {"name": "one"}}}) + b"\n"
    with pytest.raises(errors.Unreachable, match="watch of pods"):
        async with watching(streaming(event, then_hang=True), tmp_path, silence_s=0.2) as names:
            assert names == ["one"]


async def test_watch_that_ends_within_an_event_is_unreachable(tmp_path: Path) -> None:
    with pytest.raises(errors.Unreachable):
        async with watching(streaming(b'{"type":"ADD'), tmp_path) as names:
            assert names == []


async def test_watch_refused_at_once_is_that_error(tmp_path: Path) -> None:
    with pytest.raises(errors.Gone):
        async with watching(status(410, "Expired"), tmp_path):
            pass


async def test_rotated_token_is_read_again_when_the_old_one_is_refused(tmp_path: Path) -> None:
    seen = []

    async def check(request: web.Request) -> web.StreamResponse:
        seen.append(request.headers.get("Authorization", ""))
        good = seen[-1] == "Bearer new"
        return await (status(200) if good else status(401, "Unauthorized"))(request)

    token = tmp_path / "token"
    token.write_text("old\n")
    async with serving(check) as server, client_of(server, tmp_path, tokenFile=str(token)) as client:
        with pytest.raises(errors.Unauthorized):
            await client.get(NODE)
        token.write_text("new\n")
        await client.create(PODS, POD)
    assert seen == ["Bearer old", "Bearer old", "Bearer old", "Bearer new"]


async def test_proxy_of_the_environment_is_not_used_on_loopback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    async with serving(status(200)) as server, client_of(server, tmp_path) as client:
        assert (await client.get(NODE))["code"] == 200


async def test_connecting_makes_no_request(tmp_path: Path) -> None:
    client = await connect(str(write_kubeconfig(tmp_path)))
    await client.close()
