"""Merge patch (RFC 7386, its own examples), JSON patch (RFC 6902, but as the API server does it)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.apiserver.patches import PatchFailed, json_patch, merge_patch

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab/~", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab/~", max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("target", "patch", "want"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch_does_what_its_rfc_shows(target: Any, patch: Any, want: Any) -> None:
    assert merge_patch(target, patch) == want


@given(target=JSON, patch=JSON)
def test_merging_twice_is_merging_once_and_changes_nothing_given(target: Any, patch: Any) -> None:
    before = repr((target, patch))
    once = merge_patch(target, patch)
    assert merge_patch(once, patch) == once
    assert repr((target, patch)) == before


@pytest.mark.parametrize(
    ("operation", "want"),
    [
        ({"op": "add", "path": "/b", "value": 2}, {"a": [1, 2], "b": 2}),
        ({"op": "add", "path": "/a/0", "value": 0}, {"a": [0, 1, 2]}),
        ({"op": "add", "path": "/a/-", "value": 3}, {"a": [1, 2, 3]}),
        ({"op": "remove", "path": "/a/0"}, {"a": [2]}),
        ({"op": "remove", "path": "/a/-1"}, {"a": [1]}),
        ({"op": "replace", "path": "/a", "value": 1}, {"a": 1}),
        ({"op": "replace", "path": "/new", "value": 1}, {"a": [1, 2], "new": 1}),
        ({"op": "move", "from": "/a", "path": "/b"}, {"b": [1, 2]}),
        ({"op": "copy", "from": "/a/1", "path": "/b"}, {"a": [1, 2], "b": 2}),
        ({"op": "test", "path": "/a/1", "value": 2}, {"a": [1, 2]}),
        ({"op": "test", "path": "/missing", "value": None}, {"a": [1, 2]}),
        ({"op": "add", "path": "/x~1y~0z", "value": 1}, {"a": [1, 2], "x/y~z": 1}),
    ],
)
def test_json_patch_applies(operation: Any, want: Any) -> None:
    assert json_patch({"a": [1, 2]}, [operation]) == want


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a/0", "value": 9},
        {"op": "remove", "path": "/missing"},
        {"op": "remove", "path": "/a/2"},
        {"op": "remove", "path": "/a/-3"},
        {"op": "remove", "path": "/a/x"},
        {"op": "remove", "path": "/a/" + "9" * 5000},
        {"op": "add", "path": "/missing/b", "value": 1},
        {"op": "add", "path": "a", "value": 1},
        {"op": "frob", "path": "/a"},
        {"path": "/a"},
        {},
    ],
)
def test_json_patch_that_does_not_apply_fails(operation: Any) -> None:
    with pytest.raises(PatchFailed):
        json_patch({"a": [1, 2]}, [operation])


@given(
    target=JSON, operations=st.lists(st.dictionaries(st.sampled_from(["op", "path", "from", "value"]), JSON))
)
def test_nonsense_fails_as_a_patch_and_not_otherwise(target: Any, operations: Any) -> None:
    try:
        json_patch(target, operations)
    except PatchFailed:
        return
