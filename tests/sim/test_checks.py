"""Each check can fail: on a cluster with the wrong that it is for, and on none without."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from binder.core.state import ClusterState
from kube.port import DeleteOptions, ObjectKey
from model import resources as r
from model.kinds import BY_KIND
from model.lean import lean_object
from model.names import GATE
from model.resources import Resource
from simulator.apiserver.store import Store
from simulator.objects import gpu_node
from simulator.virtual_time import run_virtual
from tests.sim import checks, writing
from tests.sim.clients import Write
from tests.sim.past import Past
from tests.sim.view import Raw, View
from tests.sim.writing import Done

H = "nvidia.com/H100"
VM_UID, VMI_UID, POD_UID = "vm-uid", "vmi-uid", "pod-uid"


def meta(name: str, uid: str = "", owner: tuple[str, str] = ("", ""), **more: Any) -> Raw:
    found: Raw = {"name": name, "namespace": "t1", "uid": uid or name, **more}
    if owner[0]:
        found["ownerReferences"] = [{"kind": owner[0], "uid": owner[1], "name": "vm", "controller": True}]
    return found


@dataclass
class Cluster:
    """A VM with one launcher and a claim of two units; each part can be given otherwise."""

    store: Store = field(default_factory=Store)

    def put(self, resource: Resource, obj: Raw) -> Raw:
        return self.store.write(resource, obj)

    def node(self, name: str = "n1", units: int = 2) -> None:
        node = gpu_node(name, {H: units})
        node["metadata"]["uid"] = name
        node["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        self.put(r.NODES, node)

    def gpu_class(self, **more: Any) -> None:
        of = {"metadata": {"name": "h", "uid": "h", **more}, "spec": {"resourceName": H}}
        self.put(r.GPU_CLASSES, of)

    def vm(self, *, phase: str = "Running", strategy: str = "Always", said: str = "Running") -> None:
        spec = {"runStrategy": strategy, "template": {"metadata": {}, "spec": {}}}
        self.put(
            r.VIRTUAL_MACHINES,
            {"metadata": meta("vm", VM_UID), "spec": spec, "status": {"printableStatus": said}},
        )
        status = {"phase": phase, "nodeName": "n1", "activePods": {POD_UID: ""}}
        owner = ("VirtualMachine", VM_UID)
        self.put(
            r.VIRTUAL_MACHINE_INSTANCES,
            {"metadata": meta("vm", VMI_UID, owner), "spec": {}, "status": status},
        )

    def launcher(self, *, pin: str = "n1", phase: str = "Running", **more: Any) -> Raw:
        asked = {"resources": {"requests": {H: "2"}}}
        spec: Raw = {"containers": [asked]}
        if pin:
            fields = [{"key": "metadata.name", "operator": "In", "values": [pin]}]
            terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
            required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
            spec["affinity"] = {"nodeAffinity": required}
        else:
            spec["schedulingGates"] = [{"name": GATE}]
        labels = {"kubevirt.io/created-by": VMI_UID}
        owned = meta("launcher", POD_UID, ("VirtualMachineInstance", VMI_UID), labels=labels, **more)
        return self.put(r.PODS, {"metadata": owned, "spec": spec, "status": {"phase": phase}})

    def claim(self, name: str = "c", node: str = "n1", **more: Any) -> Raw:
        status = {"phase": "Bound", "nodeName": node} if node else more.pop("status", {"phase": "Pending"})
        owned = meta(name, owner=more.pop("owner", ("VirtualMachineInstance", VMI_UID)), **more)
        claim = {"metadata": owned, "spec": {"className": "h", "units": 2}, "status": status}
        return self.put(r.GPU_CLAIMS, claim)

    @property
    def view(self) -> View:
        return View(self.store)


def whole() -> Cluster:
    """Nothing is wrong with it."""
    cluster = Cluster()
    cluster.put(r.NAMESPACES, {"metadata": {"name": "t1", "uid": "t1"}})
    cluster.node()
    cluster.gpu_class()
    cluster.vm()
    cluster.launcher()
    cluster.claim()
    return cluster


def booked_twice(cluster: Cluster) -> None:
    cluster.claim("second", owner=("", ""))


def partly_lost(cluster: Cluster) -> None:
    cluster.claim("second", node="", status={"phase": "Lost"})


def split(cluster: Cluster) -> None:
    cluster.claim("second", node="n2")


def pinned_elsewhere(cluster: Cluster) -> None:
    cluster.launcher(pin="n2")


def gated_for_nothing(cluster: Cluster) -> None:
    cluster.launcher(pin="", phase="Pending")


def class_hangs(cluster: Cluster) -> None:
    cluster.store.remove(r.GPU_CLAIMS, ("t1", "c"))
    cluster.gpu_class(deletionTimestamp="2026-01-01T00:00:00Z")


def order_waits(cluster: Cluster) -> None:
    cluster.claim(node="", owner=("", ""))
    cluster.store.remove(r.PODS, ("t1", "launcher"))


def vm_does_not_start(cluster: Cluster) -> None:
    cluster.vm(said="Starting")


def _wrongs(check: Callable[..., Iterator[tuple[str, str]]], cluster: Cluster) -> list[str]:
    if check is checks.no_more_is_booked_than_a_node_ever_had:
        return [why for _, why in check(cluster.view, {("n1", H): 2})]
    return [why for _, why in check(cluster.view)]


@pytest.mark.parametrize(
    ("check", "spoil", "number"),
    [
        (checks.no_more_is_booked_than_a_node_ever_had, booked_twice, "1"),
        (checks.sets_are_whole, partly_lost, "3"),
        (checks.sets_are_whole, split, "3"),
        (checks.pins_are_where_the_set_is, pinned_elsewhere, "4"),
        (checks.nobody_waits_for_nothing, gated_for_nothing, "6"),
        (checks.deletions_end, class_hangs, "8"),
        (checks.all_that_can_be_held_is, order_waits, "6"),
        (checks.vms_run_or_wait, vm_does_not_start, "6"),
    ],
)
def test_check_of_a_moment_fails_where_it_should(check: Any, spoil: Any, number: str) -> None:
    cluster = whole()
    assert _wrongs(check, cluster) == []
    spoil(cluster)
    assert [why.partition(":")[0] for why in _wrongs(check, cluster)] == [number]


CLAIM, POD = ObjectKey(r.GPU_CLAIMS, "c", "t1"), ObjectKey(r.PODS, "launcher", "t1")
VMI = ObjectKey(r.VIRTUAL_MACHINE_INSTANCES, "vm", "t1")
EXACT = DeleteOptions(uid="u", resource_version="1")


def failing(check: writing.Check, cluster: Cluster, done: Done, past: Past | None = None) -> list[str]:
    """The numbers of what the check says, asked within a loop, whose clock it looks at."""

    async def ask(_: Any) -> list[str]:
        await asyncio.sleep(1000.0)
        return [why.partition(":")[0] for why in check(done, cluster.view, past or Past())]

    return run_virtual(ask)


def done(key: ObjectKey, verb: str, old: Any, new: Any, **more: Any) -> Done:
    return Done(Write("p", verb, key, None, more.pop("options", None)), old, new, ClusterState(), **more)


def told(of: Done, cluster: Cluster, resource: Resource) -> None:
    """The log has told the pass of all objects of the kind."""
    for one in cluster.store.scan(resource):
        watched, name = BY_KIND[resource.kind], one["metadata"]["name"]
        body = lean_object(watched.model, watched.prune, one)
        of.known.shelves[resource.kind].put(("", name), name, "1", body)


def test_units_that_are_not_there_are_noticed() -> None:
    """2."""
    cluster = whole()
    cluster.store.remove(r.PODS, ("t1", "launcher"))
    bound = done(CLAIM, "patch", None, cluster.claim())
    assert failing(writing.units_are_there, cluster, bound) == []
    booked_twice(cluster)
    assert failing(writing.units_are_there, cluster, bound) == ["2"]


def test_pin_without_booking_and_gate_without_pin_are_noticed() -> None:
    """4, R10; R30 lets gates go without a pin."""
    cluster = whole()
    gated, pinned = cluster.launcher(pin="", phase="Pending"), cluster.launcher(phase="Pending")
    pin = done(POD, "patch", gated, pinned)
    assert failing(writing.pins_are_booked, cluster, pin) == []
    cluster.claim(node="")
    assert failing(writing.pins_are_booked, cluster, pin) == [], "nothing is on sale, as far as it knew"
    told(pin, cluster, r.GPU_CLASSES)
    assert failing(writing.pins_are_booked, cluster, pin) == ["4"]
    bare = cluster.launcher(pin="", phase="Pending")
    bare["spec"].pop("schedulingGates")
    assert failing(writing.pins_are_booked, cluster, done(POD, "patch", gated, bare)) == ["4"]
    off = done(POD, "patch", gated, bare, policy={"is_enabled": False})
    assert failing(writing.pins_are_booked, cluster, off) == []


def test_deletion_of_a_vmi_needs_a_cause_a_strategy_and_room_in_the_minute() -> None:
    """5: R21, R24."""
    cluster = whole()
    vmi = next(cluster.store.scan(r.VIRTUAL_MACHINE_INSTANCES))
    deletion = done(VMI, "delete", vmi, None, options=EXACT)
    sick = Past(sick_s={"n1": 990.0})
    assert failing(writing.vmis_are_deleted_rightly, cluster, deletion, sick) == []
    assert failing(writing.vmis_are_deleted_rightly, cluster, deletion) == ["5"]
    busy = Past(sick_s={"n1": 990.0}, deletions_s=[980.0] * 5)
    assert failing(writing.vmis_are_deleted_rightly, cluster, deletion, busy) == ["5"]
    cluster.vm(strategy="Manual")
    assert failing(writing.vmis_are_deleted_rightly, cluster, deletion, sick) == ["5"]


def test_deletion_without_preconditions_is_noticed() -> None:
    """5."""
    cluster = whole()
    for options, found in ((EXACT, []), (DeleteOptions(uid="u"), ["5"])):
        deletion = done(VMI, "delete", {}, None, options=options)
        assert failing(writing.deletions_are_exact, cluster, deletion) == found


def test_budget_that_is_exceeded_is_noticed() -> None:
    """7: for what is new; a budget that the log has not told of is not known."""
    cluster = whole()
    cluster.put(r.NAMESPACES, {"metadata": {"name": "t1", "uid": "t1", "labels": {"team": "r"}}})
    selector = {"matchLabels": {"team": "r"}}
    budget = {"classes": {"h": 1}, "parent": "", "namespaceSelector": selector}
    bound = done(CLAIM, "patch", None, cluster.claim())
    told(bound, cluster, r.NAMESPACES)
    assert failing(writing.budgets_hold, cluster, bound) == []
    cluster.put(r.GPU_BUDGETS, {"metadata": {"name": "b", "uid": "b"}, "spec": budget})
    assert failing(writing.budgets_hold, cluster, bound) == []
    told(bound, cluster, r.GPU_BUDGETS)
    assert failing(writing.budgets_hold, cluster, bound) == ["7"]


def test_pin_to_a_node_that_has_refused_the_vm_is_noticed() -> None:
    """R13."""
    cluster = whole()
    gated, pinned = cluster.launcher(pin="", phase="Pending"), cluster.launcher(phase="Pending")
    pin = done(POD, "patch", gated, pinned, was_told_failed=lambda uid: uid == "old")
    assert failing(writing.refusals_are_remembered, cluster, pin) == []
    refused = Past(refused_s={("t1", "vm", "n1"): (950.0, "old")})
    assert failing(writing.refusals_are_remembered, cluster, pin, refused) == ["R13"]
    changed = Past(refused_s=refused.refused_s, changed_s={"n1": 960.0})
    assert failing(writing.refusals_are_remembered, cluster, pin, changed) == []
