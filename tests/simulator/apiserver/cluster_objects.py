"""The least that the API server takes of each kind, and a server to put it on."""

from __future__ import annotations

from typing import Any

from kube.port import Json, ObjectKey
from model import resources as r
from model.resources import Resource
from simulator.apiserver.server import ApiServer

START_MS = 1_790_000_000_000


def a_server(seed: int = 0, **options: Any) -> ApiServer:
    return ApiServer(lambda: START_MS, seed, **options)


def key(resource: Resource, name: str) -> ObjectKey:
    return ObjectKey(resource, name, "default" if resource.is_namespaced else "")


def a_pod(name: str = "pod", *, metadata: Json | None = None, **spec: Any) -> Json:
    containers = [{"name": "main", "image": "none"}]
    meta = {"name": name, "namespace": "default"} | (metadata or {})
    return {"metadata": meta, "spec": {"containers": containers} | spec}


def a_crd(schema: Json | None = None, **version: Any) -> Json:
    """The CRD of Things."""
    spec_schema = schema or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    whole = {"type": "object", "properties": {"spec": spec_schema}}
    served = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": whole}}
    return {
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Thing", "plural": "things", "shortNames": ["th"]},
            "scope": "Namespaced",
            "versions": [served | version],
        },
    }


THINGS = Resource("example.com", "v1", "things", "Thing", has_status=False)


def a_thing(name: str = "thing", **spec: Any) -> Json:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


async def serving_things(schema: Json) -> ApiServer:
    server = a_server()
    await server.create(r.CUSTOM_RESOURCE_DEFINITIONS, a_crd(schema))
    return server
