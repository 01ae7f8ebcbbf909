"""Which kinds the API server serves: the built-in ones, and those of installed CRDs with their schemas."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kube.errors import NotFound
from kube.port import Json
from model import resources as r
from model.resources import Resource
from simulator.apiserver.schemas import Schema, faults, shaped, unknown_parts

MIGRATIONS = Resource(
    "kubevirt.io", "v1", "virtualmachineinstancemigrations", "VirtualMachineInstanceMigration"
)
BUILT_IN = (
    r.NODES,
    r.PODS,
    r.PERSISTENT_VOLUME_CLAIMS,
    r.PERSISTENT_VOLUMES,
    r.NAMESPACES,
    r.SERVICES,
    r.STORAGE_CLASSES,
    r.LEASES,
    r.EVENTS,
    r.SECRETS,
    r.MUTATING_WEBHOOKS,
    r.VALIDATING_WEBHOOKS,
    r.CUSTOM_RESOURCE_DEFINITIONS,
)
KUBEVIRT = (r.VIRTUAL_MACHINES, r.VIRTUAL_MACHINE_INSTANCES, MIGRATIONS)
COZYSTACK = (r.WORKLOADS, r.WORKLOAD_MONITORS)


@dataclass(frozen=True, slots=True)
class Served:
    """One served kind. A kind with a schema, or served as custom, behaves as a CRD's."""

    resource: Resource
    is_custom: bool = False
    schema: Schema | None = None
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()

    def shaped(self, obj: Json) -> Json:
        """The object without unknown fields and with defaults; metadata is not the schema's business."""
        if self.schema is None:
            return obj
        kept: Json = shaped(self.schema, {k: v for k, v in obj.items() if k != "metadata"})
        return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": obj["metadata"]} | kept

    def faults(self, obj: Json, old: Json | None = None) -> Iterator[str]:
        """What the schema finds wrong."""
        if self.schema is not None:
            yield from faults(self.schema, obj) if old is None else faults(self.schema, obj, old)


@dataclass(slots=True)
class ServedKinds:
    """By full name, e.g. `pods` or `gpuclaims.gpu.cozystack.io`."""

    by_name: dict[str, Served] = field(
        default_factory=lambda: {resource.full_name: Served(resource) for resource in BUILT_IN}
    )

    def of(self, resource: Resource) -> Served:
        """The served kind; raises NotFound as the server words it."""
        served = self.by_name.get(resource.full_name)
        if served is None or served.resource.version != resource.version:
            message = "the server could not find the requested resource"
            raise NotFound(resource.full_name, message, 404, "NotFound")
        return served

    def add(self, *resources: Resource) -> None:
        """Serve kinds as if CRDs without a schema were installed."""
        for resource in resources:
            self.by_name[resource.full_name] = Served(resource, is_custom=True)

    def install(self, crd: Json) -> None:
        """Serve the storage version of a CRD. Raises ValueError for a schema with parts not known here."""
        served = _served_by(crd)
        unknown = unknown_parts(served.schema or {})
        if unknown:
            raise ValueError(f"the simulator does not know {unknown[0]}")
        self.by_name[served.resource.full_name] = served

    def uninstall(self, crd: Json) -> Resource | None:
        """Serve it no more; returns what it was."""
        served = self.by_name.pop(str(crd["metadata"]["name"]), None)
        return None if served is None else served.resource

    def in_group(self, group: str, version: str) -> list[Resource]:
        """The kinds of one API group and version."""
        kinds = [one.resource for one in self.by_name.values()]
        return [one for one in kinds if (one.group, one.version) == (group, version)]


def _served_by(crd: Json) -> Served:
    spec: Any = crd["spec"]
    version = next(v for v in spec["versions"] if v.get("storage"))
    resource = Resource(
        spec["group"],
        version["name"],
        spec["names"]["plural"],
        spec["names"]["kind"],
        spec.get("scope") == "Namespaced",
        "status" in (version.get("subresources") or {}),
    )
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    preserves = schema is None or schema.get("x-kubernetes-preserve-unknown-fields")
    return Served(
        resource,
        is_custom=True,
        schema=None if preserves else schema,
        short_names=tuple(spec["names"].get("shortNames") or ()),
        categories=tuple(spec["names"].get("categories") or ()),
    )
