"""What the API server finds wrong with a pod's containers: names, images, and what they ask for.

Rules read in kubernetes pkg/apis/core/validation (validateContainers, ValidateContainerResourceRequirements)
and checked against a real server.
"""

from __future__ import annotations

from collections.abc import Iterator

from kube.port import Json
from model.quantity import parse_quantity
from model.resource_names import is_extended
from simulator.apiserver.names import label_name_fault
from simulator.apiserver.object_rules import quoted

_STANDARD = ("cpu", "memory", "ephemeral-storage")
_HUGE = "hugepages-"


def container_faults(spec: Json) -> Iterator[str]:
    """What is wrong with the containers of a pod's spec."""
    if not spec.get("containers"):
        yield "spec.containers: Required value"
    seen: set[str] = set()
    for part in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(part) or []):
            where, name = f"spec.{part}[{index}]", container.get("name", "")
            if not name:
                yield f"{where}.name: Required value"
            elif fault := label_name_fault(name):
                yield f"{where}.name: Invalid value: {quoted(name)}: {fault}"
            elif name in seen:
                yield f"{where}.name: Duplicate value: {quoted(name)}"
            seen.add(name)
            if not container.get("image"):
                yield f"{where}.image: Required value"
            yield from _resource_faults(container.get("resources") or {}, f"{where}.resources")


def _resource_faults(resources: Json, where: str) -> Iterator[str]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for part, amounts in (("limits", limits), ("requests", requests)):
        for name, value in amounts.items():
            yield from _amount_faults(name, value, f"{where}.{part}[{name}]")
    for name, value in sorted(requests.items()):
        asked = parse_quantity(value)
        limit = parse_quantity(limits[name]) if name in limits else None
        is_exact = is_extended(name) or name.startswith(_HUGE)
        if limit is None and is_exact:
            yield f"{where}.limits: Required value: Limit must be set for non overcommitable resources"
        elif limit is not None and is_exact and asked != limit:
            text = f"must be equal to {name} limit of {limits[name]}"
            yield f"{where}.requests: Invalid value: {quoted(value)}: {text}"
        elif limit is not None and asked > limit:
            text = f"must be less than or equal to {name} limit of {limits[name]}"
            yield f"{where}.requests: Invalid value: {quoted(value)}: {text}"


def _amount_faults(name: str, value: str, where: str) -> Iterator[str]:
    amount = parse_quantity(value)
    if "/" not in name and name not in _STANDARD and not name.startswith(_HUGE):
        yield f"{where}: Invalid value: {quoted(name)}: must be a standard resource for containers"
    if "/" in name and "kubernetes.io/" not in name and not is_extended(name):
        yield f"{where}: Invalid value: {quoted(name)}: doesn't follow extended resource name standard"
    if amount < 0:
        yield f"{where}: Invalid value: {quoted(value)}: must be greater than or equal to 0"
    if is_extended(name) and amount.denominator != 1:
        yield f"{where}: Invalid value: {quoted(value)}: must be an integer"
