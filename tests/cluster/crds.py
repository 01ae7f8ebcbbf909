"""The CRDs of a test cluster: gpubinder's own, and stand-ins for KubeVirt's and Cozystack's.

The stand-ins keep every field and agree with the originals where it matters here: name, scope, version, and
whether /status is a subresource. (VirtualMachineInstance and Workload have none: their status is written with
the object and moves its generation.)
"""

from __future__ import annotations

import urllib.error
from collections.abc import Iterable
from typing import Any

from model.crds import all_crds
from tests.cluster.rest import Rest

PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def default() -> list[dict[str, Any]]:
    """Ours and every stand-in."""
    return [*kubevirt(), *cozystack(), *all_crds()]


def kubevirt() -> list[dict[str, Any]]:
    """The stand-ins for KubeVirt's."""
    served = ("kubevirt.io", "v1")
    return [
        _crd(served, "VirtualMachine", ("vm", "vms"), has_status=True),
        _crd(served, "VirtualMachineInstance", ("vmi", "vmis"), has_status=False),
        _crd(served, "VirtualMachineInstanceMigration", ("vmim", "vmims"), has_status=True),
    ]


def cozystack() -> list[dict[str, Any]]:
    """The stand-ins for Cozystack's."""
    served = ("cozystack.io", "v1alpha1")
    return [
        _crd(served, "Workload", (), has_status=False),
        _crd(served, "WorkloadMonitor", (), has_status=True),
    ]


def install(rest: Rest, crds: Iterable[dict[str, Any]]) -> None:
    """Creates the CRDs; one that exists already stays as it is."""
    for crd in crds:
        try:
            rest.request("POST", PATH, crd)
        except urllib.error.HTTPError as error:
            if error.code != 409:
                name, why = crd["metadata"]["name"], error.read().decode(errors="replace")
                raise RuntimeError(f"the API server refused the CRD {name}: {why}") from error
            error.close()


def are_established(rest: Rest) -> bool:
    """Whether every CRD in the cluster is served."""
    return all(_is_established(crd) for crd in rest.request("GET", PATH)["items"])


def _is_established(crd: dict[str, Any]) -> bool:
    conditions = crd.get("status", {}).get("conditions") or []  # null at first
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _crd(
    served: tuple[str, str], kind: str, short_names: tuple[str, ...], *, has_status: bool
) -> dict[str, Any]:
    group, version = served
    plural = kind.lower() + "s"
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": names | ({"shortNames": list(short_names)} if short_names else {}),
            "versions": [
                {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
                | ({"subresources": {"status": {}}} if has_status else {})
            ],
        },
    }
