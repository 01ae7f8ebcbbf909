"""The API servers that the contract suite runs on."""

from __future__ import annotations

import asyncio
import base64
import json
import urllib.request
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kube.adapters.http import connect
from kube.port import Json
from tests.cluster.control_plane import ControlPlane
from tests.cluster.fixtures import control_plane
from tests.contract.environment import Environment, make_namespace

LOOPBACK = pytest.mark.allow_hosts(["127.0.0.1"])
SERVERS = [pytest.param("real", marks=[pytest.mark.envtest, LOOPBACK])]

__all__ = ["control_plane", "env"]


@pytest.fixture(params=SERVERS)
async def env(request: pytest.FixtureRequest) -> AsyncIterator[Environment]:
    """One API server after the other, each with a namespace for this test alone."""
    plane: ControlPlane = request.getfixturevalue("control_plane")
    async with await connect(str(plane.kubeconfig())) as client:

        async def step() -> None:
            await asyncio.sleep(0.05)

        async def expire_token(token: str) -> str:
            return _aged(token, plane)

        yield Environment(client, await make_namespace(client), step, expire_token)


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
