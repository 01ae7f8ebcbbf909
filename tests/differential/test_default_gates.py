"""What the API server of this version serves by default, as far as our reading of pods rests on it."""

from __future__ import annotations

import json
import urllib.error

import pytest

from model.claims import GPUClass
from tests.cluster.control_plane import ControlPlane
from tests.cluster.fixtures import control_plane

__all__ = ["control_plane"]
pytestmark = [pytest.mark.envtest, pytest.mark.allow_hosts(["127.0.0.1"])]


def test_server_takes_no_numeric_tolerations_so_a_class_has_none(control_plane: ControlPlane) -> None:
    """Decision 0020. A pin with one would be refused whole; where a server serves them, this test says so."""
    numeric = {"key": "tier", "operator": "Gt", "value": "3"}
    pod = {
        "metadata": {"name": "numeric"},
        "spec": {"containers": [{"name": "c", "image": "x"}], "tolerations": [numeric]},
    }
    with pytest.raises(urllib.error.HTTPError) as refused:
        control_plane.rest().request("POST", "/api/v1/namespaces/default/pods", pod)
    assert refused.value.code == 422
    assert "Unsupported value" in json.loads(refused.value.read())["message"]
    refused.value.close()
    spec = {"resourceName": "nvidia.com/gpu", "tolerations": [numeric]}
    assert GPUClass.model_validate({"spec": spec}).spec.tolerations == ()
