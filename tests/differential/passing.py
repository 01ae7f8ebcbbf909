"""The same pods as launchers before a whole pass: it pins each to a node that the scheduler would take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from model.claims import GPUClass
from model.meta import Lean
from model.names import GATE
from model.nodes import Node
from model.pods import Pod
from model.requests import effective_request
from tests.binder.deciding import decide, placed_on
from tests.builders import gpu_class, launcher, state, vm, vmi
from tests.differential.running import Case
from tests.differential.verdicts import lasting, model_of
from tests.differential.words import GPU


def wrong_pins(objects: Iterable[Mapping[str, Any]], cases: Iterable[Case]) -> tuple[int, list[str]]:
    """How many of the pods ask for GPUs, and a line for each that is pinned, or waits, where it must not."""
    cluster = [model_of(one) for one in objects]
    cordoned = {one.metadata.name for one in cluster if isinstance(one, Node) and one.spec.unschedulable}
    asking = [case for case in cases if effective_request(Pod.model_validate(case.pod)).get(GPU)]
    lines = []
    for case in asking:
        node, allowed = _pinned_to(cluster, case), case.nodes - cordoned
        if node not in (allowed or {None}):
            lines.append(f"{case.pod['metadata']['name']}: pinned to {node}, not one of {sorted(allowed)}")
    return len(asking), lines


def _pinned_to(cluster: list[Lean], case: Case) -> str | None:
    pod = Pod.model_validate(case.pod)
    spec = pod.spec.model_copy(update={"scheduling_gates": launcher(gates=[GATE]).spec.scheduling_gates})
    ours = pod.model_copy(update={"spec": spec, "metadata": launcher().metadata})
    guest: list[Lean] = [vm(), vmi(), ours, _tolerating(pod)]
    return next(iter(placed_on(decide(state(*cluster, *guest))).values()), None)


def _tolerating(pod: Pod) -> GPUClass:
    """A class that tolerates what the pod does, numbers included."""
    sold = gpu_class(resource=GPU)
    return sold.model_copy(
        update={"spec": sold.spec.model_copy(update={"tolerations": lasting(pod.spec.tolerations)})}
    )
