"""The launcher that virt-controller makes, beyond what the recordings show."""

from __future__ import annotations

from kube.port import Json
from simulator.actors.launcher_pod import launcher_pod

A10 = "nvidia.com/GA102GL_A10"
HOST_MODEL = {"key": "node-labeller.kubevirt.io/obsolete-host-model", "operator": "DoesNotExist"}


def vmi(name: str = "vm1", *, devices: Json | None = None, meta: Json | None = None, **spec: object) -> Json:
    """A VMI with a memory of 4Gi."""
    domain = {"devices": devices or {}, "memory": {"guest": "4Gi"}}
    return {
        "metadata": {"name": name, "namespace": "tenant-a", "uid": f"vmi-{name}", **(meta or {})},
        "spec": {"domain": domain, **spec},
    }


def compute(pod: Json) -> Json:
    first: Json = pod["spec"]["containers"][0]
    assert first["name"] == "compute"
    return first["resources"]


def test_devices_of_one_name_are_summed_on_the_compute_container() -> None:
    """048: gpus and hostDevices, in requests and limits."""
    devices = {
        "gpus": [{"name": "g1", "deviceName": A10}, {"name": "g2", "deviceName": A10}],
        "hostDevices": [{"name": "q1", "deviceName": "intel.com/qat"}],
    }
    resources = compute(launcher_pod(vmi(devices=devices)))
    for side in ("requests", "limits"):
        assert (resources[side][A10], resources[side]["intel.com/qat"]) == ("2", "1")


def test_device_of_a_resource_claim_is_no_extended_resource() -> None:
    """053."""
    gpus = [
        {"name": "g1", "claimName": "gpu-claim", "requestName": "gpu"},
        {"name": "g2", "deviceName": A10},
    ]
    claims = [{"name": "gpu-claim", "resourceClaimTemplateName": "pgpu"}]
    pod = launcher_pod(vmi(devices={"gpus": gpus}, resourceClaims=claims))
    extended = {name for name in compute(pod)["requests"] if name.startswith("nvidia.com/")}
    assert (extended, compute(pod)["requests"][A10]) == ({A10}, "1")
    assert pod["spec"]["resourceClaims"] == claims


def test_labels_of_two_vms_with_one_hostname_are_the_same_but_for_the_uid() -> None:
    """049: the name label is the hostname, at most 63 characters; the owner tells whose it is."""
    long_name = "research-team-blue-llm-inference-vm-with-a-very-long-name-0000000001"
    one, other = (launcher_pod(vmi(name, hostname="guest-a")) for name in (long_name, "other-vm"))
    assert one["metadata"]["labels"]["vm.kubevirt.io/name"] == "guest-a"
    assert other["metadata"]["labels"]["vm.kubevirt.io/name"] == "guest-a"
    assert one["metadata"]["labels"]["kubevirt.io/created-by"] == f"vmi-{long_name}"
    assert one["metadata"]["ownerReferences"][0]["name"] == long_name
    assert all(
        len(value) <= 63 for value in one["metadata"]["labels"].values() if value != f"vmi-{long_name}"
    )


def test_annotations_of_the_vmi_go_along_and_can_pass_for_kubevirts_own() -> None:
    """Why an annotation proves nothing about who made a pod."""
    given = {
        "gpu.cozystack.io/claims": "a,b",
        "kubevirt.io/domain": "another",
        "kubectl.kubernetes.io/x": "y",
    }
    annotations = launcher_pod(vmi(meta={"annotations": given}))["metadata"]["annotations"]
    assert annotations["gpu.cozystack.io/claims"] == "a,b"
    assert annotations["kubevirt.io/domain"] == "another"
    assert "kubectl.kubernetes.io/x" not in annotations


def test_labels_of_the_vmi_never_pass_for_kubevirts_own() -> None:
    forged = {"kubevirt.io/created-by": "another", "app": "web"}
    labels = launcher_pod(vmi(meta={"labels": forged}))["metadata"]["labels"]
    assert (labels["kubevirt.io/created-by"], labels["app"]) == ("vmi-vm1", "web")


def test_kubevirts_expression_stands_in_every_term_of_the_vmi() -> None:
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [z]}]} for z in ("a", "b")]
    given = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    spec = launcher_pod(vmi(affinity=given, nodeSelector={"rack": "7"}))["spec"]
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    want = [{"matchExpressions": [*term["matchExpressions"], HOST_MODEL]} for term in terms]
    assert required["nodeSelectorTerms"] == want
    assert spec["nodeSelector"]["rack"] == "7"


def test_disks_on_claims_become_volumes_unless_they_are_hotplugged() -> None:
    volumes = [
        {"name": "root", "persistentVolumeClaim": {"claimName": "vm1-root"}},
        {"name": "data", "dataVolume": {"name": "vm1-data"}},
        {"name": "later", "persistentVolumeClaim": {"claimName": "vm1-later", "hotpluggable": True}},
        {"name": "init", "cloudInitNoCloud": {"userData": "secret"}},
    ]
    pod = launcher_pod(vmi(volumes=volumes))
    sources = [v["persistentVolumeClaim"] for v in pod["spec"]["volumes"] if "persistentVolumeClaim" in v]
    assert [source["claimName"] for source in sources] == ["vm1-root", "vm1-data"]


def test_what_the_vmi_asks_for_itself_stands_over_what_is_calculated() -> None:
    one = vmi(devices={"gpus": [{"name": "g1", "deviceName": A10}]}, tolerations=[{"key": "gpu"}])
    one["spec"]["domain"]["resources"] = {"requests": {A10: "3", "memory": "9Gi"}, "limits": {A10: "3"}}
    pod = launcher_pod(one)
    assert (compute(pod)["requests"][A10], compute(pod)["requests"]["memory"]) == ("3", "9Gi")
    assert pod["spec"]["tolerations"] == [{"key": "gpu"}]
