"""The rights of each process as RBAC objects: accounts, roles and bindings, ready to be applied.

The Lease and the webhooks' Secret are named objects in one namespace each; all else is of the whole cluster,
since VMs are in any namespace. People are bound by a group, processes by a ServiceAccount each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from gpubinder.rights import Home, Permission, Process, permissions_of
from model.names import LABEL_OURS, OURS

Json = dict[str, Any]
NAMESPACE = "gpubinder-system"
LEASE_NAMESPACE = "kube-system"
READERS = "gpubinder:readers"
"""The group of the people who may run `gpubinder status`."""
_API = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class Places:
    """The namespace of the accounts and the webhooks' Secret, and the one of the Lease."""

    accounts: str = NAMESPACE
    lease: str = LEASE_NAMESPACE

    def namespace_of(self, home: Home) -> str:
        """Where a right is given; empty for the whole cluster."""
        return {Home.CLUSTER: "", Home.LEASE: self.lease, Home.ACCOUNTS: self.accounts}[home]


def account_name(process: Process) -> str:
    """Of its ServiceAccount, its roles and its bindings."""
    return f"gpubinder-{process}"


def user_name(process: Process, namespace: str = NAMESPACE) -> str:
    """As the API server calls the process's account."""
    return f"system:serviceaccount:{namespace}:{account_name(process)}"


def rbac_of(process: Process, places: Places) -> list[Json]:
    """All that one process needs."""
    name, permissions = account_name(process), permissions_of(process)
    found = []
    if process is not Process.STATUS:
        meta = _meta(name, places.accounts)
        found.append({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
    for namespace in sorted({places.namespace_of(one.home) for one in permissions}):
        kind = "Role" if namespace else "ClusterRole"
        given = [one for one in permissions if places.namespace_of(one.home) == namespace]
        found.append(_role(kind, _meta(name, namespace), given))
        found.append(_binding(f"{kind}Binding", _meta(name, namespace), _subject(process, places)))
    return found


def rules_of(permissions: Iterable[Permission]) -> list[Json]:
    """As few rules as say it: verbs of one resource together, resources with the same verbs together."""
    verbs: dict[tuple[str, str, str], list[str]] = {}
    for one in permissions:
        what = one.resource.plural + (f"/{one.subresource}" if one.subresource else "")
        verbs.setdefault((one.resource.group, one.name, what), []).append(one.verb)
    rules: dict[tuple[str, tuple[str, ...], str], list[str]] = {}
    for (group, name, what), those in verbs.items():
        rules.setdefault((group, tuple(those), name), []).append(what)
    return list(_joined(rules))


def _joined(rules: dict[tuple[str, tuple[str, ...], str], list[str]]) -> Iterator[Json]:
    """One rule each; names of one resource that may be treated alike stand in one rule."""
    names: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for (group, those, name), resources in rules.items():
        key = (group, tuple(resources), those)
        if name:
            names.setdefault(key, []).append(name)
        else:
            yield {"apiGroups": [group], "resources": resources, "verbs": list(those)}
    for (group, of, those), named in names.items():
        rule = {"apiGroups": [group], "resources": list(of), "resourceNames": named}
        yield rule | {"verbs": list(those)}


def _role(kind: str, meta: Json, permissions: list[Permission]) -> Json:
    return {"apiVersion": f"{_API}/v1", "kind": kind, "metadata": meta, "rules": rules_of(permissions)}


def _binding(kind: str, meta: Json, subject: Json) -> Json:
    role = {"apiGroup": _API, "kind": kind.removesuffix("Binding"), "name": meta["name"]}
    body = {"apiVersion": f"{_API}/v1", "kind": kind, "metadata": meta}
    return body | {"roleRef": role, "subjects": [subject]}


def _subject(process: Process, places: Places) -> Json:
    if process is Process.STATUS:
        return {"apiGroup": _API, "kind": "Group", "name": READERS}
    return {"kind": "ServiceAccount", "name": account_name(process), "namespace": places.accounts}


def _meta(name: str, namespace: str = "") -> Json:
    where = {"namespace": namespace} if namespace else {}
    return {"name": name, **where, "labels": {LABEL_OURS: OURS}}
