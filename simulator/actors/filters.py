"""Whether a node takes a pod, as the scheduler's filters say it: selector, affinity, taints, room.

Pure, and on purpose not the binder's own code: the simulated scheduler is an independent judge of the binder.
Read in kubernetes/kubernetes pkg/scheduler/framework/plugins and k8s.io/component-helpers scheduling/corev1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from kube.port import Json
from simulator.actors.quantities import requests

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def accepts(node: Json, pod: Json, free: Mapping[str, Fraction]) -> bool:
    """Whether every filter lets the pod onto the node; `free` is what the node has left."""
    spec = pod["spec"]
    labels = node["metadata"].get("labels") or {}
    required: Any = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED)
    taints = node["spec"].get("taints") or []
    return (
        not node["spec"].get("unschedulable")
        and all(labels.get(key) == value for key, value in (spec.get("nodeSelector") or {}).items())
        and (required is None or some_term_holds(required.get("nodeSelectorTerms") or [], node))
        and all(is_tolerated(taint, spec.get("tolerations") or []) for taint in taints)
        and all(free.get(name, 0) >= amount for name, amount in requests(pod).items() if amount)
    )


def some_term_holds(terms: Sequence[Json], node: Json) -> bool:
    """Terms are ored, what stands in one is anded; an empty term holds for no node (014, 016)."""
    labels = node["metadata"].get("labels") or {}
    fields = {"metadata.name": node["metadata"]["name"]}
    return any(
        (term.get("matchExpressions") or term.get("matchFields"))
        and all(_holds(r, labels) for r in term.get("matchExpressions") or [])
        and all(_holds(r, fields) for r in term.get("matchFields") or [])
        for term in terms
    )


def _holds(requirement: Json, labels: Mapping[str, str]) -> bool:
    value, values = labels.get(requirement["key"]), requirement.get("values") or []
    match requirement["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case operator:
            return _compares(operator, value, values)


def _compares(operator: str, value: str | None, values: Sequence[str]) -> bool:
    """Gt and Lt, on whole numbers alone (012)."""
    found, limit = _whole(value), _whole(values[0] if len(values) == 1 else None)
    if found is None or limit is None:
        return False
    return {"Gt": found > limit, "Lt": found < limit}.get(operator, False)


def _whole(text: str | None) -> int | None:
    """A 64-bit number as Go's ParseInt reads it (012)."""
    digits = (text or "")[1:] if (text or "")[:1] in ("+", "-") else text or ""
    if not (digits.isascii() and digits.isdigit()) or not -(2**63) <= int(text or "") < 2**63:
        return None
    return int(text or "")


def is_tolerated(taint: Json, tolerations: Sequence[Json]) -> bool:
    """Whether the taint keeps no pod with these tolerations away; PreferNoSchedule keeps none away."""
    return taint["effect"] == "PreferNoSchedule" or bool(tolerating(taint, tolerations))


def tolerating(taint: Json, tolerations: Sequence[Json]) -> list[Json]:
    """The tolerations that match the taint (026)."""
    return [
        toleration
        for toleration in tolerations
        if (toleration.get("effect") or "") in ("", taint["effect"])
        and (toleration.get("key") or "") in ("", taint["key"])
        and _tolerates_value(toleration, taint)
    ]


def _tolerates_value(toleration: Json, taint: Json) -> bool:
    """Exists or Equal; the comparisons of newer servers are off by default and match nothing."""
    if toleration.get("operator") == "Exists":
        return True
    is_equal = (toleration.get("operator") or "") in ("", "Equal") and bool(toleration.get("key"))
    return is_equal and (toleration.get("value") or "") == (taint.get("value") or "")
