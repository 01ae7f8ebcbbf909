"""What the API server finds wrong with where a pod may run: node selector, terms, tolerations, gates.

Rules read in kubernetes pkg/apis/core/validation (ValidateNodeSelectorTerm, ValidateTolerations) and checked
against a real server.
"""

from __future__ import annotations

from collections.abc import Iterator

from kube.port import Json
from simulator.apiserver.names import label_value_fault, qualified_fault, subdomain_fault
from simulator.apiserver.object_rules import quoted

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
TERMS = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def required_terms(spec: Json) -> list[Json] | None:
    """The terms of the required node affinity, or None where a pod has none."""
    node_affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = node_affinity.get(REQUIRED)
    return None if required is None else required.get("nodeSelectorTerms") or []


def placement_faults(spec: Json) -> Iterator[str]:
    """What is wrong with a spec's placement, apart from what it was before."""
    for key, value in (spec.get("nodeSelector") or {}).items():
        if fault := qualified_fault(key):
            yield f"spec.nodeSelector: Invalid value: {quoted(key)}: {fault}"
        if fault := label_value_fault(value):
            yield f"spec.nodeSelector: Invalid value: {quoted(value)}: {fault}"
    terms = required_terms(spec)
    if terms == []:
        yield f"{TERMS}: Required value: must have at least one node selector term"
    for index, term in enumerate(terms or []):
        yield from _term_faults(term, f"{TERMS}[{index}]")
    preferred = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(PREFERRED) or []
    for index, choice in enumerate(preferred):
        where = f"spec.affinity.nodeAffinity.{PREFERRED}[{index}].preference"
        yield from _term_faults(choice.get("preference") or {}, where)
    for index, toleration in enumerate(spec.get("tolerations") or []):
        yield from _toleration_faults(toleration, f"spec.tolerations[{index}]")
    yield from _gate_faults(spec)


def _term_faults(term: Json, where: str) -> Iterator[str]:
    for index, one in enumerate(term.get("matchExpressions") or []):
        yield from _expression_faults(one, f"{where}.matchExpressions[{index}]")
    for index, one in enumerate(term.get("matchFields") or []):
        yield from _field_faults(one, f"{where}.matchFields[{index}]")


def _expression_faults(one: Json, where: str) -> Iterator[str]:
    operator, values, key = one.get("operator", ""), one.get("values") or [], one.get("key", "")
    match operator:
        case "In" | "NotIn" if not values:
            yield f"{where}.values: Required value: must be specified when `operator` is 'In' or 'NotIn'"
        case "Exists" | "DoesNotExist" if values:
            text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield f"{where}.values: Forbidden: {text}"
        case "Gt" | "Lt" if len(values) != 1:
            text = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            yield f"{where}.values: Required value: {text}"
        case "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt":
            pass
        case _:
            yield f"{where}.operator: Invalid value: {quoted(operator)}: not a valid selector operator"
    if fault := qualified_fault(key):
        yield f"{where}.key: Invalid value: {quoted(key)}: {fault}"


def _field_faults(one: Json, where: str) -> Iterator[str]:
    operator, values, key = one.get("operator", ""), one.get("values") or [], one.get("key", "")
    if operator not in ("In", "NotIn"):
        yield f"{where}.operator: Invalid value: {quoted(operator)}: not a valid selector operator"
    elif len(values) != 1:
        text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield f"{where}.values: Required value: {text}"
    if key != "metadata.name":
        yield f"{where}.key: Invalid value: {quoted(key)}: not a valid field selector key"
    for index, value in enumerate(values):
        if fault := subdomain_fault(value):
            yield f"{where}.values[{index}]: Invalid value: {quoted(value)}: {fault}"


def _toleration_faults(toleration: Json, where: str) -> Iterator[str]:
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    value, effect = toleration.get("value", ""), toleration.get("effect", "")
    if key and (fault := qualified_fault(key)):
        yield f"{where}.key: Invalid value: {quoted(key)}: {fault}"
    if not key and operator != "Exists":
        text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield f"{where}.operator: Invalid value: {quoted(operator)}: {text}"
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield f"{where}.effect: Invalid value: {quoted(effect)}: {text}"
    if operator == "Exists" and value:
        text = "value must be empty when `operator` is 'Exists'"
        yield f"{where}.operator: Invalid value: {quoted(value)}: {text}"
    if operator in ("", "Equal") and (fault := label_value_fault(value)):
        yield f"{where}.operator: Invalid value: {quoted(value)}: {fault}"
    if operator not in ("", "Equal", "Exists"):
        yield f'{where}.operator: Unsupported value: {quoted(operator)}: supported values: "Equal", "Exists"'
    if effect and effect not in _EFFECTS:
        supported = ", ".join(map(quoted, _EFFECTS))
        yield f"{where}.effect: Unsupported value: {quoted(effect)}: supported values: {supported}"


def _gate_faults(spec: Json) -> Iterator[str]:
    names = [gate.get("name", "") for gate in spec.get("schedulingGates") or []]
    for index, name in enumerate(names):
        if fault := qualified_fault(name):
            yield f"spec.schedulingGates[{index}]: Invalid value: {quoted(name)}: {fault}"
        if name in names[:index]:
            yield f"spec.schedulingGates[{index}].name: Duplicate value: {quoted(name)}"
