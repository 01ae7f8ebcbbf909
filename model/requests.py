"""A pod's effective request, as the scheduler counts it (R29).

Rule read in kubernetes/kubernetes staging/src/k8s.io/component-helpers/resource/helpers.go: containers and
sidecars add up; each ordinary init container runs beside the sidecars started before it; the larger of both
counts; pod-level requests replace the sum for cpu, memory and huge pages; overhead comes on top. Of a pod on
a node that is being resized counts the most of what it asks for, what it was given and what it has.

Sums are exact and rounded up once, at the end; resources that the scheduler does not count are left out, and
so is what is asked for zero times: it is wanted of no node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from model.pods import Container, ContainerStatus, Pod
from model.quantity import MAX_INT64, MalformedQuantity, nano_units, rounded_units, scheduler_units

Units = dict[str, int]
"""Resource name to amount: milli-cores for cpu, whole units or bytes for all else."""
Nanos = dict[str, int]
"""Resource name to amount in nano-units."""
_NO_QUANTITY = MAX_INT64 * 10**9
"""What a request that is no quantity counts: no API server lets it in, and it fits nowhere."""


def effective_request(pod: Pod) -> Units:
    """What the pod takes from a node, besides its one place among the node's pods."""
    total = _sum_of_containers(pod, lambda container: container.resources.requests)
    is_placed = bool(pod.spec.node_name)
    if is_placed and _may_be_resized(pod):
        total = _while_resized(pod, total)
    whole = {name: amount for name, amount in _whole_pod(pod, is_placed).items() if _is_pod_level(name)}
    total.update(whole)
    _add(total, _parsed(pod.spec.overhead))
    units = {name: rounded_units(name, amount) for name, amount in total.items() if _is_counted(name)}
    return {name: amount for name, amount in units.items() if amount > 0}


def allocatable_units(quantities: Mapping[str, str]) -> Units:
    """A node's allocatable as amounts; an entry that is no quantity can hold nothing and is left out."""
    units: Units = {}
    for resource, text in quantities.items():
        try:
            units[resource] = max(0, scheduler_units(resource, text))
        except MalformedQuantity:
            continue
    return units


def _sum_of_containers(pod: Pod, request_of: Callable[[Container], Mapping[str, str]]) -> Nanos:
    total: Nanos = {}
    for container in pod.spec.containers:
        _add(total, _parsed(request_of(container)))
    sidecars: Nanos = {}
    peak: Nanos = {}
    for container in pod.spec.init_containers:
        request = _parsed(request_of(container))
        if container.restart_policy == "Always":
            _add(sidecars, request)
            running = sidecars
        else:
            running = dict(sidecars)
            _add(running, request)
        _raise_to(peak, running)
    _add(total, sidecars)
    _raise_to(total, peak)
    return total


def _may_be_resized(pod: Pod) -> bool:
    """Whether its status could count for more, or less, than its spec."""
    status = pod.status
    if status.allocated_resources is not None or _is_resize_infeasible(pod):
        return True
    each = (*status.container_statuses, *status.init_container_statuses)
    return any(one.allocated_resources is not None or one.resources is not None for one in each)


def _is_resize_infeasible(pod: Pod) -> bool:
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _while_resized(pod: Pod, wanted: Nanos) -> Nanos:
    """The most of what is wanted (if its node could ever give it), was given, and is in force."""
    status = pod.status
    is_infeasible = _is_resize_infeasible(pod)
    if status.allocated_resources is not None and status.resources and status.resources.requests:
        given, in_force = _parsed(status.allocated_resources), _parsed(status.resources.requests)
    else:
        of: dict[str, ContainerStatus] = {}
        for one in (*status.container_statuses, *status.init_container_statuses):
            of.setdefault(one.name, one)
        given = _sum_of_containers(pod, lambda c: _given(c, of.get(c.name), is_infeasible=is_infeasible))
        in_force = _sum_of_containers(
            pod, lambda c: _in_force(c, of.get(c.name), is_infeasible=is_infeasible)
        )
    total: Nanos = {} if is_infeasible else wanted
    _raise_to(total, in_force)
    _raise_to(total, given)
    return total


def _given(container: Container, status: ContainerStatus | None, *, is_infeasible: bool) -> Mapping[str, str]:
    if status is not None and status.allocated_resources is not None:
        return status.allocated_resources
    return {} if is_infeasible else container.resources.requests


def _in_force(
    container: Container, status: ContainerStatus | None, *, is_infeasible: bool
) -> Mapping[str, str]:
    if status is not None and status.resources is not None and status.resources.requests:
        return status.resources.requests
    return _given(container, status, is_infeasible=is_infeasible)


def _whole_pod(pod: Pod, is_placed: bool) -> Nanos:  # noqa: FBT001
    """Requests of the pod as a whole; without any that can be pod-level, its containers alone count."""
    wanted, status = pod.spec.resources.requests, pod.status
    if not any(map(_is_pod_level, wanted)):
        return {}
    if not is_placed or status.resources is None:
        return _parsed(wanted)
    total = {} if _is_resize_infeasible(pod) else _parsed(wanted)
    _raise_to(total, _parsed(status.resources.requests))
    _raise_to(total, _parsed(status.allocated_resources or {}))
    return total


def _is_pod_level(resource: str) -> bool:
    return resource in ("cpu", "memory") or resource.startswith("hugepages-")


def _is_counted(resource: str) -> bool:
    """Native resources that a node shares out, and whatever has a slash in its name."""
    native = resource in ("cpu", "memory", "ephemeral-storage")
    return native or "/" in resource or resource.startswith(("hugepages-", "attachable-volumes-"))


def _parsed(quantities: Mapping[str, str]) -> Nanos:
    return {resource: _amount(text) for resource, text in quantities.items()}


def _amount(text: str) -> int:
    try:
        return max(0, nano_units(text))
    except MalformedQuantity:
        return _NO_QUANTITY


def _add(total: Nanos, more: Mapping[str, int]) -> None:
    for resource, amount in more.items():
        total[resource] = total.get(resource, 0) + amount


def _raise_to(total: Nanos, other: Mapping[str, int]) -> None:
    for resource, amount in other.items():
        total[resource] = max(total.get(resource, 0), amount)
