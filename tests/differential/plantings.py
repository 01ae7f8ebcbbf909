"""Mistakes that are easily made, one at a time: the comparison must notice each of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from binder.core import nodes, volumes
from model import requests
from model.nodes import Node
from model.pods import Pod
from model.selectors import NodeSelectorTerm
from model.taints import Taint, Toleration

Patch = Callable[[pytest.MonkeyPatch], None]
label_matches, term_matches = nodes._label_matches, nodes._term_matches
selector_matches, pod_accepts, compares = nodes.selector_matches, nodes.pod_accepts, nodes._compares
tolerated, request_of = nodes._Tolerated, requests.effective_request
demands, made_on = volumes._demands, volumes._made_on


def changed(module: Any, name: str, value: Any) -> Patch:
    return lambda patch: patch.setattr(module, name, value)


def wherever_imported(name: str, right: Any, wrong: Any) -> Patch:
    """In every module of the product that has taken the function over."""

    def patch(patch: pytest.MonkeyPatch) -> None:
        for module in [one for path, one in sys.modules.items() if path.startswith(("binder.", "model."))]:
            if getattr(module, name, None) is right:
                patch.setattr(module, name, wrong)

    return patch


def empty_term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    return not (term.match_expressions or term.match_fields) or term_matches(term, node)


def all_terms_must_match(selector: Any, node: Node) -> bool:
    if isinstance(selector, nodes.VolumeChoice):
        return selector_matches(selector, node)
    return all(term_matches(term, node) for term in selector.node_selector_terms)


def selector_or_affinity(pod: Pod, node: Node) -> bool:
    if pod.required_affinity is None or not pod.spec.node_selector:
        return pod_accepts(pod, node)
    return nodes.has_labels(node, pod.spec.node_selector) or nodes.selector_matches(
        pod.required_affinity, node
    )


def fields_are_ignored(term: NodeSelectorTerm, node: Node) -> bool:
    return term_matches(term.model_copy(update={"match_fields": ()}), node)


def not_in_needs_the_label(requirement: Any, labels: Mapping[str, str]) -> bool:
    return label_matches(requirement, labels) and (
        requirement.operator != "NotIn" or requirement.key in labels
    )


def bounds_are_included(requirement: Any, value: str | None) -> bool:
    return compares(requirement, value) or (value is not None and [value] == list(requirement.values))


def python_reads_numbers(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def with_tolerations(change: Callable[[Toleration], Toleration]) -> Patch:
    class Changed(tolerated):  # type: ignore[misc]
        def _add(self, one: Toleration) -> None:
            super()._add(change(one))

    return changed(nodes, "_Tolerated", Changed)


def of_taints(change: Callable[[Taint], Taint]) -> Patch:
    def tolerates_all(tolerations: Any, taints: Any) -> bool:
        known = tolerated.of(tolerations)
        return all(known.covers(taint) for taint in map(change, taints))

    return changed(nodes, "tolerates_all", tolerates_all)


def number_as_text(one: Toleration) -> Toleration:
    return one.model_copy(update={"operator": "Equal"}) if one.operator in ("Gt", "Lt") else one


def without_effect(one: Toleration) -> Toleration:
    return one.model_copy(update={"effect": ""})


def missing_operator_is_exists(one: Toleration) -> Toleration:
    return one if one.operator else one.model_copy(update={"operator": "Exists"})


def of_pods(change: Callable[[Pod], Mapping[str, Any]], field: str = "spec") -> Patch:
    def request(pod: Pod) -> Any:
        part = getattr(pod, field).model_copy(update=dict(change(pod)))
        return request_of(pod.model_copy(update={field: part}))

    return wherever_imported("effective_request", request_of, request)


def plain_init_containers(pod: Pod) -> Mapping[str, Any]:
    return {
        "init_containers": tuple(
            c.model_copy(update={"restart_policy": None}) for c in pod.spec.init_containers
        )
    }


def init_containers_beside(pod: Pod) -> Mapping[str, Any]:
    return {"init_containers": (), "containers": (*pod.spec.containers, *pod.spec.init_containers)}


def zero_is_wanted(patch: pytest.MonkeyPatch) -> None:
    def request(pod: Pod) -> Any:
        named = {name for one in pod.spec.containers for name in one.resources.requests}
        return dict.fromkeys(sorted(named), 0) | request_of(pod)

    patch.setattr(requests, "effective_request", request)


def claims_as(**changes: Any) -> Patch:
    """Claims are read as if parts of them were otherwise."""

    def changed_demands(claim: Any, state: Any) -> Any:
        part = {name: getattr(claim, name).model_copy(update=update) for name, update in changes.items()}
        return demands(claim.model_copy(update=part), state)

    return changed(volumes, "_demands", changed_demands)


def lost_is_bound(claim: Any, state: Any) -> Any:
    return demands(_in_phase(claim, "Bound") if claim.status.phase == "Lost" else claim, state)


def half_bound_is_bound(claim: Any, state: Any) -> Any:
    is_half = claim.status.phase == "Pending" and claim.spec.volume_name
    return demands(_in_phase(claim, "Bound") if is_half else claim, state)


def unbound_is_free(claim: Any, state: Any) -> Any:
    found = demands(claim, state)
    is_unbound = isinstance(found, volumes._Pending) and not claim.spec.volume_name
    return [] if is_unbound else found


def _in_phase(claim: Any, phase: str) -> Any:
    return claim.model_copy(update={"status": claim.status.model_copy(update={"phase": phase})})


def volume_fields_count(volume: Any) -> Any:
    return volume.spec.node_affinity.required if volume.spec.node_affinity else None


def each_volume_alone(unbound: Any) -> Any:
    found = (volumes._alone(one.wish) for one in unbound)
    return tuple(one for one in found if one is not None)


def topologies_are_ignored(storage_class: Any) -> Any:
    return made_on(storage_class.model_copy(update={"allowed_topologies": ()}))


PLANTINGS: dict[str, Patch] = {
    "an empty term matches": changed(nodes, "_term_matches", empty_term_matches),
    "all terms must match": changed(nodes, "selector_matches", all_terms_must_match),
    "nodeSelector or affinity": changed(nodes, "pod_accepts", selector_or_affinity),
    "matchFields are ignored": changed(nodes, "_term_matches", fields_are_ignored),
    "NotIn needs the label": changed(nodes, "_label_matches", not_in_needs_the_label),
    "Gt and Lt include the bound": changed(nodes, "_compares", bounds_are_included),
    "numbers as Python reads them": changed(nodes, "_int64", python_reads_numbers),
    "a toleration is for every effect": with_tolerations(without_effect),
    "a missing operator is Exists": with_tolerations(missing_operator_is_exists),
    "Gt and Lt compare texts": with_tolerations(number_as_text),
    "PreferNoSchedule keeps away": of_taints(
        lambda taint: taint.model_copy(update={"effect": taint.effect.replace("Prefer", "")})
    ),
    "NoExecute keeps nothing away": of_taints(
        lambda taint: Taint() if taint.effect != "NoSchedule" else taint
    ),
    "a sidecar is an init container": of_pods(plain_init_containers),
    "init containers run beside the others": of_pods(init_containers_beside),
    "overhead is forgotten": of_pods(lambda _: {"overhead": {}}),
    "pod-level requests are forgotten": of_pods(lambda pod: {"resources": type(pod.spec.resources)()}),
    "resizes are forgotten": of_pods(
        lambda _: {"container_statuses": (), "init_container_statuses": (), "conditions": ()}, "status"
    ),
    "an infeasible resize counts": of_pods(lambda _: {"conditions": ()}, "status"),
    "zero does not fit on a full node": zero_is_wanted,
    "a claim being deleted is as good as any": claims_as(metadata={"deletion_timestamp": None}),
    "a Lost claim is bound": changed(volumes, "_demands", lost_is_bound),
    "a half bound claim is bound": changed(volumes, "_demands", half_bound_is_bound),
    "an unbound claim allows every node": changed(volumes, "_demands", unbound_is_free),
    "fields of a volume's affinity count": changed(volumes, "_affinity", volume_fields_count),
    "zone labels of volumes are ignored": changed(volumes, "_zones", lambda _: ()),
    "topologies of a class are ignored": changed(volumes, "_made_on", topologies_are_ignored),
    "free volumes are ignored": changed(volumes, "_could_serve", lambda *_: False),
    "any free volume will do": changed(volumes, "_size", lambda _: 0),
    "two claims share a free volume": changed(volumes, "_chosen_at_once", each_volume_alone),
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        PLANTINGS[name](patch)
        yield
