"""Who may write what (R1, R10, R28, R30), with the policies in force: each refusal, and each allowed case.

Everybody here is almighty to RBAC: what is refused, is refused by the policies alone.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from typing import Any

import pytest

from model.names import FINALIZER, GATE, LABEL_CREATED_BY, LABEL_KUBEVIRT, LABEL_LAUNCHER, LABEL_MIGRATION_JOB
from tests.cluster.control_plane import KUBEVIRT_CONTROLLER, ControlPlane
from tests.cluster.processes import wait_for
from tests.rights.applying import ALMIGHTY, as_user, enforce, plain_pod, refusal

pytestmark = [pytest.mark.envtest, pytest.mark.allow_hosts(["127.0.0.1"]), pytest.mark.timeout(120)]

Json = dict[str, Any]
TENANT, ADMIN = "tenant", "cluster-admin"
KUBEVIRT = KUBEVIRT_CONTROLLER.name
BIND, UP, UNINSTALL = (
    f"system:serviceaccount:gpubinder-system:gpubinder-{p}" for p in ("bind", "up", "uninstall")
)
KUBELET, SCHEDULER = "system:node:gpu-1", "system:kube-scheduler"
COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"
REPLICAS = "system:serviceaccount:kube-system:replicaset-controller"
UID = "11111111-2222-3333-4444-555555555555"
"""Stands for the uid of the VMI that there is: a pod whose owner is nowhere is collected at once."""
NEVER = "99999999-2222-3333-4444-555555555555"
RESOURCE = "nvidia.com/WRITERS"
PODS = "/api/v1/namespaces/writers/pods"
VMIS = "/apis/kubevirt.io/v1/namespaces/writers/virtualmachineinstances"
CLAIMS = "/apis/gpu.cozystack.io/v1alpha1/namespaces/writers/gpuclaims"
CLASSES = "/apis/gpu.cozystack.io/v1alpha1/gpuclasses"
BUDGETS = "/apis/gpu.cozystack.io/v1alpha1/gpubudgets"
DRY = "?dryRun=All"
CREATES = "creates pods with the gate"
CONTROLS = "as its controller"
LABELS = "sets or changes the labels"
UNGATES = f"takes the gate {GATE} off"
STATUS = "writes the status of"
FINALIZES = f"takes the finalizer {FINALIZER} off"
_numbers = itertools.count(1)


def owner(uid: str = UID, kind: str = "VirtualMachineInstance", *, controls: bool = True) -> Json:
    api = "kubevirt.io/v1" if kind.startswith("Virtual") else "apps/v1"
    return {"apiVersion": api, "kind": kind, "name": "vm", "uid": uid, "controller": controls}


def pod(labels: Json | None = None, owners: list[Json] | None = None, **spec: Any) -> Json:
    body = plain_pod(f"pod-{next(_numbers)}", **spec)
    body["metadata"] |= {"labels": labels or {}, "ownerReferences": owners or []}
    return body


def gates(*names: str) -> list[Json]:
    return [{"name": name} for name in names]


def gpu_container() -> list[Json]:
    return [{"name": "c", "image": "x", "resources": {"limits": {RESOURCE: "1"}}}]


LAUNCHES = {LABEL_KUBEVIRT: LABEL_LAUNCHER, LABEL_CREATED_BY: UID}


def launcher(**labels: str) -> Json:
    return pod(LAUNCHES | labels, [owner()], schedulingGates=gates(GATE, "example.com/mine"))


@dataclass(frozen=True, slots=True)
class World:
    """Requests by whoever is named, in a namespace where a class is on sale."""

    plane: ControlPlane
    vmi_uid: str

    def _real(self, body: Any) -> Any:
        return json.loads(json.dumps(body).replace(UID, self.vmi_uid))

    def refused(self, user: str, method: str, path: str, body: Any = None, kind: str = "merge") -> str:
        """Why it is refused; empty where it is done."""
        content = {"Content-Type": f"application/{kind}-patch+json"} if method == "PATCH" else {}
        return refusal(self.plane.rest(), method, path, self._real(body), as_user(user) | content)

    def made(self, path: str, body: Json) -> str:
        """The path of a new object, made by KubeVirt's account."""
        made = self.plane.rest().request("POST", path, self._real(body), headers=as_user(KUBEVIRT))
        return f"{path}/{made['metadata']['name']}"

    def kept_claim(self) -> str:
        """The path of a claim that has our finalizer and another one."""
        meta = {"name": f"claim-{next(_numbers)}", "finalizers": [FINALIZER, "example.com/mine"]}
        return self.made(CLAIMS, {**CLAIM, "metadata": meta})

    def read(self, path: str) -> Any:
        return self.plane.rest().request("GET", path)


CLAIM: Json = {
    "apiVersion": "gpu.cozystack.io/v1alpha1",
    "kind": "GPUClaim",
    "spec": {"className": "writers", "units": 1},
}


@pytest.fixture(scope="module")
def world(own_plane: ControlPlane) -> World:
    enforce(own_plane)
    rest = own_plane.rest()
    rest.request("POST", "/api/v1/namespaces", {"metadata": {"name": "writers"}})
    vmi = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": "vm"}}
    uid = rest.request("POST", VMIS, vmi)["metadata"]["uid"]
    api = {"apiVersion": "gpu.cozystack.io/v1alpha1"}
    sold = {"kind": "GPUClass", "spec": {"resourceName": RESOURCE}}
    kept = {"metadata": {"name": "writers", "finalizers": [FINALIZER]}}
    rest.request("POST", CLASSES, api | sold | kept)
    budget = {"kind": "GPUBudget", "spec": {"namespaceSelector": {}, "classes": {"writers": 8}}}
    rest.request("POST", BUDGETS, api | budget | {"metadata": {"name": "writers"}})
    asks = pod({LABEL_KUBEVIRT: LABEL_LAUNCHER}, containers=gpu_container())

    def is_gated() -> bool:
        made = rest.request("POST", PODS + DRY, asks, headers=as_user(KUBEVIRT))
        return bool(made["spec"].get("schedulingGates"))

    wait_for("the gate knows the class", is_gated, own_plane.processes)
    return World(own_plane, uid)


def is_one_sentence(text: str, part: str) -> bool:
    """Ours, and no more than that: what the API server puts before it ends with a colon."""
    said = text[text.index("denied request: ") + 16 :]
    return part in said and said.startswith("only ") and ". " not in said


NEW_PODS: list[tuple[str, str, Json, str]] = [
    ("tenant, a plain pod", TENANT, pod(), ""),
    ("tenant, a pod with a GPU", TENANT, pod(containers=gpu_container()), ""),
    ("tenant, a pod with a foreign gate", TENANT, pod(schedulingGates=gates("example.com/mine")), ""),
    ("tenant, labelled as a launcher that wants no GPU", TENANT, pod({LABEL_KUBEVIRT: LABEL_LAUNCHER}), ""),
    ("tenant, owned by a VMI that does not control it", TENANT, pod(owners=[owner(controls=False)]), ""),
    ("a controller of Kubernetes, for a ReplicaSet", REPLICAS, pod(owners=[owner(kind="ReplicaSet")]), ""),
    ("KubeVirt, a launcher", KUBEVIRT, launcher(), ""),
    ("KubeVirt, the target of a migration", KUBEVIRT, launcher(**{LABEL_MIGRATION_JOB: "x"}), ""),
    ("tenant, our gate", TENANT, pod(schedulingGates=gates(GATE)), CREATES),
    ("cluster admin, our gate among others", ADMIN, pod(schedulingGates=gates("a.b/c", GATE)), CREATES),
    ("our binder, our gate", BIND, pod(schedulingGates=gates(GATE)), CREATES),
    (
        "tenant, labelled as a launcher with a GPU, which the API server gates",
        TENANT,
        pod({LABEL_KUBEVIRT: LABEL_LAUNCHER}, containers=gpu_container()),
        CREATES,
    ),
    ("tenant, controlled by a VMI", TENANT, pod(owners=[owner()]), CONTROLS),
    ("a ReplicaSet's pod that a VMI controls", REPLICAS, pod(owners=[owner()]), CONTROLS),
    ("tenant, KubeVirt's label", TENANT, pod({LABEL_CREATED_BY: UID}), LABELS),
    ("tenant, the label of a migration", TENANT, pod({LABEL_MIGRATION_JOB: "x"}), LABELS),
    ("a node, KubeVirt's label", KUBELET, pod({LABEL_CREATED_BY: UID}), LABELS),
]


@pytest.mark.parametrize(
    ("user", "body", "why"), [row[1:] for row in NEW_PODS], ids=[row[0] for row in NEW_PODS]
)
def test_who_may_create_which_pod(world: World, user: str, body: Json, why: str) -> None:
    refused = world.refused(user, "POST", PODS + DRY, body)
    assert is_one_sentence(refused, why) if why else refused == ""


def labels(**changed: str | None) -> Json:
    return {
        "metadata": {
            "labels": {
                LABEL_CREATED_BY if key == "by" else LABEL_MIGRATION_JOB: value
                for key, value in changed.items()
            }
        }
    }


OPEN = {"spec": {"schedulingGates": gates("example.com/mine")}}
TOLERATES = {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}}
CHANGES: list[tuple[str, str, Json, str]] = [
    ("tenant, another label", TENANT, {"metadata": {"labels": {"app": "x"}}}, ""),
    ("tenant, an annotation", TENANT, {"metadata": {"annotations": {"app": "x"}}}, ""),
    ("tenant, a toleration", TENANT, TOLERATES, ""),
    ("tenant, a foreign gate off", TENANT, {"spec": {"schedulingGates": gates(GATE)}}, ""),
    ("the garbage collector, the owner goes", COLLECTOR, {"metadata": {"ownerReferences": None}}, ""),
    ("KubeVirt, its label", KUBEVIRT, labels(by=NEVER), ""),
    ("KubeVirt, another controller", KUBEVIRT, {"metadata": {"ownerReferences": [owner(NEVER)]}}, ""),
    ("bind, our gate off", BIND, OPEN, ""),
    ("up, our gate off", UP, OPEN | TOLERATES, ""),
    ("uninstall, our gate off", UNINSTALL, OPEN, ""),
    ("tenant, our gate off", TENANT, OPEN, UNGATES),
    ("tenant, all gates off", TENANT, {"spec": {"schedulingGates": None}}, UNGATES),
    ("cluster admin, our gate off", ADMIN, OPEN, UNGATES),
    ("KubeVirt, our gate off", KUBEVIRT, OPEN, UNGATES),
    ("tenant, KubeVirt's label forged", TENANT, labels(by=NEVER), LABELS),
    ("tenant, KubeVirt's label off", TENANT, labels(by=None), LABELS),
    ("tenant, made the target of a migration", TENANT, labels(job="x"), LABELS),
    ("tenant, another controller", TENANT, {"metadata": {"ownerReferences": [owner(NEVER)]}}, CONTROLS),
]


@pytest.mark.parametrize(
    ("user", "change", "why"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES]
)
def test_who_may_change_what_on_a_gated_launcher(world: World, user: str, change: Json, why: str) -> None:
    refused = world.refused(user, "PATCH", world.made(PODS, launcher()) + DRY, change)
    assert is_one_sentence(refused, why) if why else refused == ""


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (labels(by=UID), LABELS),
        ({"metadata": {"ownerReferences": [owner()]}}, CONTROLS),
        ({"metadata": {"ownerReferences": [owner(controls=False)]}}, ""),
    ],
    ids=["label", "controller", "owner"],
)
def test_plain_pod_does_not_become_a_launcher_later(world: World, change: Json, why: str) -> None:
    """R28: a pod on a node that passes for a VM's launcher would hide behind that VM's claim."""
    refused = world.refused(TENANT, "PATCH", world.made(PODS, pod()) + DRY, change)
    assert is_one_sentence(refused, why) if why else refused == ""


def test_owner_that_is_there_does_not_become_the_controller(world: World) -> None:
    path = world.made(PODS, pod(owners=[owner(controls=False)]))
    change = {"metadata": {"ownerReferences": [owner()]}}
    assert is_one_sentence(world.refused(TENANT, "PATCH", path + DRY, change), CONTROLS)


def test_node_and_scheduler_write_what_they_write(world: World) -> None:
    """Statuses, bindings, evictions and deletions are nobody's business here."""
    gated = world.made(PODS, launcher())
    ready = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    assert world.refused(KUBELET, "PATCH", f"{gated}/status", ready, "strategic-merge") == ""
    assert world.refused(BIND, "PATCH", gated, {"spec": {"schedulingGates": None}}) == ""
    target = {"target": {"kind": "Node", "name": "gpu-1"}, "metadata": {"name": gated.rsplit("/", 1)[1]}}
    assert world.refused(SCHEDULER, "POST", f"{gated}/binding", target) == ""
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": target["metadata"]}
    assert world.refused(TENANT, "POST", f"{gated}/eviction{DRY}", eviction) == ""
    assert world.refused(TENANT, "DELETE", f"{gated}?gracePeriodSeconds=0") == ""


PLACED = {"status": {"phase": "Bound", "nodeName": "gpu-1"}}


@pytest.mark.parametrize(
    ("path", "status"),
    [(f"{CLASSES}/writers", {"free": 1}), (f"{BUDGETS}/writers", {"used": {"classes": {"writers": 1}}})],
    ids=["class", "budget"],
)
def test_status_of_classes_and_budgets_is_the_binders(world: World, path: str, status: Json) -> None:
    for user in (TENANT, ADMIN, UNINSTALL):
        assert is_one_sentence(world.refused(user, "PATCH", f"{path}/status", {"status": status}), STATUS)
    assert world.refused(UP, "PATCH", f"{path}/status", {"status": status}) == ""


@pytest.mark.parametrize("user", [TENANT, ADMIN, KUBEVIRT, UNINSTALL])
def test_nobody_but_the_binder_writes_a_placement(world: World, user: str) -> None:
    """R1: by patch or by replacement; and what a tenant writes into a new claim is dropped."""
    meta = {"name": f"claim-{next(_numbers)}"}
    path = world.made(CLAIMS, {**CLAIM, "metadata": meta, **PLACED})
    whole = world.read(path)
    assert whole.get("status", {}).get("phase") in (None, "Pending")
    assert is_one_sentence(world.refused(user, "PATCH", f"{path}/status", PLACED), STATUS)
    assert is_one_sentence(world.refused(user, "PUT", f"{path}/status", {**whole, **PLACED}), STATUS)
    assert world.refused(user, "PATCH", path, {"metadata": {"labels": {"a": "b"}}, **PLACED}) == ""
    assert world.read(path).get("status", {}).get("phase") in (None, "Pending")
    for binder in (BIND, UP):
        assert world.refused(binder, "PATCH", f"{path}/status", PLACED) == ""


def test_finalizer_of_a_claim_in_use_stays_whoever_wants_it_off(world: World) -> None:
    """R30: else the units of a running VM are sold again."""
    path = world.kept_claim()
    whole = world.read(path)
    bare = {**whole, "metadata": {**whole["metadata"], "finalizers": ["example.com/mine"]}}
    remove = [{"op": "remove", "path": "/metadata/finalizers/0"}]
    for user in (TENANT, ADMIN, KUBEVIRT, COLLECTOR):
        asked = [
            world.refused(user, "PATCH", path, {"metadata": {"finalizers": None}}),
            world.refused(user, "PATCH", path, remove, "json"),
            world.refused(user, "PUT", path, bare),
        ]
        assert all(is_one_sentence(text, FINALIZES) for text in asked)


def test_tenant_deletes_a_claim_and_the_binder_lets_it_go(world: World) -> None:
    path = world.kept_claim()
    assert world.refused(TENANT, "DELETE", path) == ""
    assert world.read(path)["metadata"]["deletionTimestamp"]
    gone = {"metadata": {"finalizers": None}}
    assert is_one_sentence(world.refused(TENANT, "PATCH", path, gone), FINALIZES)
    ours = {"metadata": {"finalizers": [FINALIZER]}}
    assert world.refused(TENANT, "PATCH", path, ours) == "", "a finalizer of the tenant's own"
    assert world.refused(BIND, "PATCH", path, gone) == ""


@pytest.mark.parametrize("user", [BIND, UP, UNINSTALL])
def test_ours_may_take_the_finalizer_off_claims_and_classes(world: World, user: str) -> None:
    gone = {"metadata": {"finalizers": None}}
    assert world.refused(user, "PATCH", world.kept_claim(), gone) == ""
    assert world.refused(user, "PATCH", f"{CLASSES}/writers{DRY}", gone) == ""
    assert is_one_sentence(world.refused(ADMIN, "PATCH", f"{CLASSES}/writers", gone), FINALIZES)


def test_garbage_collector_orphans_a_claim(world: World) -> None:
    path = world.kept_claim()
    owned = {"metadata": {"ownerReferences": [owner()]}}
    assert world.refused(BIND, "PATCH", path, owned) == ""
    assert world.refused(COLLECTOR, "PATCH", path, {"metadata": {"ownerReferences": None}}) == ""


def test_namespace_with_launchers_and_claims_goes(world: World) -> None:
    """By the real namespace controller; the claim's finalizer is taken off as the binder does it."""
    rest, name = world.plane.rest(), f"leaving-{next(_numbers)}"
    path = f"/api/v1/namespaces/{name}"
    rest.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    gated = pod({LABEL_CREATED_BY: UID}, schedulingGates=gates(GATE))
    rest.request("POST", f"{path}/pods", gated, headers=as_user(KUBEVIRT))
    claims = CLAIMS.replace("writers", name)
    meta = {"name": "claim", "finalizers": [FINALIZER]}
    rest.request("POST", claims, {**CLAIM, "metadata": meta}, headers=as_user(TENANT))
    rest.request("DELETE", path)
    wait_for("the claim is told to go", lambda: is_leaving(world, f"{claims}/claim"), [])
    assert world.refused(BIND, "PATCH", f"{claims}/claim", {"metadata": {"finalizers": None}}) == ""
    wait_for("the namespace goes", lambda: not rest.exists(path), [])


def is_leaving(world: World, path: str) -> bool:
    return "deletionTimestamp" in world.read(path)["metadata"]


def test_all_of_it_is_the_policies_doing(world: World) -> None:
    """RBAC allows these users everything: without that, the refusals above would show nothing."""
    review = {
        "spec": {
            "user": TENANT,
            "groups": [ALMIGHTY],
            "resourceAttributes": {
                "verb": "patch",
                "group": "gpu.cozystack.io",
                "resource": "gpuclaims",
                "subresource": "status",
            },
        }
    }
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    assert world.plane.rest().request("POST", path, review)["status"]["allowed"]
