"""What a client reads to find its way about: versions, groups, kinds with their verbs and short names."""

from __future__ import annotations

from kube.port import Json
from model import resources as r
from model.resources import Resource
from simulator.apiserver.served import MIGRATIONS, Served, ServedKinds

VERSION = {"major": "1", "minor": "37", "gitVersion": "v1.37.2-simulated", "platform": "linux/amd64"}
_VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]
_STATUS_VERBS = ["get", "patch", "update"]
_SHORT_NAMES: dict[Resource, tuple[str, ...]] = {
    r.NODES: ("no",),
    r.PODS: ("po",),
    r.NAMESPACES: ("ns",),
    r.SERVICES: ("svc",),
    r.PERSISTENT_VOLUMES: ("pv",),
    r.PERSISTENT_VOLUME_CLAIMS: ("pvc",),
    r.STORAGE_CLASSES: ("sc",),
    r.EVENTS: ("ev",),
    r.CUSTOM_RESOURCE_DEFINITIONS: ("crd", "crds"),
    r.VIRTUAL_MACHINES: ("vm", "vms"),
    r.VIRTUAL_MACHINE_INSTANCES: ("vmi", "vmis"),
    MIGRATIONS: ("vmim", "vmims"),
}
_IN_ALL = (r.PODS, r.SERVICES)


def core_versions() -> Json:
    """The versions of the core group."""
    return {"kind": "APIVersions", "versions": ["v1"]}


def groups(kinds: ServedKinds) -> Json:
    """All named groups."""
    named = sorted({one.resource.group for one in kinds.by_name.values() if one.resource.group})
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(kinds, name) for name in named]}


def one_group(kinds: ServedKinds, name: str) -> Json | None:
    """One named group, or None."""
    group = _group(kinds, name)
    return {"kind": "APIGroup", "apiVersion": "v1", **group} if group["versions"] else None


def resources(kinds: ServedKinds, group: str, version: str) -> Json | None:
    """The kinds of one group and version with their subresources, or None."""
    found = [kinds.of(resource) for resource in kinds.in_group(group, version)]
    if not found:
        return None
    listed = [entry for served in found for entry in _entries(served)]
    group_version = found[0].resource.api_version
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": listed,
    }


def _group(kinds: ServedKinds, name: str) -> Json:
    served = {one.resource.version for one in kinds.by_name.values() if one.resource.group == name}
    versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in sorted(served)]
    return {"name": name, "versions": versions, "preferredVersion": versions[0] if versions else None}


def _entries(served: Served) -> list[Json]:
    kind = served.resource
    common = {"namespaced": kind.is_namespaced, "kind": kind.kind}
    entry = common | {"name": kind.plural, "singularName": kind.kind.lower(), "verbs": _VERBS}
    if short := (served.short_names or _SHORT_NAMES.get(kind)):
        entry["shortNames"] = list(short)
    if categories := (served.categories or (("all",) if kind in _IN_ALL else ())):
        entry["categories"] = list(categories)
    entries = [entry]
    if kind.has_status:
        entries.append(common | {"name": f"{kind.plural}/status", "singularName": "", "verbs": _STATUS_VERBS})
    if kind == r.PODS:
        binding = {"name": "pods/binding", "singularName": "", "namespaced": True, "kind": "Binding"}
        entries.append(binding | {"verbs": ["create"]})
    return entries
