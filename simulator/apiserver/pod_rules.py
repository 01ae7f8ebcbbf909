"""What the API server allows of a pod: at its creation, and in a change of its spec.

Rules read in kubernetes pkg/apis/core/validation (ValidatePodUpdate, validateNodeAffinityMutation); all
checked against a real server by the contract suite.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

from kube.port import Json
from simulator.apiserver.container_rules import container_faults
from simulator.apiserver.names import subdomain_fault
from simulator.apiserver.object_rules import quoted
from simulator.apiserver.placement_rules import TERMS, placement_faults, required_terms

_ONLY_ADDITIONS = "only additions are allowed (no mutations or deletions)"
_MUTABLE = (
    "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to "
    "existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
    "previously negative)"
)
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_MAX_DEADLINE_S = 2**31 - 1


def pod_faults(pod: Json) -> Iterator[str]:
    """What is wrong with a pod, apart from what it was before."""
    spec = pod["spec"]
    yield from container_faults(spec)
    yield from placement_faults(spec)
    if spec["restartPolicy"] not in _RESTART_POLICIES:
        supported = ", ".join(map(quoted, _RESTART_POLICIES))
        text = f"Unsupported value: {quoted(spec['restartPolicy'])}: supported values: {supported}"
        yield f"spec.restartPolicy: {text}"
    if spec.get("nodeName") and (fault := subdomain_fault(spec["nodeName"])):
        yield f"spec.nodeName: Invalid value: {quoted(spec['nodeName'])}: {fault}"
    names = [volume.get("name", "") for volume in spec.get("volumes") or []]
    for index, name in enumerate(names):
        if name in names[:index]:
            yield f"spec.volumes[{index}].name: Duplicate value: {quoted(name)}"
    deadline = spec.get("activeDeadlineSeconds", 1)
    if not 1 <= deadline <= _MAX_DEADLINE_S:
        text = f"must be between 1 and {_MAX_DEADLINE_S}, inclusive"
        yield f"spec.activeDeadlineSeconds: Invalid value: {deadline}: {text}"


def creation_faults(pod: Json) -> Iterator[str]:
    """What is wrong with a new pod alone."""
    if pod["spec"].get("nodeName") and pod["spec"].get("schedulingGates"):
        yield "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"


def update_faults(old: Json, new: Json) -> Iterator[str]:
    """What a change of a pod's spec may not do."""
    before, after = copy.deepcopy(old["spec"]), copy.deepcopy(new["spec"])
    if len(before["containers"]) != len(after.get("containers") or []):
        yield "spec.containers: Forbidden: pod updates may not add or remove containers"
        return
    was_gated = bool(before.get("schedulingGates"))
    yield from _gate_faults(
        before.pop("schedulingGates", None) or [], after.pop("schedulingGates", None) or []
    )
    yield from _toleration_faults(before.pop("tolerations", None) or [], after.pop("tolerations", None) or [])
    if was_gated:
        yield from _directive_faults(before, after)
    for spec in (before, after):
        spec.pop("activeDeadlineSeconds", None)
        for container in [*spec["containers"], *(spec.get("initContainers") or [])]:
            container.pop("image", None)
    if before != after:
        yield _MUTABLE


def _gate_faults(before: list[Json], after: list[Json]) -> Iterator[str]:
    had = [gate["name"] for gate in before]
    for index, gate in enumerate(after):
        if gate.get("name") not in had:
            text = "only deletion is allowed, but found new scheduling gate"
            yield f"spec.schedulingGates[{index}].name: Forbidden: {text} '{gate.get('name')}'"


def _directive_faults(before: Json, after: Json) -> Iterator[str]:
    """A gated pod's node selector may be added to, its node affinity tightened; both are taken out."""
    old_selector, new_selector = before.pop("nodeSelector", None) or {}, after.pop("nodeSelector", None) or {}
    if any(new_selector.get(key) != value for key, value in old_selector.items()):
        text = _ONLY_ADDITIONS.replace("additions are", "additions to spec.nodeSelector are")
        yield f"spec.nodeSelector: Invalid value: {quoted(new_selector)}: {text}"
    old_terms = required_terms(before)
    if old_terms is not None:
        yield from _term_faults(old_terms, required_terms(after))
    for spec in (before, after):
        affinity = dict(spec.get("affinity") or {})
        affinity.pop("nodeAffinity", None)
        spec["affinity"] = affinity


def _term_faults(old_terms: list[Json], new_terms: list[Json] | None) -> Iterator[str]:
    if new_terms is None or len(old_terms) != len(new_terms):
        text = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        yield f"{TERMS}: Invalid value: {quoted(new_terms)}: {text}"
        return
    for index, (old, new) in enumerate(zip(old_terms, new_terms, strict=True)):
        was_empty = not old.get("matchExpressions") and not old.get("matchFields")
        is_empty = not new.get("matchExpressions") and not new.get("matchFields")
        if (was_empty and not is_empty) or any(
            (new.get(part) or [])[: len(old.get(part) or [])] != (old.get(part) or [])
            for part in ("matchExpressions", "matchFields")
        ):
            yield f"{TERMS}[{index}]: Invalid value: {quoted(new)}: {_ONLY_ADDITIONS}"


def _toleration_faults(before: list[Json], after: list[Json]) -> Iterator[str]:
    """Tolerations stay; only how long each lasts may change."""
    kept = [_lasting(toleration) for toleration in after]
    if any(_lasting(toleration) not in kept for toleration in before):
        text = "existing toleration can not be modified except its tolerationSeconds"
        yield f"spec.tolerations: Forbidden: {text}"


def _lasting(toleration: Json) -> Json:
    return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}
