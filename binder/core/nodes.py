"""Which nodes a selector, a toleration or a class accepts: the scheduler's own rules.

Rules read in kubernetes/kubernetes: component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go and
api/core/v1/toleration.go. Terms are ORed, the requirements of a term ANDed; an empty term matches nothing; a
requirement that cannot be read makes its term match nothing and leaves the other terms alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from model.claims import GPUClass
from model.nodes import Node
from model.pods import Pod
from model.selectors import LabelSelector, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from model.taints import Taint, Toleration

_INT64 = range(-(2**63), 2**63)
_MAX_INT64_DIGITS = 19
_PLAIN = re.compile(r"0|-?[1-9][0-9]*")
"""As tolerations and taints write numbers: no plus, no leading zero."""


def class_accepts(gpu_class: GPUClass, node: Node) -> bool:
    """R8a: selector, taints, Ready, schedulable, not being deleted.

    Where it tolerates a NoExecute taint only for a while it takes nothing new: R20 would move it away again.
    """
    return (
        node.is_ready
        and not node.spec.unschedulable
        and node.metadata.deletion_timestamp is None
        and has_labels(node, gpu_class.spec.node_selector)
        and tolerates_all(gpu_class.spec.tolerations, node.spec.taints)
        and not any(is_timed(gpu_class.spec.tolerations, taint) for taint in node.spec.taints)
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


@dataclass(frozen=True, slots=True)
class FreeVolume:
    """A volume that no claim has yet, and the nodes that reach it; None: all."""

    name: str
    nodes: NodeSelector | None


@dataclass(frozen=True, slots=True)
class VolumeWish:
    """An unbound claim: where its volume can be made, and the free ones that would do, best first."""

    made_on: NodeSelector
    volumes: tuple[FreeVolume, ...]


@dataclass(frozen=True, slots=True)
class VolumeChoice:
    """Claims of one pod that may want the same free volumes: each takes its own, in this order."""

    wishes: tuple[VolumeWish, ...]


def selector_matches(selector: NodeSelector | VolumeChoice, node: Node) -> bool:
    """Whether some term accepts the node, or whether it has a volume for each of the claims."""
    if isinstance(selector, VolumeChoice):
        return _has_volumes(selector, node)
    return any(_term_matches(term, node) for term in selector.node_selector_terms)


def labels_match(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Whether an object's labels fulfil every condition of a selector."""
    return all(labels.get(key) == value for key, value in selector.match_labels.items()) and all(
        _holds(requirement, labels) for requirement in selector.match_expressions
    )


def tolerates_all(tolerations: Iterable[Toleration], taints: Iterable[Taint]) -> bool:
    """Whether every NoSchedule and NoExecute taint is tolerated; PreferNoSchedule keeps nothing away.

    Linear in both: a taint is looked up, not compared with each toleration.
    """
    barring = [taint for taint in taints if taint.effect in ("NoSchedule", "NoExecute")]
    if not barring:
        return True
    known = _Tolerated.of(tolerations)
    return all(map(known.covers, barring))


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """An empty effect is every effect, an empty key with Exists every taint, an empty operator Equal.

    Gt and Lt compare the taint's value with the toleration's as whole numbers of 64 bits. A pod carries them
    only where the API server has served them.
    """
    return _Tolerated.of((toleration,)).covers(taint)


def is_timed(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether what tolerates the NoExecute taint ends some time: the shortest counts, as in Kubernetes."""
    if taint.effect != "NoExecute":
        return False
    return _Tolerated.of(t for t in tolerations if t.toleration_seconds is not None).covers(taint)


@dataclass(slots=True)
class _Tolerated:
    """Tolerations by what they look for. Keys and effects may be empty: every one."""

    exists: set[tuple[str, str]] = field(default_factory=set)
    equal: set[tuple[str, str, str]] = field(default_factory=set)
    above: dict[tuple[str, str], int] = field(default_factory=dict)
    """By key and effect: what a taint's value must exceed, the least of several."""
    below: dict[tuple[str, str], int] = field(default_factory=dict)

    @classmethod
    def of(cls, tolerations: Iterable[Toleration]) -> Self:
        known = cls()
        for one in tolerations:
            known._add(one)
        return known

    def covers(self, taint: Taint) -> bool:
        key, value, effect = taint.key, taint.value, taint.effect
        for its_effect in (effect, ""):
            if (key, its_effect) in self.exists or ("", its_effect) in self.exists:
                return True
            if (key, value, its_effect) in self.equal:
                return True
            if (self.above or self.below) and self._compares(value, (key, its_effect)):
                return True
        return False

    def _add(self, one: Toleration) -> None:
        place = (one.key, one.effect)
        match one.operator:
            case "Exists":
                self.exists.add(place)
            case "" | "Equal" if one.key:
                self.equal.add((one.key, one.value, one.effect))
            case "Gt" | "Lt" if one.key and (bound := _plain_int64(one.value)) is not None:
                if one.operator == "Gt":
                    self.above[place] = min(bound, self.above.get(place, bound))
                else:
                    self.below[place] = max(bound, self.below.get(place, bound))

    def _compares(self, value: str, place: tuple[str, str]) -> bool:
        number = _plain_int64(value)
        if number is None:
            return False
        above, below = self.above.get(place), self.below.get(place)
        return (above is not None and number > above) or (below is not None and number < below)


def _has_volumes(choice: VolumeChoice, node: Node) -> bool:
    chosen: set[str] = set()
    for wish in choice.wishes:
        for volume in wish.volumes:
            if volume.name not in chosen and (volume.nodes is None or selector_matches(volume.nodes, node)):
                chosen.add(volume.name)
                break
        else:
            if not selector_matches(wish.made_on, node):
                return False
    return True


def _term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    labels = node.metadata.labels
    return all(_holds(requirement, labels) for requirement in term.match_expressions) and all(
        _field_matches(requirement, node.metadata.name) for requirement in term.match_fields
    )


def _holds(requirement: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    return requirement.is_label_condition and _label_matches(requirement, labels)


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
    """Base 10, as Go's ParseInt reads it; a plus begins no value of a label, toleration or taint."""
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits.lstrip("0")) > _MAX_INT64_DIGITS:
        return None
    number = int(text)
    return number if number in _INT64 else None


def _plain_int64(text: str) -> int | None:
    return _int64(text) if _PLAIN.fullmatch(text) else None


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
