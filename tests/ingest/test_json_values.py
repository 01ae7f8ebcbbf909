"""Bytes are cut into JSON values, however they were printed and wherever they break off."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.json_values import MAX_VALUE, Cut, ValueCutter

A, B = {"type": "ADDED", "object": {"a": ["}{", '"\\', {}]}}, {"type": "DELETED", "object": {"b": [[], [1]]}}


def cut(text: str | bytes, chunk: int = 1 << 20) -> list[Cut]:
    data = text.encode() if isinstance(text, str) else text
    cutter, cuts = ValueCutter(), list[Cut]()
    for start in range(0, len(data), chunk):
        cuts += cutter.feed(data[start : start + chunk])
    return cuts + list(cutter.close())


def values(cuts: list[Cut]) -> list[Any]:
    return [each.value for each in cuts if not each.problem]


def problems(cuts: list[Cut]) -> list[tuple[int, str]]:
    return [(each.line, each.problem) for each in cuts if each.problem]


def printed(value: Any, indent: int | str | None) -> str:
    return json.dumps(value, indent=indent)


texts = st.text(st.characters(codec="utf-8"), max_size=20)
numbers = st.integers(min_value=-(2**53), max_value=2**53)
leaves = st.none() | st.booleans() | numbers | texts
trees = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
)
objects = st.dictionaries(texts, trees, max_size=4)


@given(
    st.lists(objects, max_size=5),
    st.sampled_from([None, 1, 2, 4, "\t"]),
    st.sampled_from(["\n", "", "\r\n", "\n\n", " "]),
    st.integers(min_value=1, max_value=40),
)
def test_objects_come_back_however_they_are_printed_joined_and_chunked(
    told: list[dict[str, Any]], indent: int | str | None, between: str, chunk: int
) -> None:
    cuts = cut(between.join(printed(each, indent) for each in told), chunk)
    assert values(cuts) == told
    assert problems(cuts) == []


@given(st.binary(max_size=200), st.integers(min_value=1, max_value=40))
def test_junk_is_told_and_never_swallows_the_line_after_it(junk: bytes, chunk: int) -> None:
    after = b"\n" + printed(A, None).encode() + b"\n"
    assert A in values(cut(junk + after, chunk))


def test_value_that_breaks_off_costs_itself_alone() -> None:
    for first in (printed(A, 4), printed(A, None)):
        for end in range(1, len(first) - 1):
            cuts = cut(f"{first[:end]}\n{printed(B, 4)}\n{printed(B, None)}")
            assert values(cuts) == [B, B], first[:end]
            assert [line for line, _ in problems(cuts)] == [1]


def test_values_are_named_by_the_line_they_begin_at() -> None:
    cuts = cut(f"{printed(A, 2)}\n\n{printed(B, None)}\nnonsense\n{printed(A, 2)[:-1]}")
    height = printed(A, 2).count("\n") + 1
    assert [each.line for each in cuts] == [1, height + 2, height + 3, height + 4]
    assert [told for _, told in problems(cuts)][-1] == "no JSON: it breaks off at the end"


def test_whole_text_may_be_indented() -> None:
    text = "".join(f"   {line}\n" for line in (printed(A, 2) + "\n" + printed(B, 2)).splitlines())
    assert values(cut(text)) == [A, B]


def test_byte_order_mark_in_front_is_no_fault() -> None:
    assert values(cut(b"\xef\xbb\xbf" + printed(A, None).encode())) == [A]


@pytest.mark.parametrize("line", [b"\0" * 65536, b"[" * 65536, b' "' + b"x" * 65536 + b'",\n'])
def test_value_without_an_end_is_kept_up_to_a_limit_alone(line: bytes) -> None:
    """A file of zeros, a value on one endless line, one on lines without end: memory is bounded."""
    cutter, told = ValueCutter(), list(ValueCutter().feed(b""))
    tracemalloc.start()
    told += cutter.feed(b'{"a":')
    for _ in range(3 * MAX_VALUE // len(line)):
        told += cutter.feed(line)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    told += cutter.feed(b"\n" + printed(B, None).encode() + b"\n")
    assert values(told) == [B]
    assert "longer than" in problems(told)[0][1]
    assert peak < 3 * MAX_VALUE
