"""The handed cases about placement, refusal, pins, taints, volumes, counting and budgets (docs/cases.md)."""

from __future__ import annotations

from typing import Any

import pytest

from binder.core.nodes import tolerates
from binder.core.pin import pin_patch
from model.decisions import DeletePod, PinLauncher
from model.meta import Lean
from model.nodes import Node
from model.pods import Pod
from model.reasons import Reason
from model.storage import PersistentVolume, StorageClass
from model.taints import Taint, Toleration
from tests.binder.cases_on_disk import (
    case_nodes,
    claim_of,
    cluster_of,
    eligible,
    load,
    moved,
    objects_of,
    read,
    resources_of,
    vms_of,
    with_terms,
)
from tests.binder.deciding import Binder, bound_to, decide, kinds_of, placed_on, reason_of
from tests.builders import (
    gpu_class,
    launcher,
    node,
    pinned_launcher,
    raw_pod,
    running_vm,
    started_vm,
    state,
    template_claim,
    vm,
    vmi,
)

A10 = "nvidia.com/GA102GL_A10"


def pods_in(objects: list[Lean]) -> list[Pod]:
    return [one for one in objects if isinstance(one, Pod)]


@pytest.mark.parametrize("case", ["008", "024", "030", "032", "037", "046"])
def test_eligible_nodes_are_those_of_the_case(case: str) -> None:
    """R8: allocatable, a consumer's volume, ORed terms of a volume, ended pods, overhead, exact names."""
    objects = objects_of(case)
    local = {
        "metadata": {"name": "local-wffc"},
        "provisioner": "csi.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    objects.append(StorageClass.model_validate(local))
    assert eligible(objects, resources_of(case)) == load(case, "expected.yaml")["eligibleNodes"]


def test_001_refused_vm_goes_to_the_other_node_whatever_its_pod_and_vmi() -> None:
    """R13, R14."""
    objects, expected = objects_of("001"), load("001", "expected.yaml")
    refused, again = pods_in(objects)
    nodes = [one for one in objects if isinstance(one, Node)]
    pinned = with_pin(refused, refused.spec.node_name)
    binder = Binder()
    first = binder.passes(cluster_of([*nodes, pinned], [A10]), claim_of(refused, "gpu-a", A10))
    assert kinds_of(first) == [DeletePod]
    second = binder.passes(cluster_of([*nodes, again], [A10]))
    assert [placed_on(second)["tenant-a/vm1"]] == expected["eligibleNodes"]
    other = cluster_of([*nodes, again, raw_pod("r", "gpu-b", 2, resource=A10)], [A10])
    assert reason_of(binder.passes(other)) is Reason.NO_ROOM


def with_pin(pod: Pod, name: str) -> Pod:
    """The launcher as the pin left it."""
    raw = pod.model_dump(by_alias=True)
    field = {"key": "metadata.name", "operator": "In", "values": [name]}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    affinity = raw["spec"]["affinity"] or {"nodeAffinity": {required: {"nodeSelectorTerms": [{}]}}}
    affinity["nodeAffinity"][required]["nodeSelectorTerms"][0]["matchFields"] = [field]
    raw["spec"]["affinity"] = affinity
    return Pod.model_validate(raw)


@pytest.mark.parametrize("row", load("002", "table.yaml"), ids=lambda row: row["id"])
def test_002_status_that_is_a_refusal(row: dict[str, Any]) -> None:
    """R13, R15: by phase, reason and what had started; never by the message."""
    binder, held = Binder(), template_claim(node="gpu-1")
    if row.get("seenRunningBefore"):
        binder.passes(state(node(), gpu_class(), *running_vm()), held)
    is_bound = row["status"]["phase"] != "Pending"
    pod = pinned_launcher(node="gpu-1" if is_bound else "", status=row["status"])
    result = binder.passes(state(node(), gpu_class(), vm(), vmi(), pod), held)
    assert (DeletePod in kinds_of(result)) is row["refused"]


def test_004_node_label_that_flaps_under_a_running_vm_strands_nobody() -> None:
    """R8b, R15, R26: the pod had run; the label decides alone, and its return places the VM."""
    events, binder = [read(event["object"]) for event in load("004", "events.yaml")], Binder()
    shown: dict[tuple[type, str], Lean] = {}
    results = []
    for event in events:
        shown[type(event), event.metadata.name] = event  # type: ignore[attr-defined]
        old_pod = shown.get((Pod, "virt-launcher-vm1-aaaaa"))
        alive = [o for o in shown.values() if o is not old_pod or not is_replaced(shown)]
        live = [claim_of(old_pod, "gpu-a", A10)] if old_pod and not is_replaced(shown) else []
        results.append(binder.passes(cluster_of(alive, [A10]), *live, after_s=1))
    assert [placed_on(result) for result in results[:5]] == [{}] * 5
    assert reason_of(results[4]) is Reason.POD_CONSTRAINTS
    assert placed_on(results[5]) == {"tenant-a/vm1": "gpu-a"}
    assert binder.memory.rejections == {}


def is_replaced(shown: dict[tuple[type, str], Lean]) -> bool:
    """Whether the next launcher has come: the old VMI is gone then."""
    return (Pod, "virt-launcher-vm1-ccccc") in shown


def test_005_refusals_by_every_node_end_with_time_or_a_change_of_the_node() -> None:
    """R13: and the VM that waits stops no other."""
    binder = Binder()
    nodes = [node(name, 2, resource=A10) for name in ("gpu-a", "gpu-b")]
    for at_s, name in ((0, "gpu-a"), (5, "gpu-b")):
        uid = f"pod-{name}"
        pod = pinned_launcher(
            "vm1", name, node=name, resource=A10, uid=uid, status={"phase": "Failed", "reason": f"OutOf{A10}"}
        )
        binder.passes(state(*nodes, gpu_class("a", A10), vm(), vmi(pods=[uid]), pod), after_s=at_s)
    gated = (vm(), vmi(uid="third"), launcher(resource=A10, vmi_uid="third"))
    waiting = state(*nodes, node("h"), gpu_class("a", A10), gpu_class(), *gated, *started_vm("other"))
    result = binder.passes(waiting, after_s=5)
    assert placed_on(result) == {"default/other": "h"}
    assert reason_of(result) is Reason.NODES_REFUSED
    assert result.wake_at_ms == binder.now_ms - 10_000 + 600_000
    changed = (node("gpu-a", 1, resource=A10), nodes[1])
    back = binder.passes(state(*changed, gpu_class("a", A10), *gated), after_s=60)
    assert placed_on(back) == {"default/vm1": "gpu-a"}


def test_006_device_plugin_that_restarts_moves_nobody_and_wakes_who_waits() -> None:
    """R20, R26: allocatable 4, 0, 4 under three running VMs."""
    binder, shown = Binder(), dict[tuple[type, str], Lean]()
    results = []
    for event in load("006", "events.yaml"):
        one = read(event["object"])
        shown[type(one), one.metadata.name] = one  # type: ignore[attr-defined]
        running = [o for o in shown.values() if isinstance(o, Pod) and o.spec.node_name]
        claims = [claim_of(pod, "gpu-a", A10) for pod in running]
        results.append(binder.passes(cluster_of(shown.values(), [A10]), *claims, after_s=10))
    assert [bound_to(result) for result in results[:-1]] == [{}] * (len(results) - 1)
    assert placed_on(results[-1]) == {"tenant-a/vm9": "gpu-a"}
    assert binder.memory.rejections == {}


def test_008_free_is_what_allocatable_leaves_not_capacity() -> None:
    """R8e: gpu-b has 2, not 3."""
    objects = objects_of("008")
    taken = raw_pod("r", "gpu-b", 2, resource=A10)
    assert eligible([*objects, taken], [A10]) == []


def test_009_end_of_a_pod_is_room_though_allocatable_never_changed() -> None:
    """R26."""
    objects, resources = objects_of("009"), resources_of("009")
    held = claim_of(pods_in(objects)[0], "gpu-a", resources[0])
    assert reason_of(decide(cluster_of(objects, resources), held)) is Reason.NO_ROOM
    left = [one for one in objects if one is not pods_in(objects)[0]]
    assert placed_on(decide(cluster_of(left, resources))) == {"tenant-a/vm2": "gpu-a"}


def test_011_resource_names_are_exact() -> None:
    """R8e: no guess by prefix or case; the class that is corrected finds its node."""
    objects = objects_of("011")
    assert case_nodes("011") == load("011", "expected.yaml")["eligibleNodes"]
    (pod,) = pods_in(objects)
    for name, nodes in load("011", "expected.yaml")["ifClassNames"].items():
        raw = pod.model_dump(by_alias=True)
        raw["spec"]["containers"][0]["resources"]["requests"] = {name: "1"}
        renamed = [Pod.model_validate(raw) if one is pod else one for one in objects]
        assert eligible(renamed, [name]) == nodes


@pytest.mark.parametrize("row", load("012", "expected.yaml"), ids=lambda row: str(row["expression"]))
def test_012_gt_and_lt_compare_int64_as_go_does(row: dict[str, Any]) -> None:
    """R8b."""
    objects = with_terms(objects_of("012"), [{"matchExpressions": [row["expression"]]}])
    assert eligible(objects, [A10]) == row["eligibleNodes"]


@pytest.mark.parametrize("row", [*load("014", "expected.yaml"), *load("015", "expected.yaml")])
def test_014_015_terms_are_ored_and_a_bad_one_spoils_only_itself(row: dict[str, Any]) -> None:
    """R8b: an empty term matches nothing; nodeSelector and affinity both hold."""
    objects = with_terms(objects_of("014"), row["terms"], row.get("nodeSelector"))
    assert eligible(objects, [A10]) == row["eligibleNodes"]


@pytest.mark.parametrize("row", load("016", "expected.yaml"))
def test_016_match_fields_look_at_the_name(row: dict[str, Any]) -> None:
    """R8b."""
    assert eligible(with_terms(objects_of("016"), [row["term"]]), [A10]) == row["eligibleNodes"]


@pytest.mark.parametrize("case", ["018", "019"])
def test_018_019_pin_keeps_every_term_and_is_in_each(case: str) -> None:
    """R10."""
    expected = load(case, "expected.yaml")
    raw = next(one for one in load(case, "objects.yaml") if one["kind"] == "Pod")
    raw["metadata"]["resourceVersion"] = "5"
    patch = pin_patch(raw, expected["pinnedTo"], ())
    assert patch["spec"]["affinity"] == expected["affinityAfter"]
    assert patch["spec"]["schedulingGates"] == []
    if case == "019":
        assert case_nodes(case) == expected["eligibleNodes"]


@pytest.mark.parametrize("row", load("021", "expected.yaml"))
def test_021_pin_where_there_are_no_terms_leaves_the_other_affinities(row: dict[str, Any]) -> None:
    """R10: a merge patch changes only what it names."""
    spec = {"affinity": row["before"]} if row["before"] else {}
    patch = pin_patch({"metadata": {"resourceVersion": "5"}, "spec": spec}, "gpu-a", ())
    assert merged(row["before"] or {}, patch["spec"]["affinity"]) == row["after"]


def merged(old: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """RFC 7386, without null."""
    found = dict(old)
    for key, value in patch.items():
        found[key] = merged(found.get(key) or {}, value) if isinstance(value, dict) else value
    return found


def test_023_pass_after_an_answer_that_was_lost_goes_on_from_what_is() -> None:
    """R3, R10: pinned meanwhile, nothing is left to do; unchanged, the same pin again, and nothing twice."""
    held = template_claim(node="gpu-1")
    pinned = (vm(), vmi(), pinned_launcher())
    assert decide(state(node(units=1), gpu_class(), *pinned), held).decisions == ()
    result = decide(state(node(units=1), node("gpu-2", 1), gpu_class(), *started_vm("vm1")), held)
    assert kinds_of(result) == [PinLauncher]
    assert placed_on(result) == {"default/vm1": "gpu-1"}


def test_024_volume_that_waits_for_its_consumer_is_no_constraint_one_that_is_being_bound_is() -> None:
    """R8c: and no pin ever sets nodeName."""
    assert reason_of(decide(cluster_of(objects_of("024"), [A10]))) is Reason.VOLUME_PENDING
    raw = next(one for one in load("024", "objects.yaml") if one["kind"] == "Pod")
    raw["metadata"]["resourceVersion"] = "5"
    assert "nodeName" not in pin_patch(raw, "gpu-b", ())["spec"]


def test_025_pinned_pod_that_is_not_scheduled_holds_its_unit_until_it_goes() -> None:
    """R13 (ii), R26: no patch is tried again; after two minutes it is placed afresh elsewhere."""
    objects, binder = objects_of("025"), Binder()
    held = claim_of(pods_in(objects)[0], "gpu-a", A10)
    assert binder.passes(cluster_of(objects, [A10]), held).decisions == ()
    rival = [moved(one, "tenant-b") for one in started_vm("x", resource=A10)]
    result = binder.passes(cluster_of(objects, [A10]), held, after_s=120)
    assert kinds_of(result) == [DeletePod]
    both = state(*objects, *vms_of(objects), *rival, gpu_class("a", A10))
    assert placed_on(decide(both, held)).get("tenant-b/x") != "gpu-a"


TAINTS = {name: Taint.model_validate(taint) for name, taint in load("026", "table.yaml")["taints"].items()}


@pytest.mark.parametrize("row", load("026", "table.yaml")["rows"], ids=lambda row: str(row["toleration"]))
def test_026_toleration_tolerates(row: dict[str, Any]) -> None:
    """R8a."""
    toleration = Toleration.model_validate(row["toleration"])
    assert {name: tolerates(toleration, taint) for name, taint in TAINTS.items()} == row["tolerates"]


def test_027_taint_of_a_gpu_node_is_tolerated_by_the_class() -> None:
    """R8a, R10: what the class tolerates its launchers are given (decision 0033)."""
    tolerations = [{"key": A10, "operator": "Exists", "effect": "NoSchedule"}]
    expected = load("027", "expected.yaml")["eligibleNodes"]
    assert case_nodes("027", tolerations=tolerations) == expected
    alone = [one for one in objects_of("027") if not isinstance(one, Node) or one.metadata.name == "gpu-a"]
    result = decide(cluster_of(alone, [A10], tolerations=tolerations))
    assert reason_of(result) is Reason.CLASS_CONSTRAINTS
    assert "1 not accepted by the class (taint" in result.waiting[0].message


def test_031_two_disks_without_a_common_node_are_the_reason() -> None:
    """R8c: and a volume that the log has not told of yet is waited for."""
    objects = objects_of("031")
    assert reason_of(decide(cluster_of(objects, [A10]))) is Reason.VOLUME_UNREACHABLE
    unknown = [o for o in objects if not isinstance(o, PersistentVolume) or o.metadata.name != "pv-data"]
    assert reason_of(decide(cluster_of(unknown, [A10]))) is Reason.VOLUME_PENDING
