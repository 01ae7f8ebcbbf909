"""What must hold of each single write of a binder, at the moment at which it is carried out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from binder.core.state import ClusterState
from kube.port import DeleteOptions, Json
from model import resources as r
from model.claims import GPUBudget, GPUClass
from model.kinds import BY_KIND
from model.namespaces import Namespace
from model.nodes import Node
from model.pods import Pod
from simulator.actors.quantities import requests
from tests.sim import view as v
from tests.sim.clients import Write
from tests.sim.past import LAG_S, Past
from tests.sim.taking import budgets_over
from tests.sim.view import Raw, View

MATTERS = (
    r.NODES, r.PODS, r.VIRTUAL_MACHINES, r.VIRTUAL_MACHINE_INSTANCES,
    r.GPU_CLASSES, r.GPU_BUDGETS, r.NAMESPACES,
)  # fmt: skip

MINUTE_S = 50.0
"""What was decided a minute apart can be carried out a little less apart."""


@dataclass(frozen=True, slots=True)
class Done:
    """A write, what was before it and what is after it, and what its binder knew of the cluster."""

    write: Write
    old: Json | None
    new: Json | None
    known: ClusterState
    policy: Mapping[str, Any] = field(default_factory=dict)
    """Of the intent that it belongs to."""
    was_told_failed: Callable[[str], bool] = bool
    """Whether the log has said that the pod of a uid failed."""

    def is_pin(self) -> bool:
        """Whether a pod was ungated."""
        is_pod = self.write.key.resource == r.PODS and self.write.verb == "patch"
        return bool(is_pod and self.old and self.new and v.is_gated(self.old) and not v.is_gated(self.new))

    def bound_to(self) -> str:
        """The node that a claim is on now and was not before."""
        if self.write.key.resource != r.GPU_CLAIMS or self.new is None:
            return ""
        node = v.node_of(self.new)
        return node if self.old is None or v.node_of(self.old) != node else ""


def units_are_there(done: Done, view: View, past: Past) -> Iterator[str]:
    """2: what is booked on a node leaves no more than it has, as far as the log had told the binder."""
    node = done.bound_to()
    if not node or done.new is None or node in places_of_its_launcher(done.new, view):
        return
    known = done.known.of(Node).get(("", node))
    told = {one.metadata.uid for one in done.known.of(Pod).values() if one.spec.node_name or not one.is_gated}
    pods = [one for one in view.of(r.PODS) if v.uid(one) in told or v.pin_of(one)]
    held, beside = view.held(node), view.uncovered(node, pods)
    resource = view.resource_of(done.new)
    has = int(known.status.allocatable.get(resource, "0")) if known else 0
    has = max(has, int((v.status(view.nodes.get(node, {})).get("allocatable") or {}).get(resource, 0)))
    units = held.get(resource, 0) + int(beside.get(resource, 0))
    if units > has:
        yield (
            f"2: {v.full_name(done.new)} is bound to {node}, where {held.get(resource, 0)} of {resource} are"
            f" held and {beside.get(resource, 0)} taken besides, of {has}"
        )


def places_of_its_launcher(claim: Raw, view: View) -> set[str]:
    """Where launchers of its set are already: there it follows, whatever the room (R19)."""
    return {view.place_of(pod) for pod, vmi in view.all_launchers() if claim in view.claims_of(vmi)} - {""}


def pins_are_booked(done: Done, view: View, past: Past) -> Iterator[str]:
    """4, R10: a launcher is ungated with a pin, and to where all that is on sale of what it asks for is held.

    On sale as far as the log had told the binder: a class may just have been made anew.
    """
    if not done.is_pin() or done.new is None:
        return
    pin, vmi = v.pin_of(done.new), view.vmi_of(done.new)
    if not pin and not done.policy.get("is_enabled", True):
        return  # R30: switched off, gates go without a pin
    if not pin:
        yield f"4: {v.full_name(done.new)} is ungated without a pin"
    elif vmi is not None and not view.is_target(done.new, vmi):
        claims = view.set_of(vmi)
        elsewhere = sorted({v.node_of(one) for one in claims} - {pin, ""})
        if elsewhere:
            yield f"4: {v.full_name(done.new)} is pinned to {pin}, its set is on {elsewhere}"
        held = view.held(pin, claims)
        sold = {one.spec.resource_name for one in done.known.of(GPUClass).values()}
        for resource, amount in requests(done.new).items():
            there = held.get(resource, 0)
            if resource in sold.intersection(view.resource_of_class.values()) and there < amount:
                yield f"4: {v.full_name(done.new)} is pinned to {pin}, where {there} of {amount} are held"


def vmis_are_deleted_rightly(done: Done, view: View, past: Past) -> Iterator[str]:
    """5: R21, and R24 by the minute."""
    if done.write.verb != "delete" or done.write.key.resource != r.VIRTUAL_MACHINE_INSTANCES:
        return
    vmi = done.old
    if vmi is None:
        return
    vm = view.vms_by_name.get(v.full_name(vmi))
    if v.phase(vmi) != "Running" or vm is None or vm["spec"].get("runStrategy") != "Always":
        strategy = (vm or {}).get("spec", {}).get("runStrategy")
        yield f"5: VMI {v.full_name(vmi)} is deleted, {v.phase(vmi)} under {strategy}"
    node = str(v.status(vmi).get("nodeName") or "")
    if not past.was_sick_lately(node):
        yield f"5: VMI {v.full_name(vmi)} is deleted, and nothing was wrong with {node} for {LAG_S:.0f} s"
    lately = [at_s for at_s in past.deletions_s if past.now_s() - at_s < MINUTE_S]
    if len(lately) >= done.policy.get("max_vmi_deletions", 5) and past.is_minute_known():
        yield f"5: {len(lately) + 1} VMIs are deleted in {MINUTE_S:.0f} s, R24 allows no more"


def deletions_are_exact(done: Done, view: View, past: Past) -> Iterator[str]:
    """5: what is deleted is what was looked at: uid and version stand in the request."""
    options = done.write.options
    if done.write.verb != "delete" or not isinstance(options, DeleteOptions):
        return
    if not (options.uid and options.resource_version):
        yield f"5: {done.write.key} is deleted without uid and resourceVersion"


def budgets_hold(done: Done, view: View, past: Past) -> Iterator[str]:
    """7: what had no place gets one only where every budget over it has room."""
    is_new = done.old is None or v.phase(done.old) not in ("Bound", "Lost")
    if not done.bound_to() or done.new is None or not is_new:
        return
    if not knows_budgets(done.known, view):
        return
    class_name = str(done.new["spec"]["className"])
    over = {v.name(one): limits for one, limits in budgets_over(view, v.namespace(done.new))}
    for name, limits in over.items():
        if class_name not in limits:
            continue
        used = sum(
            int(one["spec"]["units"])
            for one in view.of(r.GPU_CLAIMS)
            if one["spec"]["className"] == class_name
            and v.phase(one) in ("Bound", "Lost")
            and name in {v.name(b) for b, _ in budgets_over(view, v.namespace(one))}
        )
        if used > limits[class_name]:
            yield f"7: {v.full_name(done.new)} is bound, budget {name} has {used} of {limits[class_name]}"


def knows_budgets(known: ClusterState, view: View) -> bool:
    """Whether what the pass knew of budgets and namespaces is how they are."""
    limits = {key[1]: one.spec for key, one in known.of(GPUBudget).items()}
    labels = {key[1]: dict(one.metadata.labels) for key, one in known.of(Namespace).items()}
    return limits == {
        v.name(one): GPUBudget.model_validate(BY_KIND["GPUBudget"].prune(one)).spec
        for one in view.of(r.GPU_BUDGETS)
    } and labels == {v.name(one): one["metadata"].get("labels") or {} for one in view.of(r.NAMESPACES)}


def refusals_are_remembered(done: Done, view: View, past: Past) -> Iterator[str]:
    """R13, R14: a node that refused a VM, and has not changed since, is left alone for it for a while."""
    vmi = view.vmi_of(done.new) if done.is_pin() and done.new else None
    if vmi is None or done.new is None or not past.is_minute_known():
        return
    pin = v.pin_of(done.new)
    at_s, pod_uid = past.refused_s.get((v.namespace(vmi), v.name(vmi), pin), (-1e9, ""))
    age_s = past.now_s() - at_s
    if (
        done.was_told_failed(pod_uid)
        and age_s < done.policy.get("rejection_s", 600) - 1.0
        and past.changed_s.get(pin, 0.0) < at_s
    ):
        yield f"R13: {v.full_name(done.new)} is pinned to {pin}, which refused its VM {age_s:.0f} s ago"


Check = Callable[[Done, View, Past], Iterator[str]]
CHECKS: tuple[Check, ...] = (
    units_are_there, pins_are_booked, vmis_are_deleted_rightly, deletions_are_exact, budgets_hold,
    refusals_are_remembered,
)  # fmt: skip
