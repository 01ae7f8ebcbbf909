"""Counting: what pods take on a node besides the claims that are held there (R26), and in a budget (R27)."""

from __future__ import annotations

from collections.abc import Iterable

from binder.core.launchers import Launcher
from binder.core.relations import Relations
from model.claims import GPUClaim
from model.pods import Pod
from model.requests import Units


def uncovered(pods: list[Pod], launcher: Launcher | None, links: Relations, node: str) -> Units:
    """What pods of one VMI (or of none) take on a node besides what its claims held there already count."""
    total: Units = {}
    for pod in pods:
        for resource, amount in links.request_of(pod).items():
            total[resource] = total.get(resource, 0) + amount
    if launcher is None:
        return total
    held = [claim for claim in links.claims_serving(launcher.vmi) if claim.bound_node == node]
    for resource, units in units_by_resource(held, links).items():
        if resource in total:
            total[resource] = max(0, total[resource] - units)
    return total


def units_by_resource(claims: Iterable[GPUClaim], links: Relations) -> Units:
    """What the claims stand for, by resource; one whose class is gone stands for nothing."""
    units: Units = {}
    for claim in claims:
        gpu_class = links.classes.get(claim.spec.class_name)
        if gpu_class is not None:
            resource = gpu_class.spec.resource_name
            units[resource] = units.get(resource, 0) + claim.spec.units
    return units


def raw_units(pod: Pod, links: Relations) -> dict[str, int]:
    """What the pod asks for of resources on sale, less the claims of its VMI, whatever their phase (R27)."""
    rest = {r: n for r, n in links.request_of(pod).items() if r in links.sold}
    launcher = links.launchers.get(pod.metadata.uid)
    for claim in links.claims_serving(launcher.vmi) if launcher else ():
        gpu_class = links.classes.get(claim.spec.class_name)
        resource = gpu_class.spec.resource_name if gpu_class else ""
        if resource in rest:
            rest[resource] = max(0, rest[resource] - claim.spec.units)
    return {resource: units for resource, units in rest.items() if units}
