"""What the API server makes of a pod and allows to be changed of one: gates, affinity, defaults.

Rules read in kubernetes/kubernetes pkg/apis/core/validation (ValidatePodUpdate, validateNodeAffinityMutation)
and pkg/registry/core/pod/strategy.go; all checked against a real server by the contract suite.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from kube.port import Json
from model.quantity import MalformedQuantity, parse_quantity
from model.resource_names import is_extended

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_DEFAULT_SECONDS = 300
_LEFT_OUT_EMPTY = ("schedulingGates", "tolerations", "nodeSelector", "volumes", "initContainers")
_ONLY_ADDITIONS = "only additions are allowed (no mutations or deletions)"
GATED = "Scheduling is blocked due to non-empty scheduling gates"


def prepare_pod(pod: Json, now: str) -> None:
    """Fill in what the API server defaults at creation; the status is its own, whatever was sent."""
    spec = pod.setdefault("spec", {})
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("enableServiceLinks", True)
    spec.setdefault("priority", 0)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    for container in [*spec.get("containers", []), *spec.get("initContainers", [])]:
        resources = container.setdefault("resources", {})
        if resources.get("limits"):
            resources["requests"] = {**resources["limits"], **resources.get("requests", {})}
    _tolerate_brief_trouble(spec)
    drop_empty(pod)
    pod["status"] = {"phase": "Pending", "qosClass": "Burstable"}
    if spec.get("schedulingGates"):
        pod["status"]["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": now,
                "reason": "SchedulingGated",
                "message": GATED,
            }
        ]


def drop_empty(pod: Json) -> None:
    """Take out empty lists and maps of the spec: the server's types leave them out."""
    for name in _LEFT_OUT_EMPTY:
        if not pod["spec"].get(name, True):
            del pod["spec"][name]


def creation_faults(pod: Json) -> Iterator[str]:
    """What is wrong with a new pod."""
    spec = pod.get("spec", {})
    if not spec.get("containers"):
        yield "spec.containers: Required value"
    if spec.get("nodeName") and spec.get("schedulingGates"):
        yield "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"
    names = [gate.get("name") for gate in spec.get("schedulingGates") or []]
    yield from (
        f"spec.schedulingGates: Duplicate value: {n!r}" for n in {n for n in names if names.count(n) > 1}
    )
    for container in [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]:
        yield from _resource_faults(container.get("resources") or {})
    for term in _terms(spec) or []:
        for field in term.get("matchFields") or []:
            if field.get("key") != "metadata.name" or len(field.get("values") or []) != 1:
                yield "spec.affinity: Invalid value: matchFields takes metadata.name and exactly one value"


def _resource_faults(resources: Json) -> Iterator[str]:
    """Extended resources come in whole units, and cannot be overcommitted."""
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for name in sorted({*requests, *limits}):
        try:
            amounts = {parse_quantity(side[name]) for side in (requests, limits) if name in side}
        except MalformedQuantity as error:
            yield f"resources[{name}]: Invalid value: {error}"
            continue
        if not is_extended(name):
            continue
        if any(amount.denominator != 1 for amount in amounts):
            yield f"resources[{name}]: Invalid value: must be an integer"
        if name not in limits or len(amounts) > 1:
            yield f"resources.limits[{name}]: Invalid value: must be equal to the request"


def update_faults(old: Json, new: Json) -> Iterator[str]:
    """What a change of a pod's spec may not do."""
    before, after = copy.deepcopy(old["spec"]), copy.deepcopy(new.get("spec", {}))
    yield from creation_faults(new) if after.get("nodeName") == before.get("nodeName") else ()
    was_gated = bool(before.get("schedulingGates"))
    old_gates = [gate["name"] for gate in before.pop("schedulingGates", None) or []]
    new_gates = [gate["name"] for gate in after.pop("schedulingGates", None) or []]
    if added := [name for name in new_gates if name not in old_gates]:
        text = "only deletion is allowed, but found new scheduling gate"
        yield f"spec.schedulingGates: Forbidden: {text} {added[0]!r}"
    yield from _toleration_faults(before.pop("tolerations", None) or [], after.pop("tolerations", None) or [])
    if was_gated:
        yield from _directive_faults(before, after)
    for container in [*before.get("containers", []), *after.get("containers", [])]:
        container.pop("image", None)
    for spec in (before, after):
        spec.pop("activeDeadlineSeconds", None)
        spec.pop("terminationGracePeriodSeconds", None)
    if before != after:
        yield (
            "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
            "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
            "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow "
            "it to be set to 1 if it was previously negative)"
        )


def _directive_faults(before: Json, after: Json) -> Iterator[str]:
    """A gated pod's node selector may be added to, its node affinity tightened; both are taken out."""
    old_selector, new_selector = before.pop("nodeSelector", None) or {}, after.pop("nodeSelector", None) or {}
    if any(new_selector.get(key) != value for key, value in old_selector.items()):
        yield f"spec.nodeSelector: Invalid value: {_ONLY_ADDITIONS}"
    old_terms, new_terms = _terms(before), _terms(after)
    if old_terms is not None:
        yield from _term_faults(old_terms, new_terms or [])
    for spec in (before, after):
        affinity = dict(spec.get("affinity") or {})
        affinity.pop("nodeAffinity", None)
        spec["affinity"] = affinity


def _term_faults(old_terms: list[Json], new_terms: list[Json]) -> Iterator[str]:
    where = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    if len(old_terms) != len(new_terms):
        yield f"{where}: Invalid value: no additions/deletions to non-empty list are allowed"
        return
    for index, (old, new) in enumerate(zip(old_terms, new_terms, strict=True)):
        was_empty = not old.get("matchExpressions") and not old.get("matchFields")
        if was_empty and (new.get("matchExpressions") or new.get("matchFields")):
            yield f"{where}[{index}]: Invalid value: no additions to empty NodeSelectorTerms are allowed"
        for part in ("matchExpressions", "matchFields"):
            kept = old.get(part) or []
            if (new.get(part) or [])[: len(kept)] != kept:
                yield f"{where}[{index}]: Invalid value: {_ONLY_ADDITIONS}"


def _toleration_faults(before: list[Json], after: list[Json]) -> Iterator[str]:
    if any(toleration not in after for toleration in before):
        yield "spec.tolerations: Forbidden: existing toleration can not be modified"


def _terms(spec: Json) -> list[Json] | None:
    required: Any = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED)
    return None if required is None else required.get("nodeSelectorTerms") or []


def _tolerate_brief_trouble(spec: Json) -> None:
    """DefaultTolerationSeconds: five minutes of a node that is not ready or unreachable."""
    tolerations = spec.setdefault("tolerations", [])
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(
            t.get("key") in (key, None, "") and t.get("effect") in (None, "", "NoExecute")
            for t in tolerations
        ):
            tolerations.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _DEFAULT_SECONDS,
                }
            )
