"""The watch stream's lines and events: any chunking, any length, and errors in the place of events."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.adapters.stream import MAX_LINE, LineCutter, decode_event
from kube.errors import ApiError, Forbidden, Gone, ServerFault
from kube.port import WatchType


def line(kind: str, body: object) -> bytes:
    return json.dumps({"type": kind, "object": body}).encode()


def error(code: int, reason: str) -> bytes:
    return line("ERROR", {"kind": "Status", "code": code, "reason": reason, "message": "because"})


@given(st.lists(st.binary(max_size=30).filter(lambda each: b"\n" not in each)), st.integers(1, 9))
def test_lines_are_whole_however_they_are_cut(lines: list[bytes], size: int) -> None:
    stream = b"".join(each + b"\n" for each in lines)
    cutter = LineCutter()
    found = [each for at in range(0, len(stream), size) for each in cutter.feed(stream[at : at + size])]
    assert found == [each for each in lines if each.strip()]
    assert cutter.is_empty


def test_half_a_line_is_kept_and_known() -> None:
    cutter = LineCutter()
    assert cutter.feed(b'{"a"') == []
    assert not cutter.is_empty
    assert cutter.feed(b":1}\n") == [b'{"a":1}']
    assert cutter.is_empty


def test_event_of_many_megabytes_is_one_line() -> None:
    cutter = LineCutter()
    body = line("ADDED", {"metadata": {"name": "big"}, "spec": "x" * 3_000_000}) + b"\n"
    lines = [each for at in range(0, len(body), 65_536) for each in cutter.feed(body[at : at + 65_536])]
    assert decode_event(lines[0], "pods").object["metadata"]["name"] == "big"


def test_line_without_an_end_is_known_to_be_too_long_for_an_event() -> None:
    """A server that sends one filled two gigabytes in twelve seconds."""
    cutter, chunk = LineCutter(), b"x" * 1_000_000
    for _ in range(MAX_LINE // len(chunk)):
        cutter.feed(chunk)
        assert not cutter.is_too_long
    cutter.feed(chunk)
    assert cutter.is_too_long
    cutter.feed(b"\n{")
    assert not cutter.is_too_long


def test_bookmark_is_an_event() -> None:
    event = decode_event(line("BOOKMARK", {"metadata": {"resourceVersion": "5"}}), "pods")
    assert event.type is WatchType.BOOKMARK


@pytest.mark.parametrize(
    ("code", "reason", "wanted"),
    [
        (410, "Expired", Gone),
        (410, "Gone", Gone),
        (403, "Forbidden", Forbidden),
        (500, "Internal", ServerFault),
    ],
)
def test_error_event_is_the_error_it_stands_for(code: int, reason: str, wanted: type[ApiError]) -> None:
    with pytest.raises(wanted, match="because"):
        decode_event(error(code, reason), "watch of pods")


@pytest.mark.parametrize(
    "broken",
    [
        b"{",
        b"[]",
        b"null",
        b'{"type":"ADDED"}',
        b'{"type":"STRANGE","object":{"metadata":{}}}',
        b'{"type":"ADDED","object":[]}',
        b'{"type":"ADDED","object":{"metadata":5}}',
        b'{"type":"ERROR","object":"no status"}',
        b'{"type":"ERROR","object":{"code":"410"}}',
        b"\xff\xfe",
    ],
)
def test_line_that_is_no_event_is_one_clear_error(broken: bytes) -> None:
    with pytest.raises(ApiError) as caught:
        decode_event(broken, "watch of pods")
    assert "watch of pods" in str(caught.value)
    assert "\n" not in str(caught.value)
