"""The way out for whoever no policy names, on a real API server (R30)."""

from __future__ import annotations

import pytest

from model.names import FINALIZER, GATE
from tests.cli.process import gpubinder
from tests.cluster.control_plane import KUBEVIRT_CONTROLLER, ControlPlane
from tests.rights.applying import as_user, enforce, plain_pod

pytestmark = [pytest.mark.envtest, pytest.mark.allow_hosts(["127.0.0.1"]), pytest.mark.timeout(120)]


def test_uninstall_by_a_cluster_admin_waits_until_the_policies_stop_nobody(own_plane: ControlPlane) -> None:
    """They go first, and the API server goes on with them for a moment: no write may meet them."""
    enforce(own_plane)
    rest, name = own_plane.rest(), "by-hand"
    rest.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    pod = plain_pod("gated", schedulingGates=[{"name": GATE}])
    path = f"/api/v1/namespaces/{name}/pods"
    rest.request("POST", path, pod, headers=as_user(KUBEVIRT_CONTROLLER.name))
    claim = {
        "apiVersion": "gpu.cozystack.io/v1alpha1",
        "kind": "GPUClaim",
        "metadata": {"name": "claim", "finalizers": [FINALIZER]},
        "spec": {"className": "none", "units": 1},
    }
    claims = f"/apis/gpu.cozystack.io/v1alpha1/namespaces/{name}/gpuclaims"
    rest.request("POST", claims, claim)
    done = gpubinder("uninstall", "--kubeconfig", str(own_plane.kubeconfig()))
    assert done.returncode == 0, done.stdout + done.stderr
    assert not rest.request("GET", f"{path}/gated")["spec"].get("schedulingGates")
    assert "finalizers" not in rest.request("GET", f"{claims}/claim")["metadata"]
