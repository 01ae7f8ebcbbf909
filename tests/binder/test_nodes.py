"""Which nodes selectors, affinities and tolerations accept (R8a, R8b), as the scheduler reads them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binder.core.nodes import (
    VolumeChoice,
    VolumeWish,
    class_accepts,
    labels_match,
    pod_accepts,
    selector_matches,
    tolerates,
    tolerates_all,
)
from model.selectors import LabelSelector, NodeSelector
from model.taints import Taint, Toleration
from tests.builders import gpu_class, launcher, node

MAX_INT64, MANY = 2**63 - 1, 100_000


def matches(*terms: dict[str, Any], name: str = "gpu-1", **labels: str) -> bool:
    selector = NodeSelector.model_validate({"nodeSelectorTerms": list(terms)})
    return selector_matches(selector, node(name, labels=labels))


def label(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def field(operator: str, *values: str, key: str = "metadata.name") -> dict[str, Any]:
    return {"matchFields": [{"key": key, "operator": operator, "values": list(values)}]}


def test_terms_are_ored_and_conditions_of_a_term_anded() -> None:
    in_a, gold = label("zone", "In", "a"), label("tier", "In", "gold")
    both = {"matchExpressions": [*in_a["matchExpressions"], *gold["matchExpressions"]]}
    assert matches(in_a, gold, zone="a", tier="iron")
    assert not matches(both, zone="a", tier="iron")
    assert matches(both, zone="a", tier="gold")


@pytest.mark.parametrize("terms", [[], [{}], [{}, {}]], ids=str)
def test_empty_terms_and_no_terms_match_nothing(terms: list[dict[str, Any]]) -> None:
    assert not matches(*terms, zone="a")


def test_empty_term_takes_nothing_from_the_others() -> None:
    assert matches({}, label("zone", "In", "a"), zone="a")


@pytest.mark.parametrize(
    ("operator", "values", "labels", "wanted"),
    [
        ("In", ["a", "b"], {"k": "b"}, True),
        ("In", ["a"], {}, False),
        ("In", [""], {"k": ""}, True),
        ("In", [""], {}, False),
        ("In", [], {"k": "a"}, False),
        ("NotIn", ["a"], {"k": "b"}, True),
        ("NotIn", ["a"], {"k": "a"}, False),
        ("NotIn", ["a"], {}, True),
        ("NotIn", [], {"k": "b"}, False),
        ("Exists", [], {"k": ""}, True),
        ("Exists", [], {}, False),
        ("Exists", ["a"], {"k": "a"}, False),
        ("DoesNotExist", [], {}, True),
        ("DoesNotExist", [], {"k": ""}, False),
        ("Gt", ["5"], {"k": "6"}, True),
        ("Gt", ["5"], {"k": "5"}, False),
        ("Lt", ["5"], {"k": "4"}, True),
        ("Lt", ["5"], {"k": "5"}, False),
        ("Lt", ["5"], {}, False),
        ("Gt", ["0080"], {"k": "0081"}, True),
        ("Gt", ["5"], {"k": "1_000"}, False),
        ("Gt", ["5"], {"k": "six"}, False),
        ("Gt", ["5.5"], {"k": "6"}, False),
        ("Gt", ["5", "6"], {"k": "7"}, False),
        ("Gt", [str(MAX_INT64 - 1)], {"k": str(MAX_INT64)}, True),
        ("Gt", ["1"], {"k": str(MAX_INT64 + 1)}, False),
        ("Lt", [str(MAX_INT64 + 1)], {"k": "1"}, False),
        ("in", ["a"], {"k": "a"}, False),
        ("", [], {"k": "a"}, False),
    ],
)
def test_condition_on_a_label(operator: str, values: list[str], labels: dict[str, str], wanted: bool) -> None:
    assert matches(label("k", operator, *values), **labels) is wanted


@pytest.mark.parametrize(
    "condition",
    [label("k", "NotIn", "no label!"), label("k!", "DoesNotExist"), label("", "NotIn", "a")],
    ids=str,
)
def test_words_that_no_label_can_have_spoil_their_term_alone(condition: dict[str, Any]) -> None:
    """Old pods may carry them; the scheduler cannot read the term."""
    assert not matches(condition, zone="a")
    assert matches(condition, label("zone", "In", "a"), zone="a")


@pytest.mark.parametrize(
    ("term", "wanted"),
    [
        (field("In", "gpu-1"), True),
        (field("In", "gpu-2"), False),
        (field("NotIn", "gpu-2"), True),
        (field("NotIn", "gpu-1"), False),
        (field("In", "gpu-1", "gpu-2"), False),
        (field("Exists"), False),
        (field("In", "gpu-1", key="metadata.namespace"), False),
        ({**field("In", "gpu-1"), **label("zone", "In", "b")}, False),
        (label("metadata.name", "In", "gpu-1"), False),
    ],
    ids=str,
)
def test_condition_on_the_nodes_name(term: dict[str, Any], wanted: bool) -> None:
    assert matches(term, zone="a") is wanted


@pytest.mark.parametrize(
    ("selector", "zone", "wanted"), [("gold", "a", True), ("gold", "b", False), ("iron", "a", False)]
)
def test_node_selector_and_affinity_must_both_accept(selector: str, zone: str, wanted: bool) -> None:
    pod = launcher(node_selector={"tier": selector}, terms=[label("zone", "In", zone)])
    assert pod_accepts(pod, node(labels={"tier": "gold", "zone": "a"})) is wanted


def test_affinity_without_terms_accepts_no_node_and_no_affinity_every_node() -> None:
    assert not pod_accepts(launcher(terms=[]), node())
    assert pod_accepts(launcher(), node())


@pytest.mark.parametrize(
    ("labels", "wanted"), [({"a": "1", "b": "2"}, True), ({"a": "1"}, False), ({"a": "1", "b": "3"}, False)]
)
def test_label_selector_needs_each_of_its_conditions(labels: dict[str, str], wanted: bool) -> None:
    written = {"matchLabels": {"a": "1"}, "matchExpressions": label("b", "In", "2")["matchExpressions"]}
    assert labels_match(LabelSelector.model_validate(written), labels) is wanted
    assert labels_match(LabelSelector(), labels)


NUMBERS = [("Gt", "3", "4", True), ("Gt", "3", "3", False), ("Lt", "3", "-2", True), ("Lt", "3", "3", False)]
ODD = [("Gt", "3", "04", False), ("Gt", "03", "4", False), ("Gt", "3", "+4", False), ("Lt", "3", "-0", False)]
FAR = [
    ("Gt", "3", str(MAX_INT64 + 1), False),
    ("Gt", "", "4", False),
    ("Lt", "3", "", False),
    ("gt", "3", "4", False),
]


@pytest.mark.parametrize(("operator", "bound", "value", "wanted"), [*NUMBERS, *ODD, *FAR])
def test_numbers_of_a_toleration_are_whole_and_plain(
    operator: str, bound: str, value: str, wanted: bool
) -> None:
    """Where a server serves Gt and Lt on tolerations: the taint's value against the toleration's."""
    toleration = Toleration(key="tier", operator=operator, value=bound)
    assert tolerates(toleration, Taint(key="tier", value=value, effect="NoSchedule")) is wanted
    assert not tolerates(toleration, Taint(key="other", value=value, effect="NoSchedule"))


def test_the_widest_of_several_bounds_counts() -> None:
    bounds = [Toleration(key="tier", operator="Gt", value=value) for value in ("7", "3", "5")]
    assert tolerates_all(bounds, [Taint(key="tier", value="4", effect="NoExecute")])
    assert not tolerates_all(bounds, [Taint(key="tier", value="3", effect="NoExecute")])


words = st.sampled_from(["", "a", "b", "3", "-4"])
effects = st.sampled_from(["", "NoSchedule", "NoExecute", "PreferNoSchedule", "NoRun"])
tolerations = st.builds(
    Toleration,
    key=words,
    operator=st.sampled_from(["", "Equal", "Exists", "Gt", "Lt", "Some"]),
    value=words,
    effect=effects,
)
taints = st.builds(Taint, key=words, value=words, effect=effects)


@given(st.lists(tolerations, max_size=4), st.lists(taints, max_size=4))
def test_all_are_tolerated_if_each_has_one_that_does(known: list[Toleration], there: list[Taint]) -> None:
    """PreferNoSchedule, and effects that nobody knows, keep nothing away."""
    barring = [taint for taint in there if taint.effect in ("NoSchedule", "NoExecute")]
    assert tolerates_all(known, there) == all(
        any(tolerates(one, taint) for one in known) for taint in barring
    )


def test_how_long_a_taint_is_tolerated_is_no_matter_for_placement() -> None:
    toleration = Toleration(key="a", operator="Exists", effect="NoExecute", toleration_seconds=0)
    assert tolerates_all([toleration], [Taint(key="a", effect="NoExecute")])


def test_cordoned_node_is_refused_whatever_is_tolerated() -> None:
    """R8a, where the scheduler would let a pod with this toleration pass."""
    assert not class_accepts(gpu_class(tolerations=[{"operator": "Exists"}]), node(unschedulable=True))


@pytest.mark.timeout(20)
def test_cost_is_linear_in_taints_and_tolerations() -> None:
    known = [Toleration(key="a", value=str(number)) for number in range(MANY)]
    there = [Taint(key="a", value=str(number), effect="NoSchedule") for number in range(MANY)]
    assert tolerates_all(known, there)
    assert not tolerates_all(known, [*there, Taint(key="a", value="x", effect="NoSchedule")])


@pytest.mark.timeout(20)
def test_cost_is_linear_in_terms_values_and_labels() -> None:
    big, labels = "x" * 2**20, {f"k{number}": str(number) for number in range(10_000)}
    terms = [label(f"k{number}", "In", "never", str(number + 1)) for number in range(10_000)]
    values = [str(number) for number in range(MANY)]
    assert not matches(*terms, label("big", "In", *values), **labels, big=big)
    assert matches(*terms, label("k5", "In", *values), **labels, big=big)
    assert not matches(label("big", "Gt", "9" * 2**20), label("big", "Lt", "1"), big="9" * 2**20)


texts = st.text(max_size=8) | st.sampled_from(
    ["Gt", "Lt", "In", "NotIn", "metadata.name", "9" * 400, "-", "+"]
)
requirements = st.fixed_dictionaries({"key": texts, "operator": texts, "values": st.lists(texts, max_size=2)})


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "matchExpressions": st.lists(requirements, max_size=2),
                "matchFields": st.lists(requirements, max_size=2),
            }
        ),
        max_size=2,
    ),
    st.dictionaries(texts, texts, max_size=3),
)
def test_any_selector_gets_a_verdict(terms: list[dict[str, Any]], labels: dict[str, str]) -> None:
    selector = NodeSelector.model_validate({"nodeSelectorTerms": terms})
    assert selector_matches(selector, node(labels=labels)) in (True, False)


def test_every_taint_must_be_tolerated() -> None:
    """R8a."""
    taints = [Taint(key=key, effect="NoSchedule") for key in ("a", "b")]
    one, other = (Toleration(key=key, operator="Exists") for key in ("a", "b"))
    assert not tolerates_all([one], taints)
    assert tolerates_all([one, other], taints)


@pytest.mark.parametrize("bounds", [("3", "5"), ("5", "3")])
def test_of_several_bounds_the_widest_counts(bounds: tuple[str, str]) -> None:
    """R8a: one toleration that fits is enough."""
    known = [Toleration(key="tier", operator="Lt", value=one, effect="NoSchedule") for one in bounds]
    assert tolerates_all(known, [Taint(key="tier", value="4", effect="NoSchedule")])


def test_operator_that_fields_do_not_have_matches_nothing() -> None:
    """R8b."""
    assert not matches(field("Gt", "gpu-0"))


def test_bound_that_is_no_value_of_a_label_matches_nothing() -> None:
    """R8b: a label's value begins with a letter or a digit."""
    assert not matches(label("tier", "Gt", "+1"), tier="2")
    assert not matches(label("tier", "Gt", "-1"), tier="2")


def test_volume_is_made_where_none_is_free() -> None:
    """R8c: of several claims that may want the same ones."""
    here = NodeSelector.model_validate({"nodeSelectorTerms": [label("zone", "In", "a")]})
    choice = VolumeChoice((VolumeWish(here, ()),))
    assert selector_matches(choice, node("gpu-1", labels={"zone": "a"}))
    assert not selector_matches(choice, node("gpu-1", labels={"zone": "b"}))
