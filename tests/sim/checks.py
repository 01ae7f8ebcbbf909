"""What must always hold (50-testing), by number: looked at on the API server's own objects.

Each check takes a moment and says what is wrong, as subject and sentence. Some wrongs are the work of a
moment: those count only when they outlive passes that knew all of it (`LASTING`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from model import resources as r
from tests.sim import view as v
from tests.sim.taking import fits_order, would_take
from tests.sim.view import View

Wrong = tuple[str, str]
"""Of whom, and what."""
Most = Mapping[tuple[str, str], int]
"""The most units that a node of that name ever reported allocatable, by node and resource."""


def no_more_is_booked_than_a_node_ever_had(view: View, most: Most) -> Iterator[Wrong]:
    """1."""
    for node in sorted({v.node_of(claim) for claim in view.of(r.GPU_CLAIMS)} - {""}):
        for resource, units in view.held(node).items():
            if units > most.get((node, resource), 0):
                had = most.get((node, resource), 0)
                yield node, f"1: {units} of {resource} are booked on {node}, which never had more than {had}"


def sets_are_whole(view: View) -> Iterator[Wrong]:
    """3: no set partly Lost, none split over nodes while its launcher is ungated. Lasting."""
    for pod, vmi in view.launchers():
        if v.is_leaving(vmi) or v.phase(vmi) in v.ENDED:
            continue
        claims = [one for one in view.set_of(vmi) if view.resource_of(one) and not v.is_leaving(one)]
        phases = {v.phase(one) for one in claims}
        if {"Lost", "Bound"} <= phases:
            yield v.uid(vmi), f"3: the set of {v.full_name(vmi)} is partly Lost"
        nodes = {v.node_of(one) for one in claims} - {""}
        if len(nodes) > 1 and not v.is_gated(pod):
            yield v.uid(vmi), f"3: the set of {v.full_name(vmi)} is split over {sorted(nodes)}"


def pins_are_where_the_set_is(view: View) -> Iterator[Wrong]:
    """4: a pinned launcher's node is its set's. Lasting: a VMI that has migrated is followed."""
    for pod, vmi in view.launchers():
        if v.is_gated(pod) or v.phase(pod) in v.ENDED or v.is_leaving(pod) or v.is_leaving(vmi):
            continue
        nodes = {v.node_of(one) for one in view.set_of(vmi)} - {""}
        at = view.place_of(pod)
        if at and nodes - {at}:
            yield v.uid(pod), f"4: the launcher {v.full_name(pod)} is on {at}, its set on {sorted(nodes)}"


def nobody_waits_for_nothing(view: View) -> Iterator[Wrong]:
    """6: no launcher stays gated while a node would take its set. Lasting."""
    for pod, vmi in view.launchers():
        node = would_take(view, pod, vmi) if v.is_gated(pod) else ""
        if node:
            yield v.uid(pod), f"6: the launcher of {v.full_name(vmi)} is gated, and {node} would take its set"


LASTING = (sets_are_whole, pins_are_where_the_set_is, nobody_waits_for_nothing)


def deletions_end(view: View) -> Iterator[Wrong]:
    """8: when all is quiet, nothing is on its way out but what somebody uses."""
    used = {str(claim["spec"]["className"]) for claim in view.of(r.GPU_CLAIMS)}
    for resource in (r.NAMESPACES, r.GPU_CLASSES, r.GPU_CLAIMS, r.PODS, r.VIRTUAL_MACHINE_INSTANCES):
        for one in view.of(resource):
            if not v.is_leaving(one) or (resource == r.GPU_CLASSES and v.name(one) in used):
                continue
            if resource == r.GPU_CLAIMS and _is_in_use(one, view):
                continue
            yield v.uid(one), f"8: {resource.kind} {v.full_name(one)} is deleted and does not go"


def _is_in_use(claim: dict[str, Any], view: View) -> bool:
    """R30: its VMI's launcher has not ended."""
    return any(
        claim in view.claims_of(vmi) for pod, vmi in view.all_launchers() if v.phase(pod) not in v.ENDED
    )


def all_that_can_be_held_is(view: View) -> Iterator[Wrong]:
    """When all is quiet: no order is Pending or Lost that a node would take, no VM waits for nothing."""
    for claim in view.of(r.GPU_CLAIMS):
        is_order = not v.controller(claim, "VirtualMachineInstance")
        if is_order and not v.node_of(claim) and not v.is_leaving(claim):
            node = fits_order(view, claim)
            if node:
                yield v.uid(claim), f"6: order {v.full_name(claim)} is {v.phase(claim)}, {node} would take it"


def vms_run_or_wait(view: View) -> Iterator[Wrong]:
    """When all is quiet: a VM that is to run always runs, or its launcher waits for a node.

    A launcher that is no business of ours (nothing sold it what it asks for when it came) may wait for ever.
    So may a VM whose namespace went while KubeVirt's kinds were not served: no API server deletes it.
    """
    there = {v.name(one) for one in view.of(r.NAMESPACES)}
    waiting = {v.full_name(vmi) for pod, vmi in view.launchers() if v.is_gated(pod) or not v.pin_of(pod)}
    for vm in view.of(r.VIRTUAL_MACHINES):
        is_to_run = vm["spec"].get("runStrategy") == "Always" and v.namespace(vm) in there
        if not is_to_run or v.full_name(vm) in waiting:
            continue
        said = str(v.status(vm).get("printableStatus"))
        if said != "Running":
            yield v.uid(vm), f"6: VM {v.full_name(vm)} is {said}, and its launcher does not wait for a node"


AT_THE_END = (*LASTING, deletions_end, all_that_can_be_held_is, vms_run_or_wait)
