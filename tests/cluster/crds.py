"""The CRDs of a test cluster: gpubinder's own, and stand-ins for KubeVirt's and Cozystack's.

The stand-ins keep every field and agree with the originals where it matters here: name, scope, version, and
whether /status is a subresource. (VirtualMachineInstance and Workload have none: their status is written with
the object and moves its generation.)
"""

from __future__ import annotations

import urllib.error
from typing import Any

from model.crds import all_crds
from tests.cluster.rest import Rest

PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def foreign() -> list[dict[str, Any]]:
    """The stand-ins."""
    kubevirt, cozystack = ("kubevirt.io", "v1"), ("cozystack.io", "v1alpha1")
    return [
        _crd(kubevirt, "VirtualMachine", ("vm", "vms"), has_status=True),
        _crd(kubevirt, "VirtualMachineInstance", ("vmi", "vmis"), has_status=False),
        _crd(kubevirt, "VirtualMachineInstanceMigration", ("vmim", "vmims"), has_status=True),
        _crd(cozystack, "Workload", (), has_status=False),
        _crd(cozystack, "WorkloadMonitor", (), has_status=True),
    ]


def install(rest: Rest) -> None:
    """Creates every CRD; one that exists already stays as it is."""
    for crd in [*foreign(), *all_crds()]:
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
