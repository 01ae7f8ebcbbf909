"""The HTTP adapter on a real API server: TLS, credentials, discovery, large objects, a server that hangs."""

from __future__ import annotations

import json
import signal
from contextlib import aclosing
from pathlib import Path

import pytest

from kube.adapters.http import connect
from kube.errors import Forbidden, NotFound, Unauthorized, Unreachable
from kube.port import ObjectKey, Selection, list_all
from model.resources import NODES, PODS, VIRTUAL_MACHINES, Resource
from tests.cluster.control_plane import TENANT, ControlPlane
from tests.cluster.fixtures import control_plane

__all__ = ["control_plane"]
pytestmark = [pytest.mark.envtest, pytest.mark.allow_hosts(["127.0.0.1"])]


def changed(plane: ControlPlane, folder: Path, *, server: str = "", token: str = "", ca: str = "") -> str:
    """The admin's kubeconfig with something else in it."""
    config = json.loads(plane.kubeconfig().read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    cluster.update({"server": server} if server else {})
    cluster.update({"certificate-authority": ca} if ca else {})
    user.update({"token": token} if token else {})
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    return str(path)


async def test_version_and_served_kinds_are_told(control_plane: ControlPlane) -> None:
    async with await connect(str(control_plane.kubeconfig())) as client:
        assert (await client.version()).startswith("v1.")
        assert {"pods", "nodes"} <= await client.served("", "v1")
        assert "virtualmachineinstances" in await client.served("kubevirt.io", "v1")
        assert await client.served("kubevirt.io", "v9") == frozenset()
        assert await client.served("nobody.io", "v1") == frozenset()


async def test_kind_that_is_not_served_is_not_found(control_plane: ControlPlane) -> None:
    unknown = Resource("nobody.io", "v1", "things", "Thing")
    async with await connect(str(control_plane.kubeconfig())) as client:
        with pytest.raises(NotFound):
            await client.list_page(unknown)
        with pytest.raises(NotFound):
            await anext(aiter(client.watch(unknown, resource_version="1")))


async def test_user_without_rights_is_forbidden(control_plane: ControlPlane) -> None:
    async with await connect(str(control_plane.kubeconfig(TENANT))) as client:
        with pytest.raises(Forbidden, match='User "tenant" cannot'):
            await client.list_page(NODES)


async def test_wrong_token_is_unauthorized(control_plane: ControlPlane, tmp_path: Path) -> None:
    async with await connect(changed(control_plane, tmp_path, token="wrong")) as client:
        with pytest.raises(Unauthorized):
            await client.list_page(NODES)


async def test_server_of_another_authority_is_not_trusted(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    other = tmp_path / "other.crt"
    subject = [
        "-subj",
        "/CN=other",
        "-days",
        "2",
        "-nodes",
        "-keyout",
        str(tmp_path / "key"),
        "-out",
        str(other),
    ]
    control_plane.openssl("req", "-x509", "-newkey", "rsa:2048", *subject)
    async with await connect(changed(control_plane, tmp_path, ca=str(other))) as client:
        with pytest.raises(Unreachable, match=r"(?i)certificate"):
            await client.list_page(NODES)


async def test_object_of_more_than_a_megabyte_comes_whole_by_every_way(control_plane: ControlPlane) -> None:
    body = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "large", "namespace": "default"},
        "spec": {"text": "x" * 1_400_000},
    }
    key = ObjectKey(VIRTUAL_MACHINES, "large", "default")
    async with await connect(str(control_plane.kubeconfig())) as client:
        since = (await client.list_page(VIRTUAL_MACHINES, limit=1)).resource_version
        created = await client.create(VIRTUAL_MACHINES, body)
        try:
            assert await client.get(key) == created
            chosen = Selection("default", field_selector="metadata.name=large")
            assert (await list_all(client, VIRTUAL_MACHINES, chosen)).items == [created]
            async with aclosing(client.watch(VIRTUAL_MACHINES, chosen, resource_version=since)) as events:
                assert (await anext(events)).object == created
        finally:
            await client.delete(key)


async def test_watch_of_a_server_that_hangs_ends(control_plane: ControlPlane) -> None:
    async with await connect(str(control_plane.kubeconfig()), silence_s=0.5) as client:
        since = (await client.list_page(PODS, limit=1)).resource_version
        stream = client.watch(PODS, Selection("nowhere"), resource_version=since)
        server = control_plane.process("kube-apiserver")
        try:
            server.signal(signal.SIGSTOP)
            with pytest.raises(Unreachable, match="watch of pods in nowhere"):
                await anext(stream)
        finally:
            server.signal(signal.SIGCONT)
        assert (await client.list_page(PODS, limit=1)).resource_version
