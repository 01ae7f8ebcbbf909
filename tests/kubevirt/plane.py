"""A real control plane with KubeVirt's own CRDs, roles and virt-controller.

virt-controller runs as its own service account, under exactly the roles that KubeVirt's operator would give
it. There is no virt-api: nothing defaults or validates VMs.
"""

from __future__ import annotations

import calendar
import time
from typing import Any

from kube.port import Json
from model.crds import all_crds
from tests.cluster import crds
from tests.cluster.assets import Assets
from tests.cluster.control_plane import KUBEVIRT_CONTROLLER, ControlPlane
from tests.cluster.control_plane import start as start_plane
from tests.cluster.processes import free_ports, wait_for
from tests.cluster.rest import Rest
from tests.kubevirt.assets import KubeVirt
from tests.recordings.recording import H100

NAMESPACE = "kubevirt"
RESOURCES = (H100, *(f"nvidia.com/STORY_{number}" for number in range(1, 65)))
"""What VMs may ask for: KubeVirt refuses a device that its configuration does not name."""
LIMIT_S = 120.0
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_PATHS = {
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "ClusterRole": f"{_RBAC}/clusterroles",
    "ClusterRoleBinding": f"{_RBAC}/clusterrolebindings",
    "Role": f"{_RBAC}/namespaces/{{namespace}}/roles",
    "RoleBinding": f"{_RBAC}/namespaces/{{namespace}}/rolebindings",
}
_LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/virt-controller"


def start(assets: Assets, kubevirt: KubeVirt) -> ControlPlane:
    """All of it, ready; raises ProcessDied or NotReady, and keeps the logs then."""
    objects = kubevirt.objects()
    theirs = [each for each in objects if each["kind"] == "CustomResourceDefinition"]
    plane = start_plane(assets, [*theirs, *crds.cozystack(), *all_crds()])
    try:
        _install(plane.rest(), [each for each in objects if each["kind"] in _PATHS])
        start_controller(plane, kubevirt)
    except BaseException:
        plane.stop(keep_logs=True)
        raise
    return plane


def start_controller(plane: ControlPlane, kubevirt: KubeVirt) -> None:
    """virt-controller, until it leads."""
    began = time.time()
    (port,) = free_ports(1)
    # A folder of their own: virt-controller looks at them again whenever something beside them changes, and
    # says so in its log, which would be beside them.
    (plane.folder / "tls").mkdir(exist_ok=True)
    plane.openssl(
        *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=virt-controller", "-days", "2"),
        *("-keyout", "tls/tls.key", "-out", "tls/tls.crt"),
    )
    plane.run(
        kubevirt.controller,
        *("--kubeconfig", str(plane.kubeconfig(KUBEVIRT_CONTROLLER))),
        *("--launcher-image", "virt-launcher", "--exporter-image", "virt-exportserver"),
        *("--listen", "127.0.0.1", "--port", str(port)),
        *("--prom-cert-file", "tls/tls.crt", "--prom-key-file", "tls/tls.key"),
    )
    rest = plane.rest()
    wait_for("virt-controller", lambda: _leads(rest, began), plane.processes, LIMIT_S)


def _leads(rest: Rest, since_s: float) -> bool:
    if not rest.exists(_LEASE):
        return False
    spec: dict[str, Any] = rest.request("GET", _LEASE)["spec"]
    renewed = time.strptime(spec["renewTime"].partition(".")[0] + " UTC", "%Y-%m-%dT%H:%M:%S %Z")
    return bool(spec["holderIdentity"]) and calendar.timegm(renewed) >= int(since_s)


def _install(rest: Rest, objects: list[Json]) -> None:
    rest.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    for body in objects:
        rest.request("POST", _PATHS[body["kind"]].format(namespace=NAMESPACE), body)
    rest.request("POST", f"/apis/kubevirt.io/v1/namespaces/{NAMESPACE}/kubevirts", _configuration())


def _configuration() -> Json:
    devices = [
        {"pciVendorSelector": f"10DE:{number:04X}", "resourceName": name, "externalResourceProvider": True}
        for number, name in enumerate(RESOURCES)
    ]
    configuration = {
        "developerConfiguration": {"featureGates": ["GPU", "HostDevices"]},
        "permittedHostDevices": {"pciHostDevices": devices},
    }
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "KubeVirt",
        "metadata": {"name": "kubevirt", "namespace": NAMESPACE},
        "spec": {"configuration": configuration},
    }
