"""The one patch that pins, tolerates and ungates a launcher (R10).

What the API server accepts (018, 019, 021; ValidatePodUpdate): the number of required terms stays, each new
term starts with the old one as it stands, an empty term takes nothing, a pod without required terms takes
any. So the pin is appended to every term that is not empty, or becomes the only one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from model.names import GATE
from model.pods import PodSpec
from model.taints import Toleration

Json = dict[str, Any]
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def spec_digest(spec: PodSpec) -> str:
    """Tells whether a launcher still asks for what the pass saw: 16 hex digits over the fields we read."""
    # Sorted: maps keep the order they came in, and the log's differs from the API server's.
    text = orjson.dumps(spec.model_dump(), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(text).hexdigest()[:16]


def pin_patch(pod: Mapping[str, Any], node: str, tolerations: Iterable[Toleration]) -> Json:
    """The merge patch for a live pod, with its resourceVersion as precondition; foreign gates stay."""
    spec = pod["spec"]
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    terms = pinned_terms(required.get("nodeSelectorTerms") or [], node)
    gates = [gate for gate in spec.get("schedulingGates") or [] if gate.get("name") != GATE]
    patch: Json = {
        "affinity": {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": terms}}},
        "schedulingGates": gates,
    }
    added = [t.model_dump(by_alias=True, exclude_defaults=True) for t in tolerations]
    if added:
        patch["tolerations"] = [*(spec.get("tolerations") or []), *added]
    return {"metadata": {"resourceVersion": pod["metadata"]["resourceVersion"]}, "spec": patch}


def ungate_patch(pod: Mapping[str, Any]) -> Json:
    """The merge patch that takes our gate off and changes nothing else (R30)."""
    gates = [gate for gate in pod["spec"].get("schedulingGates") or [] if gate.get("name") != GATE]
    version = pod["metadata"]["resourceVersion"]
    return {"metadata": {"resourceVersion": version}, "spec": {"schedulingGates": gates}}


def pinned_terms(terms: Iterable[Mapping[str, Any]], node: str) -> list[Json]:
    """Every term that is not empty with the pin appended; one term with the pin where there is none."""
    pin = {"key": "metadata.name", "operator": "In", "values": [node]}
    pinned = [_with_pin(term, pin) for term in terms]
    return pinned or [{"matchFields": [pin]}]


def _with_pin(term: Mapping[str, Any], pin: Json) -> Json:
    if not term.get("matchExpressions") and not term.get("matchFields"):
        return dict(term)
    return {**term, "matchFields": [*(term.get("matchFields") or []), pin]}
