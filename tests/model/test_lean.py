"""Whatever the cluster sends: a lean object or Malformed, the same bytes for the same meaning, no secret."""

from __future__ import annotations

import json
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from model.kinds import BY_KIND
from model.lean import Malformed, lean_object
from model.names import ANNOTATIONS_READ
from model.nodes import Node
from model.pods import Pod
from model.requests import allocatable_units, effective_request

SECRET = "s3cr3t-planted"
KINDS = sorted(BY_KIND)

odd_values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.sampled_from(["", "x", "1", "true", "null", "é\x00\ud800", "9" * 400]),
    st.lists(st.none() | st.text(max_size=3), max_size=2),
    st.dictionaries(st.text(max_size=3), st.none() | st.integers() | st.text(max_size=3), max_size=2),
)


PLAIN = {
    str: st.sampled_from(["", "a", "Exists", "nvidia.com/gpu", "2026-12-01T00:00:00Z"]),
    int: st.integers(0, 9),
    bool: st.booleans(),
}


def mostly(right: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Of the right shape nearly always: an object of many parts shall be read now and then."""
    return st.integers(0, 30).flatmap(lambda number: right if number else odd_values)


def of_type(annotation: Any) -> st.SearchStrategy[Any]:
    """Values of a field's type, some of which are not."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return of_type(arguments[0])
    if origin in (Union, UnionType):
        return of_type(next(one for one in arguments if one is not type(None)))
    if origin is tuple:
        return mostly(st.lists(of_type(arguments[0]), max_size=2))
    if origin is dict:
        keys = st.sampled_from(["a", "", "nvidia.com/gpu", "cpu", *ANNOTATIONS_READ])
        return mostly(st.dictionaries(keys, st.sampled_from(["1", "500m"]) | odd_values, max_size=3))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return mostly(shaped(annotation))
    return mostly(PLAIN.get(annotation, st.just("a")))


def shaped(model: type[BaseModel]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with the model's fields, each present or not, and with fields that nobody knows."""
    fields = {field.alias or name: of_type(field.annotation) for name, field in model.model_fields.items()}
    return st.fixed_dictionaries({}, optional=fields | {"unknown": st.just(SECRET)})


by_kind = st.sampled_from(KINDS).flatmap(lambda kind: st.tuples(st.just(kind), shaped(BY_KIND[kind].model)))


@given(by_kind)
def test_object_with_parts_of_any_shape_is_read_or_malformed(kind_and_raw: tuple[str, Any]) -> None:
    """What is read once is read again, gives the same bytes, and holds nothing that no model names."""
    kind, raw = kind_and_raw
    watched = BY_KIND[kind]
    before = repr(raw)
    try:
        body = lean_object(watched.model, watched.prune, raw)
    except Malformed:
        return
    assert repr(raw) == before
    read = watched.model.model_validate_json(body)
    assert lean_object(watched.model, watched.prune, orjson.loads(body)) == body
    assert SECRET.encode() not in body
    if isinstance(read, Node):
        assert all(amount >= 0 for amount in allocatable_units(read.status.allocatable).values())
    if isinstance(read, Pod):
        assert all(amount >= 0 for amount in effective_request(read).values())


@given(by_kind, st.randoms(use_true_random=False))
def test_order_of_fields_makes_no_difference(kind_and_raw: tuple[str, Any], chance: Any) -> None:
    kind, raw = kind_and_raw
    watched = BY_KIND[kind]
    pairs = list(raw.items())
    chance.shuffle(pairs)
    assert outcome(watched, raw) == outcome(watched, dict(pairs))


def outcome(watched: Any, raw: Any) -> bytes | None:
    try:
        return lean_object(watched.model, watched.prune, raw)
    except Malformed:
        return None


@pytest.mark.parametrize("kind", KINDS)
def test_nulls_everywhere_are_as_if_absent(kind: str) -> None:
    """Go clients write `null` for empty maps and lists."""
    watched = BY_KIND[kind]
    needed = {
        "GPUClass": {"spec": {"resourceName": "nvidia.com/gpu"}},
        "GPUClaim": {"spec": {"className": "h100", "units": 1}},
    }.get(kind, {})
    assert lean_object(watched.model, watched.prune, nulled(watched.model) | needed) == lean_object(
        watched.model, watched.prune, needed
    )


def nulled(model: type[BaseModel]) -> dict[str, Any]:
    nulls: dict[str, Any] = {field.alias or name: None for name, field in model.model_fields.items()}
    for name in ("metadata", "spec", "status"):
        part = model.model_fields.get(name)
        if part is not None and isinstance(part.annotation, type) and issubclass(part.annotation, BaseModel):
            nulls[name] = {field.alias or key: None for key, field in part.annotation.model_fields.items()}
    return nulls


def test_error_names_the_field_and_never_the_value() -> None:
    raw = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": {"nested": SECRET}}]}}
    with pytest.raises(Malformed, match=r"spec\.containers\.0\.name") as refused:
        lean_object(Pod, BY_KIND["Pod"].prune, raw)
    assert SECRET not in str(refused.value)


def test_depth_of_what_we_do_not_read_costs_nothing() -> None:
    """Deep nesting where no model looks is passed over without recursion."""
    deep = json.loads('{"a":' * 900 + "1" + "}" * 900)
    raw = {"metadata": {"name": "p"}, "spec": {"volumes": [{"name": "v", "secret": deep}], "ghost": deep}}
    assert b"ghost" not in lean_object(Pod, BY_KIND["Pod"].prune, raw)
