"""Whether some node would take a gated launcher's set (R7, R8), from the rules' text over raw objects.

Says no where the rules let the set wait for another cause than room.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from model import resources as r
from model.names import GATE
from simulator.actors.filters import accepts, some_term_holds, tolerating
from simulator.actors.quantities import requests
from tests.sim import view as v
from tests.sim.view import Raw, View

KEEPS_AWAY = ("NoSchedule", "NoExecute")


def would_take(view: View, pod: Raw, vmi: Raw) -> str:
    """The first node that would take the launcher's set now, or nothing."""
    gates = [gate["name"] for gate in pod["spec"].get("schedulingGates") or []]
    leaving = v.is_leaving(pod) or v.is_leaving(vmi) or v.phase(vmi) in v.ENDED or v.phase(pod) in v.ENDED
    is_sold = not requests(pod).keys().isdisjoint(view.resource_of_class.values())  # as it was when it came
    wanted = _wanted(view, pod, vmi) if is_sold and not leaving and gates == [GATE] else None
    if wanted is None or _is_over_budget(view, v.namespace(vmi), wanted):
        return ""
    classes = [_class(view, name) for name in sorted({one for one, _, _ in wanted})]
    if any(one is None for one in classes):
        return ""
    for name, node in view.nodes.items():
        if not _reaches(view, pod, node):
            continue
        free = view.free(name)
        own: dict[str, int] = {}
        for class_name, units, at in wanted:
            resource = view.resource_of_class[class_name]
            own[resource] = own.get(resource, 0) + units
            if at == name:
                free[resource] = free.get(resource, 0) + units
        if all(_accepts(one, node) for one in classes if one) and _has_room(pod, classes, own, node, free):
            return name
    return ""


def _reaches(view: View, pod: Raw, node: Raw) -> bool:
    """R8c: every volume of the pod is there, bound, and to be had on the node."""
    claims = {v.full_name(one): one for one in view.of(r.PERSISTENT_VOLUME_CLAIMS)}
    volumes = {v.name(one): one for one in view.of(r.PERSISTENT_VOLUMES)}
    for volume in pod["spec"].get("volumes") or []:
        source = volume.get("persistentVolumeClaim")
        if not source:
            continue
        claim = claims.get(f"{v.namespace(pod)}/{source['claimName']}")
        bound = volumes.get(str(claim["spec"].get("volumeName"))) if claim else None
        required = ((bound or {}).get("spec", {}).get("nodeAffinity") or {}).get("required")
        is_bound = bound is not None and claim is not None and v.phase(claim) == "Bound"
        if not is_bound or (required and not some_term_holds(required["nodeSelectorTerms"], node)):
            return False
    return True


def fits_order(view: View, claim: Raw) -> str:
    """The first node with room for an order that no VM uses or names."""
    named = {
        (v.namespace(vm), order)
        for vm in (*view.of(r.VIRTUAL_MACHINES), *view.of(r.VIRTUAL_MACHINE_INSTANCES))
        for order in v.orders_named(vm["spec"].get("template", vm))
    }
    class_name, units = str(claim["spec"]["className"]), int(claim["spec"]["units"])
    gpu_class = _class(view, class_name)
    if gpu_class is None or (v.namespace(claim), v.name(claim)) in named:
        return ""
    new = [(class_name, units, "lost" if v.phase(claim) == "Lost" else "")]
    if _is_over_budget(view, v.namespace(claim), new):
        return ""
    resource = view.resource_of_class[class_name]
    for name, node in view.nodes.items():
        if _accepts(gpu_class, node) and view.free(name).get(resource, 0) >= units:
            return name
    return ""


def _wanted(view: View, pod: Raw, vmi: Raw) -> list[tuple[str, int, str]] | None:
    """Class, units and present node of each claim of the set; None where it waits for another cause."""
    vm = view.vm_of(vmi)
    claims = {v.full_name(one): one for one in view.of(r.GPU_CLAIMS)}
    found: list[tuple[str, int, str]] = []
    covered: dict[str, int] = {}
    for order in v.orders_named(vmi):
        claim = claims.get(f"{v.namespace(vmi)}/{order}")
        if claim is None or v.is_leaving(claim) or v.controller(claim, "VirtualMachineInstance"):
            return None
        user = str((v.status(claim).get("vm") or {}).get("uid") or "")
        if vm is None or user != v.uid(vm) or not view.resource_of(claim):
            return None  # not ours yet, or no more
        _add(found, covered, view, claim)
    for claim in view.of(r.GPU_CLAIMS):
        if v.controller(claim, "VirtualMachineInstance") == v.uid(vmi) and view.resource_of(claim):
            if v.is_leaving(claim):
                return None
            _add(found, covered, view, claim)
    for resource, amount in sorted(requests(pod).items()):
        missing = int(amount) - covered.get(resource, 0)
        if resource in view.resource_of_class.values() and missing > 0:
            gpu_class = _class_for(view, vmi, resource)
            if not gpu_class or f"{v.namespace(vmi)}/{v.name(vmi)}-{gpu_class}-{v.uid(vmi)[:8]}" in claims:
                return None
            found.append((gpu_class, missing, ""))
    return found or None


def _add(found: list[tuple[str, int, str]], covered: dict[str, int], view: View, claim: Raw) -> None:
    units, resource = int(claim["spec"]["units"]), view.resource_of(claim)
    at = "lost" if v.phase(claim) == "Lost" else v.node_of(claim)
    found.append((str(claim["spec"]["className"]), units, at))
    covered[resource] = covered.get(resource, 0) + units


def _class_for(view: View, vmi: Raw, resource: str) -> str:
    selling = [one for one in view.of(r.GPU_CLASSES) if one["spec"]["resourceName"] == resource]
    if any(v.is_leaving(one) for one in selling):
        return ""
    wish = (vmi["metadata"].get("annotations") or {}).get(v.CLASS, "")
    if wish and wish not in view.resource_of_class:
        return ""
    wished = [one for one in selling if v.name(one) == wish]
    default = [one for one in selling if one["spec"].get("default")]
    return next((v.name(one[0]) for one in (wished, selling, default) if len(one) == 1), "")


def _class(view: View, name: str) -> Raw | None:
    return next((one for one in view.of(r.GPU_CLASSES) if v.name(one) == name), None)


def _accepts(gpu_class: Raw, node: Raw) -> bool:
    """R8a."""
    labels = node["metadata"].get("labels") or {}
    spec = gpu_class["spec"]
    taints = [one for one in node["spec"].get("taints") or [] if one["effect"] in KEEPS_AWAY]
    ready = [one["status"] for one in v.status(node).get("conditions") or [] if one["type"] == "Ready"]
    return (
        all(labels.get(key) == value for key, value in (spec.get("nodeSelector") or {}).items())
        and all(tolerating(one, spec.get("tolerations") or []) for one in taints)
        and ready == ["True"]
        and not node["spec"].get("unschedulable")
        and not v.is_leaving(node)
    )


def _has_room(pod: Raw, classes: list[Any], own: dict[str, int], node: Raw, free: dict[str, Any]) -> bool:
    """R8b and e: the scheduler's filters on what the pod will be, and room for all of the set."""
    tolerations = [one for gpu_class in classes for one in gpu_class["spec"].get("tolerations") or []]
    spec = pod["spec"] | {"tolerations": [*(pod["spec"].get("tolerations") or []), *tolerations]}
    room = {name: Fraction(amount) for name, amount in free.items()}
    return accepts(node, pod | {"spec": spec}, room) and all(
        room.get(resource, 0) >= units for resource, units in own.items()
    )


def _is_over_budget(view: View, namespace: str, wanted: list[tuple[str, int, str]]) -> bool:
    """R27 as far as it matters: a budget over the namespace limits one of the classes at all."""
    new = {class_name for class_name, _, at in wanted if not at}
    return any(
        limits.keys() & new or budget["spec"].get("parent")
        for budget, limits in budgets_over(view, namespace)
    )


def budgets_over(view: View, namespace: str) -> Iterator[tuple[Raw, dict[str, int]]]:
    """The budgets that select a namespace, and those above them."""
    by_name = {v.name(one): one for one in view.of(r.GPU_BUDGETS)}
    found = next((one for one in view.of(r.NAMESPACES) if v.name(one) == namespace), None)
    labels = ((found or {}).get("metadata") or {}).get("labels") or {}
    over = {
        name
        for name, one in by_name.items()
        if all(
            labels.get(k) == value
            for k, value in ((one["spec"].get("namespaceSelector") or {}).get("matchLabels") or {}).items()
        )
    }
    for _ in by_name:
        over |= {str(by_name[name]["spec"].get("parent") or "") for name in over} & by_name.keys()
    for name in sorted(over):
        yield by_name[name], dict(by_name[name]["spec"].get("classes") or {})
