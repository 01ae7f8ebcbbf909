"""Which nodes volumes reach (R8c): bound, unbound, half bound, lost, leaving, hotplugged, rivals for one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binder.core.launchers import Launcher
from binder.core.nodes import selector_matches
from binder.core.sets import Obstacle
from binder.core.volumes import SELECTED_NODE, volume_reach
from model.kubevirt import VirtualMachineInstance
from model.meta import Lean
from model.reasons import Reason
from model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from tests.builders import AT, launcher, node, state

Json = dict[str, Any]
ZONE, OLD_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
NODES = {
    "gpu-a": node("gpu-a", labels={ZONE: "a", "host": "a", "tier": "gold"}),
    "gpu-b": node("gpu-b", labels={ZONE: "b", "host": "b"}),
    "gpu-c": node("gpu-c", labels={"host": "c"}),
}
FIELD = [{"key": "metadata.name", "operator": "In", "values": ["gpu-a"]}]
ALL = ("gpu-a", "gpu-b", "gpu-c")


def claim(name: str = "disk", phase: str = "Bound", **spec: Any) -> PersistentVolumeClaim:
    meta: Json = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    for field in ("annotations", "deletionTimestamp", "ownerReferences"):
        if field in spec:
            meta[field] = spec.pop(field)
    spec.setdefault("resources", {"requests": {"storage": "5Gi"}})
    return PersistentVolumeClaim.model_validate({"metadata": meta, "spec": spec, "status": {"phase": phase}})


def volume(name: str = "pv", *hosts: str, phase: str = "Bound", **spec: Any) -> PersistentVolume:
    """A volume that the nodes of these hosts reach; every one without."""
    labels = spec.pop("labels", {})
    if hosts:
        terms = [{"matchExpressions": [{"key": "host", "operator": "In", "values": list(hosts)}]}]
        spec.setdefault("nodeAffinity", {"required": {"nodeSelectorTerms": terms}})
    meta = {"name": name, "labels": labels}
    return PersistentVolume.model_validate({"metadata": meta, "spec": spec, "status": {"phase": phase}})


def free(name: str, *hosts: str, size: str = "10Gi", **spec: Any) -> PersistentVolume:
    """A free volume of the class `local`."""
    wanted = {"storageClassName": "local", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}}
    return volume(name, *hosts, phase=spec.pop("phase", "Available"), **wanted | spec)


def storage_class(
    name: str, mode: str = "WaitForFirstConsumer", *topologies: Json, **more: Any
) -> StorageClass:
    made = {"metadata": {"name": name}, "volumeBindingMode": mode, "provisioner": "example.com/disk"}
    return StorageClass.model_validate(made | {"allowedTopologies": list(topologies)} | more)


LOCAL = storage_class("local", provisioner="kubernetes.io/no-provisioner")


def reach_of(*objects: Lean, disks: tuple[str, ...] = ("disk",), vmi: Json | None = None) -> Any:
    pod = launcher(volumes=[{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in disks])
    guest = VirtualMachineInstance.model_validate(vmi or {})
    return volume_reach(Launcher(pod, guest), state(*objects))


def nodes_of(*objects: Lean, disks: tuple[str, ...] = ("disk",), vmi: Json | None = None) -> tuple[str, ...]:
    """The nodes that the launcher's volumes reach."""
    reach = reach_of(*objects, disks=disks, vmi=vmi)
    assert not isinstance(reach, Obstacle), reach.message
    return tuple(name for name, one in NODES.items() if all(selector_matches(part, one) for part in reach))


def host(operator: str, *names: str) -> Json:
    return {"key": "host", "operator": operator, "values": list(names)}


def asks(storage: str) -> Json:
    return {"requests": {"storage": storage}}


def unbound(name: str = "disk", class_name: str = "local", **spec: Any) -> PersistentVolumeClaim:
    return claim(name, "Pending", storageClassName=class_name, accessModes=["ReadWriteOnce"], **spec)


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ([], "does not exist"),
        ([claim(volumeName="pv", phase="Lost")], "has lost its PersistentVolume pv"),
        ([claim(volumeName="pv", deletionTimestamp=AT)], "is being deleted"),
        ([claim(volumeName="pv", phase="Pending")], "is not bound to PersistentVolume pv yet"),
        ([claim(volumeName="gone")], "is bound to PersistentVolume gone, which does not exist"),
        ([claim(phase="Pending", storageClassName="now")], "is not bound"),
        ([claim(phase="Pending", storageClassName="none")], "is not bound"),
        ([claim(phase="Pending")], "is not bound"),
    ],
)
def test_claim_that_cannot_say_keeps_every_node_away(claims: list[Lean], why: str) -> None:
    """The launcher stays gated: its pin could not be taken back."""
    got = reach_of(*claims, volume(), storage_class("now", "Immediate"))
    assert got == Obstacle(Reason.VOLUME_PENDING, f"PersistentVolumeClaim default/disk {why}")


def test_bound_claim_allows_the_nodes_of_its_volume() -> None:
    """Case 030: terms are ORed."""
    terms = [{"matchExpressions": [{"key": "host", "operator": "In", "values": [h]}]} for h in "ac"]
    either = volume("pv", nodeAffinity={"required": {"nodeSelectorTerms": terms}})
    assert nodes_of(claim(volumeName="pv"), either) == ("gpu-a", "gpu-c")
    assert nodes_of(claim(volumeName="pv"), volume()) == ALL


def test_two_disks_need_a_common_node() -> None:
    """Case 031."""
    objects = [claim("one", volumeName="pv-1"), claim("two", volumeName="pv-2"), volume("pv-1", "a", "b")]
    assert nodes_of(*objects, volume("pv-2", "b", "c"), disks=("one", "two")) == ("gpu-b",)
    assert nodes_of(*objects, volume("pv-2", "c"), disks=("one", "two")) == ()


def test_fields_of_a_volumes_affinity_are_passed_over() -> None:
    """The scheduler shows it the node's labels only: a term of nothing but fields always matches."""
    name = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gpu-a"]}]}
    host = {"matchExpressions": [{"key": "host", "operator": "In", "values": ["b"]}]}
    for terms, wanted in (([name], ALL), ([{**name, **host}], ("gpu-b",)), ([{}], ())):
        kept = volume("pv", nodeAffinity={"required": {"nodeSelectorTerms": terms}})
        assert nodes_of(claim(volumeName="pv"), kept) == wanted


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        ({ZONE: "a"}, ("gpu-a", "gpu-c")),
        ({ZONE: "a__b"}, ALL),
        ({ZONE: "z"}, ("gpu-c",)),
        ({OLD_ZONE: "b"}, ("gpu-b", "gpu-c")),
        ({"topology.kubernetes.io/region": "r"}, ("gpu-c",)),
        ({ZONE: "a__"}, ALL),
        ({ZONE: "a__-"}, ("gpu-a", "gpu-c")),
    ],
    ids=str,
)
def test_zone_labels_of_a_volume_keep_nodes_of_other_zones_away(
    labels: Json, wanted: tuple[str, ...]
) -> None:
    """A node without any zone or region is not kept away, nor is one by a label that cannot be read."""
    assert nodes_of(claim(volumeName="pv"), volume(labels=labels)) == wanted


def test_hotplugged_disks_of_the_vmi_count_as_well() -> None:
    plugged = {
        "spec": {
            "volumes": [{"name": "x", "persistentVolumeClaim": {"claimName": "x", "hotpluggable": True}}]
        }
    }
    data = {"spec": {"volumes": [{"name": "x", "dataVolume": {"name": "x", "hotpluggable": True}}]}}
    for vmi in (plugged, data):
        assert nodes_of(claim("x", volumeName="pv"), volume("pv", "b"), disks=(), vmi=vmi) == ("gpu-b",)


def test_claim_that_is_made_for_a_pod_must_be_its_own() -> None:
    template = {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}
    pod = launcher(volumes=[{"name": "tmp", "ephemeral": template}])
    name = f"{pod.metadata.name}-tmp"
    for uid, is_own in ((pod.metadata.uid, True), ("another", False)):
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": True}
        made = claim(name, volumeName="pv", ownerReferences=[owner])
        reach = volume_reach(Launcher(pod, VirtualMachineInstance()), state(made, volume()))
        assert isinstance(reach, Obstacle) is not is_own
        if isinstance(reach, Obstacle):
            assert reach.message == f"PersistentVolumeClaim default/{name} was not made for this pod"


# Unbound claims that wait for their first consumer


def test_unbound_claim_allows_every_node_where_a_volume_can_be_made() -> None:
    """Case 024: with topologies only theirs, ORed; a term without conditions allows none."""
    a_gold = {"matchLabelExpressions": [{"key": ZONE, "values": ["a"]}, {"key": "tier", "values": ["gold"]}]}
    b_gold = {"matchLabelExpressions": [{"key": ZONE, "values": ["b"]}, {"key": "tier", "values": ["gold"]}]}
    host_c = {"matchLabelExpressions": [{"key": "host", "values": ["c", "d"]}]}
    waiting = unbound(class_name="late")
    assert nodes_of(waiting, storage_class("late")) == ALL
    assert nodes_of(waiting, storage_class("late", "WaitForFirstConsumer", a_gold, host_c)) == (
        "gpu-a",
        "gpu-c",
    )
    assert nodes_of(waiting, storage_class("late", "WaitForFirstConsumer", b_gold, {})) == ()


def test_where_no_volume_can_be_made_a_free_one_is_needed() -> None:
    assert nodes_of(unbound(), LOCAL) == ()
    assert nodes_of(unbound(), LOCAL, free("pv-1", "a"), free("pv-2", "c")) == ("gpu-a", "gpu-c")
    assert nodes_of(unbound(), LOCAL, free("pv-1")) == ALL


@pytest.mark.parametrize(
    "spec",
    [
        {"size": "4Gi"},
        {"size": "much"},
        {"phase": "Released"},
        {"accessModes": ["ReadOnlyMany"]},
        {"volumeMode": "Block"},
        {"storageClassName": "other"},
        {"volumeAttributesClassName": "fast"},
        {"claimRef": {"namespace": "default", "name": "another"}},
        {"claimRef": {"namespace": "default", "name": "disk", "uid": "of-an-earlier-one"}},
    ],
    ids=str,
)
def test_volume_that_does_not_fit_the_claim_is_none(spec: Json) -> None:
    assert nodes_of(unbound(), LOCAL, free("pv", "a", **spec)) == ()


def test_volume_that_is_kept_for_the_claim_need_not_be_free() -> None:
    kept = free("pv", "b", phase="", claimRef={"namespace": "default", "name": "disk"})
    assert nodes_of(unbound(), LOCAL, kept) == ("gpu-b",)


def test_selector_of_a_claim_is_on_the_volumes_labels() -> None:
    wanted = unbound(selector={"matchLabels": {"media": "ssd"}})
    volumes = free("pv-1", "a", labels={"media": "ssd"}), free("pv-2", "b", labels={"media": "disk"})
    assert nodes_of(wanted, LOCAL, *volumes) == ("gpu-a",)


def test_once_a_node_was_selected_the_volume_is_made_there() -> None:
    selected = unbound(class_name="late", annotations={SELECTED_NODE: "gpu-b"})
    assert nodes_of(selected, storage_class("late")) == ("gpu-b",)
    only_a = {"matchLabelExpressions": [{"key": ZONE, "values": ["a"]}]}
    assert nodes_of(selected, storage_class("late", "WaitForFirstConsumer", only_a)) == ()


def test_two_claims_need_two_free_volumes() -> None:
    claims = (unbound("one"), unbound("two"))
    volumes = (free("pv-1", "a", "b"), free("pv-2", "b"), free("pv-3", "c"), free("pv-4", "c"))
    assert nodes_of(*claims, LOCAL, *volumes, disks=("one", "two")) == ("gpu-b", "gpu-c")


def test_the_smaller_claim_takes_the_smallest_volume_that_fits_it() -> None:
    small = unbound("small", resources={"requests": {"storage": "1Gi"}})
    big = unbound("big", resources={"requests": {"storage": "8Gi"}})
    volumes = (free("pv-1", "a"), free("pv-2", "a", size="2Gi"), free("pv-3", "b"))
    assert nodes_of(small, big, LOCAL, *volumes, disks=("small", "big")) == ("gpu-a",)


@pytest.mark.parametrize(
    ("terms", "want"),
    [
        ([{"matchFields": FIELD}, {"matchExpressions": [host("In", "a")]}], ALL),
        ([{"matchExpressions": [host("NotIn", "a")]}], ("gpu-b", "gpu-c")),
        ([{"matchExpressions": [host("NotIn", "a")]}, {"matchExpressions": [host("NotIn", "b")]}], ALL),
        ([{"matchExpressions": [host("In", "a")]}, {"matchExpressions": [host("In", "b")]}], ALL[:2]),
        ([{}], ()),
    ],
    ids=["fields alone", "NotIn", "two NotIn", "two In", "an empty term"],
)
def test_free_volume_is_where_its_terms_say(terms: list[Json], want: tuple[str, ...]) -> None:
    """R8c: as the scheduler reads them; terms are alternatives, an empty one matches nothing."""
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}
    assert nodes_of(LOCAL, unbound(), free("pv", **affinity)) == want


def test_node_with_both_labels_is_in_the_zone_of_the_label_that_the_volume_has() -> None:
    """R8c: the newer label counts only where the node lacks the older."""
    (reach,) = reach_of(claim(volumeName="pv"), volume("pv", labels={OLD_ZONE: "a"}))
    for labels, want in (({ZONE: "a"}, True), ({ZONE: "a", OLD_ZONE: "b"}, False)):
        assert selector_matches(reach, node("n", labels=labels)) is want


def test_smaller_claim_chooses_first_whatever_their_names() -> None:
    """R8c: only one volume has the labels that it wants, and the larger one could take either."""
    small = unbound("z", resources=asks("1Gi"), selector={"matchLabels": {"x": "y"}})
    both = (free("pv-1", "a", size="10Gi", labels={"x": "y"}), free("pv-2", "a", size="12Gi"))
    assert nodes_of(LOCAL, unbound("a"), small, *both, disks=("a", "z")) == ("gpu-a",)


def test_volumes_of_one_size_are_chosen_by_name_whatever_came_first() -> None:
    """R4, R8c."""
    picky = unbound("z", selector={"matchLabels": {"x": "y"}})
    both = (free("pv-1", "a", labels={"x": "y"}), free("pv-2", "a"))
    for volumes in (both, both[::-1]):
        assert nodes_of(LOCAL, unbound("a"), picky, *volumes, disks=("a", "z")) == ()


@pytest.mark.parametrize(
    ("wanted", "spec"),
    [
        ({"resources": asks("10Gi")}, {}),
        ({"resources": {}}, {}),
        ({"resources": asks("much")}, {"capacity": {}}),
    ],
    ids=["as large", "no size", "no size that can be read"],
)
def test_volume_that_is_large_enough_serves(wanted: Json, spec: Json) -> None:
    """R8c."""
    assert nodes_of(LOCAL, unbound(**wanted), free("pv", "a", **spec)) == ("gpu-a",)


def test_first_disk_by_name_that_keeps_a_launcher_waiting_is_named() -> None:
    """R4, R12."""
    waiting = reach_of(disks=tuple("hgfedcba"))
    assert waiting.message == "PersistentVolumeClaim default/a does not exist"


def test_volume_that_is_made_of_nothing_to_wait_for_is_waited_for_by_nobody() -> None:
    """R8c: an emptyDir, a config map."""
    pod = launcher(volumes=[{"name": "scratch"}])
    assert volume_reach(Launcher(pod, VirtualMachineInstance()), state()) == ()


@pytest.mark.timeout(20)
def test_cost_is_linear_in_volumes_and_terms() -> None:
    """Local volumes have a term a node: they become one condition."""
    volumes = [free(f"pv-{number}", f"h{number}") for number in range(10_000)]
    (selector,) = reach_of(unbound(), LOCAL, *volumes)
    assert len(selector.node_selector_terms) == 1
    assert not any(selector_matches(selector, one) for one in NODES.values())


texts = st.sampled_from(["", "a", "disk", "late", "local", "pv", "5Gi", "x" * 300, "\ud800", "__", "a__b"])
terms = st.lists(
    st.fixed_dictionaries(
        {"matchExpressions": st.lists(st.fixed_dictionaries({"key": texts, "operator": texts}), max_size=2)}
    ),
    max_size=2,
)


@given(st.data())
def test_any_storage_gives_a_reach_or_a_reason(data: st.DataObject) -> None:
    draw = data.draw
    storage = {"storage": draw(texts)}
    made: list[Lean] = [
        claim(
            volumeName=draw(texts),
            storageClassName=draw(texts),
            phase=draw(texts),
            resources={"requests": storage},
        ),
        volume(
            draw(texts),
            labels={ZONE: draw(texts)},
            nodeAffinity={"required": {"nodeSelectorTerms": draw(terms)}},
            storageClassName=draw(texts),
            capacity=storage,
            claimRef={"namespace": "default", "name": draw(texts)},
        ),
        storage_class(
            draw(texts), draw(st.sampled_from(["WaitForFirstConsumer", "x"])), provisioner=draw(texts)
        ),
    ]
    reach = reach_of(*made)
    if not isinstance(reach, Obstacle):
        assert all(selector_matches(part, NODES["gpu-a"]) in (True, False) for part in reach)
