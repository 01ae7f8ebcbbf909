"""The codec: what goes in comes back, and nothing that stands in a stream breaks a reader."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlog import entries
from eventlog.entries import (
    Entry,
    EntryType,
    Fields,
    StoredEntry,
    Unreadable,
    decode_entry,
    encode_entry,
    id_order,
    is_newer,
)

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
ENTRIES = st.builds(
    Entry,
    type=st.sampled_from(EntryType),
    kind=TEXT,
    namespace=TEXT,
    name=TEXT,
    uid=TEXT,
    resource_version=TEXT,
    watcher=TEXT,
    ts_ms=st.integers(-(2**70), 2**70),
    object=st.binary(max_size=40),
)
NAMES = sorted(encode_entry(Entry(EntryType.ADDED)))


def fields(**changed: bytes) -> Fields:
    return encode_entry(Entry(EntryType.ADDED, "Pod")) | {k.encode(): v for k, v in changed.items()}


def why(found: Fields) -> str:
    stored = decode_entry("1-0", found)
    assert isinstance(stored, Unreadable)
    assert (stored.id, stored.fields) == ("1-0", found)
    return stored.why


@given(ENTRIES)
def test_every_entry_comes_back_as_it_was(entry: Entry) -> None:
    assert decode_entry("5-1", encode_entry(entry)) == StoredEntry("5-1", entry)


@given(st.dictionaries(st.sampled_from(NAMES) | st.binary(max_size=3), st.binary(max_size=20)))
@example(dict.fromkeys(NAMES, b"1"))
@example(dict.fromkeys(NAMES, b"9" * 5000))
def test_no_fields_whatsoever_break_the_reader(found: Fields) -> None:
    stored = decode_entry("1-0", found)
    assert isinstance(stored, StoredEntry) or stored.why


@pytest.mark.parametrize("name", NAMES)
def test_missing_field_is_named(name: bytes) -> None:
    left = fields()
    del left[name]
    assert name.decode() in why(left)


def test_unknown_type_version_and_broken_text_say_what_is_wrong() -> None:
    assert "EXPLODED" in why(fields(t=b"EXPLODED"))
    assert "newer than 1: run a newer gpubinder" in why(fields(v=b"2"))
    assert "no upcaster from version 0" in why(fields(v=b"0"))
    assert "ts" in why(fields(ts=b"soon"))
    assert "utf-8" in why(fields(n=b"\xff"))


def test_number_is_read_as_it_is_written_only() -> None:
    """Python takes more than decimal digits for a number."""
    for odd in (b" 1", b"1_000", b"+1", "\u0661".encode(), b""):
        assert "ts" in why(fields(ts=odd))
        assert "v" in why(fields(v=odd))


def test_old_versions_are_lifted_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    lifts = {-1: lambda old: old | {b"n": old[b"name"]}, 0: lambda old: old | {b"w": b"unknown"}}
    monkeypatch.setattr(entries, "UPCASTERS", lifts)
    old = fields(v=b"-1", name=b"pod")
    del old[b"n"], old[b"w"]
    stored = decode_entry("1-0", old)
    assert isinstance(stored, StoredEntry)
    assert (stored.entry.name, stored.entry.watcher) == ("pod", "unknown")


def test_upcaster_that_fails_makes_the_entry_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "UPCASTERS", {0: lambda old: old[b"n"] + 1})
    assert "version 0" in why(fields(v=b"0"))


@given(st.integers(0, 2**200), st.integers(0, 2**200))
def test_versions_compare_as_the_numbers_they_are(one: int, other: int) -> None:
    assert is_newer(str(one), str(other)) == (one > other)


def test_ids_compare_by_time_then_sequence() -> None:
    ids = ["10-0", "9-11", "9-2", "9"]
    assert sorted(ids, key=id_order) == ["9", "9-2", "9-11", "10-0"]


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        (b"ts", b"hunter2", "field ts is no number"),
        (b"v", b"hunter2", "field v is no number"),
        (b"t", b"hunter2", "field t is no type of entry"),
        (b"o", None, "field o is missing"),
    ],
)
def test_why_names_the_field_and_never_tells_what_it_holds(
    field: bytes, value: bytes | None, why: str
) -> None:
    """It goes into the log lines; the bytes are in quarantine alone."""
    entry = Entry(EntryType.ADDED, "Pod", "ns", "p", "u", "5", "w", 1, b"{}")
    told = {**encode_entry(entry), field: value}
    found = decode_entry("1-0", {name: each for name, each in told.items() if each is not None})
    assert isinstance(found, Unreadable)
    assert found.why == why
