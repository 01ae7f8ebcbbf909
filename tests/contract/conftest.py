"""The API servers that the contract suite runs on."""

from __future__ import annotations

import asyncio
import base64
import json
import time
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kube.adapters.http import connect
from kube.port import Json
from simulator.actors.acting import live
from simulator.actors.garbage_collector import GarbageCollector
from simulator.actors.scheduler import Scheduler
from simulator.apiserver.server import ApiServer
from simulator.cluster import api_server
from simulator.http_face import serving, write_kubeconfig
from tests.cluster.control_plane import ControlPlane
from tests.cluster.fixtures import control_plane
from tests.contract.environment import BindingClient, Environment, make_namespace

LOOPBACK = pytest.mark.allow_hosts(["127.0.0.1"])
REAL = pytest.param("real", marks=[pytest.mark.envtest, LOOPBACK])
SERVERS = ["direct", pytest.param("http", marks=LOOPBACK), REAL]

__all__ = ["control_plane", "env", "managed"]


@pytest.fixture(params=SERVERS)
async def env(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Environment]:
    """One API server after the other, each with a namespace for this test alone."""
    async with _environment(request, tmp_path) as environment:
        yield environment


@pytest.fixture(params=SERVERS)
async def managed(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Environment]:
    """The same with garbage collector, namespace controller and scheduler at work."""
    async with _environment(request, tmp_path, is_managed=True) as environment:
        yield environment


@asynccontextmanager
async def _environment(
    request: pytest.FixtureRequest, folder: Path, *, is_managed: bool = False
) -> AsyncIterator[Environment]:
    if request.param == "real":
        plane: ControlPlane = request.getfixturevalue("control_plane")
        async with await connect(str(plane.kubeconfig())) as client:
            aged = partial(_aged, plane=plane)
            yield Environment(client, await make_namespace(client), 0.05, short_watch_s=4, expire_token=aged)
        return
    server = await api_server(_now_ms)
    actors = _controllers(server) if is_managed else nullcontext()
    async with actors, _client(server, folder, is_http=request.param == "http") as client:
        forget = partial(_forgotten, server=server)
        yield Environment(client, await make_namespace(client), 0.005, short_watch_s=1, expire_token=forget)


@asynccontextmanager
async def _controllers(server: ApiServer) -> AsyncIterator[None]:
    """What a real control plane has; KubeVirt's actors and kubelets stay away here as there."""
    tasks = [
        asyncio.create_task(GarbageCollector(server).live()),
        asyncio.create_task(live(Scheduler(server), server, _now_ms)),
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@asynccontextmanager
async def _client(server: ApiServer, folder: Path, *, is_http: bool) -> AsyncIterator[BindingClient]:
    if not is_http:
        yield server
        return
    async with serving(server) as url:
        write_kubeconfig(folder / "kubeconfig", url)
        async with await connect(str(folder / "kubeconfig")) as client:
            yield client


def _forgotten(token: str, server: ApiServer) -> str:
    server.expire_pages()
    server.store.compact()
    return token


def _aged(token: str, plane: ControlPlane) -> str:
    """The same token, of a list at revision 1, which etcd is made to forget."""
    _compact(plane)
    fields = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    return base64.urlsafe_b64encode(json.dumps(fields | {"rv": 1}).encode()).decode().rstrip("=")


def _compact(plane: ControlPlane) -> None:
    revision = _etcd(plane, "range", {"key": "AA=="})["header"]["revision"]
    _etcd(plane, "compaction", {"revision": revision})


def _etcd(plane: ControlPlane, call: str, body: Json) -> Any:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    data = json.dumps(body).encode()
    request = urllib.request.Request(f"{plane.etcd}/v3/kv/{call}", data=data, method="POST")
    with opener.open(request, timeout=10) as answer:
        return json.loads(answer.read())
