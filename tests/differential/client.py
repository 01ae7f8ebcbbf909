"""Thousands of small requests on few connections; it shares no code with what is under test."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

from tests.cluster.control_plane import ADMIN, ControlPlane

Json = dict[str, Any]
CONNECTIONS = 4
PATHS = {
    "Node": "/api/v1/nodes",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "RuntimeClass": "/apis/node.k8s.io/v1/runtimeclasses",
    "PersistentVolumeClaim": "/api/v1/namespaces/default/persistentvolumeclaims",
    "Pod": "/api/v1/namespaces/default/pods",
}


class Refused(Exception):
    """The API server did not take an object; the text is its answer."""


class Client:
    """One connection that is kept."""

    def __init__(self, plane: ControlPlane) -> None:
        address = urlsplit(plane.server)
        context = ssl.create_default_context(cafile=str(plane.ca_file))
        self._connection = http.client.HTTPSConnection(
            address.hostname or "", address.port, timeout=30, context=context
        )
        self._headers = {"Authorization": f"Bearer {ADMIN.token}", "Content-Type": "application/json"}

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """The decoded answer; raises Refused."""
        data = None if body is None else json.dumps(body)
        headers = dict(self._headers)
        if method == "PATCH":
            headers["Content-Type"] = "application/merge-patch+json"
        self._connection.request(method, path, data, headers)
        answer = self._connection.getresponse()
        raw = answer.read()
        if answer.status >= 400:
            raise Refused(raw.decode())
        return json.loads(raw)

    def create(self, wanted: Json) -> Json:
        """The object as the server has it, with the status that was wanted."""
        path = PATHS[wanted["kind"]]
        made: Json = self.request("POST", path, wanted)
        if "status" in wanted and wanted["kind"] != "Node":
            made = self.request(
                "PATCH", f"{path}/{made['metadata']['name']}/status", {"status": wanted["status"]}
            )
        return made

    def delete(self, obj: Json) -> Json:
        """The object as it is afterwards: a finalizer may keep it."""
        path = f"{PATHS[obj['kind']]}/{obj['metadata']['name']}"
        self.request("DELETE", path)
        found: Json = self.request("GET", path)
        return found

    def close(self) -> None:
        self._connection.close()


def create_all(plane: ControlPlane, wanted: Iterable[Json]) -> tuple[list[Json], list[str]]:
    """The objects that the server took, as it has them, in order, and why it refused the others."""
    objects = list(wanted)
    size = -(-len(objects) // CONNECTIONS) or 1
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        parts = list(pool.map(lambda part: list(_create(plane, part)), _parts(objects, size)))
    answers = [answer for part in parts for answer in part]
    return [a for a in answers if isinstance(a, dict)], [a for a in answers if isinstance(a, str)]


def _parts(objects: list[Json], size: int) -> Iterator[list[Json]]:
    return (objects[start : start + size] for start in range(0, len(objects), size))


def _create(plane: ControlPlane, part: list[Json]) -> Iterator[Json | str]:
    client = Client(plane)
    try:
        for one in part:
            try:
                yield client.create(one)
            except Refused as refused:
                yield f"{one['metadata']['name']}: {refused}"
    finally:
        client.close()
