"""The API servers that the contract suite runs on."""

from __future__ import annotations

import base64
import json
import time
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kube.adapters.http import connect
from kube.port import Json
from model.crds import all_crds
from model.resources import CUSTOM_RESOURCE_DEFINITIONS
from simulator.apiserver.served import COZYSTACK, KUBEVIRT
from simulator.apiserver.server import ApiServer
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


@pytest.fixture(params=[REAL])
async def managed(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Environment]:
    """The same with garbage collector, namespace controller and scheduler at work."""
    async with _environment(request, tmp_path) as environment:
        yield environment


@asynccontextmanager
async def _environment(request: pytest.FixtureRequest, folder: Path) -> AsyncIterator[Environment]:
    if request.param == "real":
        plane: ControlPlane = request.getfixturevalue("control_plane")
        async with await connect(str(plane.kubeconfig())) as client:
            aged = partial(_aged, plane=plane)
            yield Environment(client, await make_namespace(client), 0.05, short_watch_s=4, expire_token=aged)
        return
    server = await _simulated()
    async with _client(server, folder, is_http=request.param == "http") as client:
        forget = partial(_forgotten, server=server)
        yield Environment(client, await make_namespace(client), 0.0, short_watch_s=1, expire_token=forget)


async def _simulated() -> ApiServer:
    server = ApiServer(clock=lambda: time.time_ns() // 1_000_000)
    server.kinds.add(*KUBEVIRT, *COZYSTACK)
    for crd in all_crds():
        await server.create(CUSTOM_RESOURCE_DEFINITIONS, crd)
    return server


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
