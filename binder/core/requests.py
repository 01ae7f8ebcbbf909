"""A pod's effective request, as the scheduler counts it (R29).

Rule read in kubernetes/kubernetes staging/src/k8s.io/component-helpers/resource/helpers.go: containers and
sidecars add up; each ordinary init container runs beside the sidecars started before it; the larger of both
counts; pod-level requests replace the sum for the resources they name; overhead comes on top.
"""

from __future__ import annotations

from collections.abc import Mapping

from model.pods import Pod
from model.quantity import MAX_INT64, MalformedQuantity, scheduler_units

Units = dict[str, int]
"""Resource name to amount: milli-cores for cpu, whole units or bytes for all else."""


def effective_request(pod: Pod) -> Units:
    """What the pod takes from a node, besides its one place among the node's pods."""
    total: Units = {}
    for container in pod.spec.containers:
        _add(total, _parsed(container.resources.requests))
    sidecars: Units = {}
    peak: Units = {}
    for container in pod.spec.init_containers:
        request = _parsed(container.resources.requests)
        if container.restart_policy == "Always":
            _add(sidecars, request)
            running = sidecars
        else:
            running = dict(sidecars)
            _add(running, request)
        _raise_to(peak, running)
    _add(total, sidecars)
    _raise_to(total, peak)
    total.update(_parsed(pod.spec.resources.requests))
    _add(total, _parsed(pod.spec.overhead))
    return total


def allocatable_units(quantities: Mapping[str, str]) -> Units:
    """A node's allocatable as amounts; an entry that is no quantity can hold nothing and is left out."""
    units = {resource: _amount(resource, text) for resource, text in quantities.items()}
    return {resource: amount for resource, amount in units.items() if amount is not None}


def _parsed(quantities: Mapping[str, str]) -> Units:
    """Requests as amounts; one that is no quantity, which no API server lets in, fits nowhere."""
    units = {resource: _amount(resource, text) for resource, text in quantities.items()}
    return {resource: MAX_INT64 if amount is None else amount for resource, amount in units.items()}


def _amount(resource: str, text: str) -> int | None:
    try:
        return max(0, scheduler_units(resource, text))
    except MalformedQuantity:
        return None


def _add(total: Units, more: Mapping[str, int]) -> None:
    for resource, amount in more.items():
        total[resource] = total.get(resource, 0) + amount


def _raise_to(total: Units, other: Mapping[str, int]) -> None:
    for resource, amount in other.items():
        total[resource] = max(total.get(resource, 0), amount)
