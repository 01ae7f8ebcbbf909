"""What `gpubinder crds` and `gpubinder rbac` print, on a control plane of the test's own, and its users."""

from __future__ import annotations

import time
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from gpubinder.rights import Process
from model.names import LABEL_CREATED_BY
from tests.cli.process import gpubinder
from tests.cluster.control_plane import KUBEVIRT_CONTROLLER, READER, ControlPlane, User
from tests.cluster.rest import NO_HEADERS, Rest

Json = dict[str, Any]
NAMESPACE = "gpubinder-system"
MERGE = {"Content-Type": "application/merge-patch+json"}
ALMIGHTY = "almighty"
"""A group of people to whom RBAC denies nothing."""
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_LIMIT_S = 20.0
_PLURALS = {
    "CustomResourceDefinition": "customresourcedefinitions",
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
}


def set_up(plane: ControlPlane) -> None:
    """The namespace, the roles, and who is almighty."""
    rest = plane.rest()
    for name in (NAMESPACE, "kubevirt"):
        rest.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    subjects = [{"kind": "User", "name": KUBEVIRT_CONTROLLER.name}, {"kind": "Group", "name": ALMIGHTY}]
    body = {"metadata": {"name": ALMIGHTY}, "roleRef": role, "subjects": subjects}
    rest.request("POST", f"{_RBAC}/clusterrolebindings", body)
    for document in printed("rbac"):
        apply(rest, document)


def enforce(plane: ControlPlane) -> None:
    """The gate and the policies of who may write what, in force when this returns."""
    rest = plane.rest()
    for document in printed("crds"):
        apply(rest, document)
    probe = plain_pod("probe") | {"metadata": {"name": "probe", "labels": {LABEL_CREATED_BY: "x"}}}
    deadline = time.monotonic() + _LIMIT_S
    while not refusal(rest, "POST", "/api/v1/namespaces/default/pods?dryRun=All", probe):
        assert time.monotonic() < deadline, "the policies do not come into force"
        time.sleep(0.1)
    time.sleep(1.0)  # the other policies are in force with the API server's next look, a second later


def printed(*arguments: str) -> list[Json]:
    """The documents that a command prints."""
    done = gpubinder(*arguments)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def apply(rest: Rest, document: Json) -> None:
    """Create it; one that is there stays."""
    namespace = document["metadata"].get("namespace")
    version = document["apiVersion"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    scope = f"/namespaces/{namespace}" if namespace else ""
    kind = document["kind"]
    plural = _PLURALS.get(kind, kind.lower() + "s")
    try:
        rest.request("POST", f"{root}{scope}/{plural}", document)
    except urllib.error.HTTPError as error:
        if error.code != 409:
            raise AssertionError(error.read().decode()) from error
        error.close()


def kubeconfig_of(plane: ControlPlane, process: Process) -> Path:
    """Of the process's own account, with a token that the API server has made for it."""
    if process is Process.STATUS:
        return plane.kubeconfig(READER)
    name = f"gpubinder-{process}"
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{name}/token"
    made = plane.rest().request("POST", path, {"spec": {"expirationSeconds": 3600}})
    return plane.kubeconfig(User(name), made["status"]["token"])


def refusal(rest: Rest, method: str, path: str, body: Any = None, headers: Any = NO_HEADERS) -> str:
    """Why the API server forbids it; empty where it does it. Raises HTTPError for any other answer."""
    try:
        rest.request(method, path, body, headers=headers)
    except urllib.error.HTTPError as error:
        if error.code != 403:
            raise AssertionError(error.read().decode()) from error
        return error.read().decode()
    return ""


def as_user(name: str) -> dict[str, str]:
    """The headers of an admin who acts as somebody almighty of that name."""
    return {"Impersonate-User": name, "Impersonate-Group": ALMIGHTY}


def plain_pod(name: str, **spec: Any) -> Json:
    """A pod that anybody may make."""
    containers = [{"name": "c", "image": "x"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def kinds_of(documents: list[Json]) -> Iterator[tuple[str, str]]:
    """Kind and name of each."""
    for document in documents:
        yield document["kind"], document["metadata"]["name"]
