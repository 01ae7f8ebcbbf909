"""Whole objects in the shapes in which the API returns them: cases 047, 048, 049, 053 and the recordings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binder.core.launchers import controller_uid, is_launcher_of
from model.kinds import BY_KIND
from model.kubevirt import VirtualMachineInstance
from model.lean import Malformed, lean_object
from model.nodes import Node
from model.pods import Pod
from model.requests import allocatable_units, effective_request
from model.resource_names import is_extended
from tests.model.cases_on_disk import load

RECORDINGS = sorted((Path(__file__).parents[1] / "recordings" / "data").glob("*.ndjson"))
SECRET = "s3cr3t-planted"


def read(kind: str, raw: Any) -> Any:
    """The object as it is after a way through the log."""
    watched = BY_KIND[kind]
    return watched.model.model_validate_json(lean_object(watched.model, watched.prune, raw))


def recorded(kind: str) -> Iterator[Any]:
    for path in RECORDINGS:
        for line in path.read_text(encoding="utf-8").splitlines():
            event = json.loads(line)
            if event["kind"] == kind and "name" in event["object"]["metadata"]:
                yield event["object"]


def test_gpu_node_gives_its_extended_resources_and_exact_amounts() -> None:
    """Case 047: `1k`, milli-cores, bytes beside Ki, empty labels, no taints, resources at zero."""
    node: Node = read("Node", load("047", "node.json"))
    expected = load("047", "expected.yaml")
    units = allocatable_units(node.status.allocatable)
    assert {name: n for name, n in units.items() if is_extended(name)} == expected["extended"]
    assert units["cpu"] == float(expected["cpu"]) * 1000
    assert units["memory"] == expected["memoryBytes"]
    assert node.metadata.labels["node-role.kubernetes.io/worker"] == ""
    assert (node.spec.taints, node.spec.unschedulable, node.is_ready) == ((), False, True)


def test_launcher_and_vmi_agree_on_owner_gpus_and_disks() -> None:
    """Case 048."""
    expected = load("048", "expected.yaml")
    pod: Pod = read("Pod", load("048", "pod.yaml"))
    vmi: VirtualMachineInstance = read("VirtualMachineInstance", load("048", "vmi.yaml"))
    assert controller_uid(pod.metadata, "VirtualMachineInstance") == expected["vmiUid"] == vmi.metadata.uid
    request = effective_request(pod)
    assert {name: request[name] for name in expected["gpus"]} == expected["gpus"]
    gpus = [gpu.device_name for gpu in vmi.spec.domain.devices.gpus]
    assert {name: gpus.count(name) for name in gpus} == expected["gpus"]
    claims = [v.persistent_volume_claim.claim_name for v in pod.spec.volumes if v.persistent_volume_claim]
    assert claims == expected["pvcs"]
    assert pod.is_gated is expected["gated"]
    assert pod.spec.node_selector == expected["nodeSelector"]


def test_vm_is_found_by_owner_never_by_name_label() -> None:
    """Case 049: two launchers with the same name label."""
    for name, owner in load("049", "expected.yaml").items():
        (raw,) = (one for one in load("049", "objects.yaml") if one["metadata"]["name"] == name)
        pod: Pod = read("Pod", raw)
        vmi = VirtualMachineInstance.model_validate(
            {
                "metadata": {"name": owner["vmi"], "namespace": "tenant-a", "uid": owner["uid"]},
                "status": {"activePods": {pod.metadata.uid: ""}},
            }
        )
        assert is_launcher_of(pod, vmi)
        other = vmi.model_copy(update={"metadata": vmi.metadata.model_copy(update={"uid": "another"})})
        assert not is_launcher_of(pod, other)


def test_gpu_of_a_dra_claim_is_no_extended_resource() -> None:
    """Case 053: an entry without deviceName."""
    expected = load("053", "expected.yaml")
    vmi: VirtualMachineInstance = read("VirtualMachineInstance", load("053", "vmi.yaml"))
    named = [gpu.device_name for gpu in vmi.spec.domain.devices.gpus if gpu.device_name]
    assert {name: named.count(name) for name in named} == expected["extendedResources"]
    ignored = [gpu.name for gpu in vmi.spec.domain.devices.gpus if not gpu.device_name]
    assert ignored == expected["ignored"]


@pytest.mark.parametrize("kind", ["Node", "Pod", "VirtualMachine", "VirtualMachineInstance"])
def test_every_recorded_object_is_read_and_lean(kind: str) -> None:
    count = 0
    for raw in recorded(kind):
        watched = BY_KIND[kind]
        body = lean_object(watched.model, watched.prune, raw)
        assert len(body) < len(orjson.dumps(raw))
        assert watched.model.model_validate_json(body).metadata.name == raw["metadata"]["name"]  # type: ignore[attr-defined]
        count += 1
    assert count > 20


@pytest.mark.parametrize("kind", ["Pod", "VirtualMachine", "VirtualMachineInstance"])
def test_secrets_planted_where_we_do_not_read_stay_out(kind: str) -> None:
    """Env, commands, arguments, foreign annotations, cloud-init, volume sources, messages."""
    raw = next(iter(recorded(kind)))
    for spec in (raw["spec"], raw["spec"].get("template", {}).get("spec", {})):
        for container in spec.get("containers", []):
            container |= {"env": [{"name": "X", "value": SECRET}], "command": [SECRET], "args": [SECRET]}
        spec["volumes"] = [
            {"name": "ci", "cloudInitNoCloud": {"userData": SECRET}},
            {"name": "s", "secret": SECRET},
        ]
        spec["accessCredentials"] = [{"sshPublicKey": SECRET}]
    raw["metadata"]["annotations"] = {"example.com/token": SECRET, "gpu.cozystack.io/claims": "a"}
    raw["metadata"]["managedFields"] = [{"manager": SECRET}]
    raw["status"] = {"message": SECRET, "conditions": [{"type": "Ready", "message": SECRET}]}
    watched = BY_KIND[kind]
    body = lean_object(watched.model, watched.prune, raw)
    assert SECRET.encode() not in body
    assert b"gpu.cozystack.io/claims" in body


def test_objects_of_broken_clients_are_read_as_far_as_they_go() -> None:
    """Nulls, numbers as labels and quantities, missing status."""
    raw = {
        "metadata": {"name": "n", "uid": "u", "labels": {"a": 1, "b": None, "c": ["x"]}, "finalizers": None},
        "spec": None,
        "status": {"allocatable": {"nvidia.com/gpu": 2, "cpu": "four", "memory": None}, "conditions": None},
    }
    node: Node = read("Node", raw)
    assert allocatable_units(node.status.allocatable) == {"nvidia.com/gpu": 2}
    assert node.metadata.labels == {"a": "1"}
    assert not node.is_ready


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        ("Node", {"metadata": {"name": "n"}, "spec": ["x"]}),
        ("Pod", {"metadata": {"name": "p"}, "spec": {"containers": {"a": 1}}}),
        ("Pod", "text"),
        ("GPUClaim", {"metadata": {"name": "c"}, "spec": {"className": "h100", "units": 2**63}}),
        ("GPUClaim", {"metadata": {"name": "c"}, "spec": {"units": 1}}),
        ("GPUClass", {"metadata": {"name": "c"}}),
    ],
)
def test_object_of_another_shape_is_malformed_and_says_where(kind: str, raw: Any) -> None:
    with pytest.raises(Malformed):
        read(kind, raw)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
shapes = st.fixed_dictionaries(
    {"metadata": json_values, "spec": json_values, "status": json_values},
)


@given(st.sampled_from(sorted(BY_KIND)), shapes)
def test_any_json_is_read_or_malformed(kind: str, raw: Any) -> None:
    try:
        read(kind, raw)
    except Malformed:
        return
