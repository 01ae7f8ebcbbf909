"""Which nodes a selector, a toleration or a class accepts: the scheduler's own rules.

Rules read in kubernetes/kubernetes: component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go and
api/core/v1/toleration.go. Terms are ORed, the requirements of a term ANDed; an empty term matches nothing; a
requirement that cannot be read makes its term match nothing and leaves the other terms alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from model.claims import GPUClass
from model.nodes import Node
from model.pods import Pod
from model.selectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from model.taints import Taint, Toleration

_INT64 = range(-(2**63), 2**63)
_MAX_INT64_DIGITS = 19


def class_accepts(gpu_class: GPUClass, node: Node) -> bool:
    """R8a: selector, taints, Ready, schedulable, not being deleted."""
    return (
        node.is_ready
        and not node.spec.unschedulable
        and node.metadata.deletion_timestamp is None
        and has_labels(node, gpu_class.spec.node_selector)
        and tolerates_all(gpu_class.spec.tolerations, node.spec.taints)
    )


def pod_accepts(pod: Pod, node: Node) -> bool:
    """R8b: the pod's nodeSelector and its required node affinity."""
    if not has_labels(node, pod.spec.node_selector):
        return False
    return pod.required_affinity is None or selector_matches(pod.required_affinity, node)


def has_labels(node: Node, wanted: Mapping[str, str]) -> bool:
    """Whether the node carries every label with exactly its value."""
    labels = node.metadata.labels
    return all(labels.get(key) == value for key, value in wanted.items())


def selector_matches(selector: NodeSelector, node: Node) -> bool:
    """Whether some term accepts the node."""
    return any(_term_matches(term, node) for term in selector.node_selector_terms)


def tolerates_all(tolerations: Iterable[Toleration], taints: Iterable[Taint]) -> bool:
    """Whether every NoSchedule and NoExecute taint is tolerated; PreferNoSchedule keeps nothing away."""
    known = tuple(tolerations)
    return all(
        any(tolerates(toleration, taint) for toleration in known)
        for taint in taints
        if taint.effect in ("NoSchedule", "NoExecute")
    )


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """An empty effect is every effect, an empty key with Exists every taint, an empty operator Equal."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "Exists":
            return True
        case "" | "Equal":
            return bool(toleration.key) and toleration.value == taint.value
        case _:
            return False


def _term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    labels = node.metadata.labels
    return all(_label_matches(requirement, labels) for requirement in term.match_expressions) and all(
        _field_matches(requirement, node.metadata.name) for requirement in term.match_fields
    )


def _label_matches(requirement: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    values = requirement.values
    match requirement.operator:
        case "In":
            return bool(values) and value is not None and value in values
        case "NotIn":
            return bool(values) and (value is None or value not in values)
        case "Exists":
            return not values and value is not None
        case "DoesNotExist":
            return not values and value is None
        case "Gt" | "Lt":
            return _compares(requirement, value)
        case _:
            return False


def _compares(requirement: NodeSelectorRequirement, value: str | None) -> bool:
    if value is None or len(requirement.values) != 1:
        return False
    have, bound = _int64(value), _int64(requirement.values[0])
    if have is None or bound is None:
        return False
    return have > bound if requirement.operator == "Gt" else have < bound


def _int64(text: str) -> int | None:
    """Base 10 with an optional sign, as Go's ParseInt reads it."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isascii() or not digits.isdigit() or len(digits.lstrip("0")) > _MAX_INT64_DIGITS:
        return None
    number = int(text)
    return number if number in _INT64 else None


def _field_matches(requirement: NodeSelectorRequirement, node_name: str) -> bool:
    if requirement.key != "metadata.name" or len(requirement.values) != 1:
        return False
    match requirement.operator:
        case "In":
            return node_name == requirement.values[0]
        case "NotIn":
            return node_name != requirement.values[0]
        case _:
            return False
