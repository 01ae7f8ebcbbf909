"""What else keeps the scheduler from a node: constraints that placement does not model.

They speak of other pods, of devices that DRA allocates, of ports, or are judged by another scheduler. A set
is placed without looking at them, so its reason says that the scheduler may still refuse the node
(docs/scheduler.md). Where it does, R13 (ii) applies.
"""

from __future__ import annotations

from collections.abc import Iterator

from model.pods import Pod

DEFAULT_SCHEDULERS = ("", "default-scheduler")
MAX_NAME = 63
"""Characters of a name that somebody chose, as far as a message repeats it."""


def foreign_constraints(pod: Pod) -> tuple[str, ...]:
    """Those that the pod carries, in words, always in the same order; empty for nearly every launcher."""
    return tuple(_found(pod))


def caution(pod: Pod) -> str:
    """What a set's message says of them, or the empty string."""
    found = foreign_constraints(pod)
    return f"the scheduler may still refuse: {', '.join(found)}" if found else ""


def _found(pod: Pod) -> Iterator[str]:
    spec = pod.spec
    affinity = spec.affinity
    if affinity and affinity.pod_affinity and affinity.pod_affinity.required:
        yield "pod affinity"
    if affinity and affinity.pod_anti_affinity and affinity.pod_anti_affinity.required:
        yield "pod anti-affinity"
    if any(one.when_unsatisfiable != "ScheduleAnyway" for one in spec.topology_spread_constraints):
        yield "topology spread"
    if spec.resource_claims:
        yield "resource claims"
    containers = (*spec.containers, *spec.init_containers)
    if any(port.host_port for container in containers for port in container.ports):
        yield "host ports"
    if spec.scheduler_name not in DEFAULT_SCHEDULERS:
        yield f"scheduler {spec.scheduler_name[:MAX_NAME]}"
