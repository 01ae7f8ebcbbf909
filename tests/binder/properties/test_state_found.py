"""What hostile entries did to the fold and its snapshot, each as its smallest history."""

from __future__ import annotations

import pytest

from binder.core.snapshot import decode_state, encode_state
from binder.core.state import ClusterState, fold_entry
from eventlog.entries import Entry, EntryType
from model.nodes import Node
from tests.binder.properties.life import NOW_MS

SOUND = b'{"metadata":{"name":"n1"}}'


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff", b'"text"', b'{"a":NaN}', b'{"metadata":{"name":"\\ud800"}}']
)
def test_object_that_is_no_json_spoils_no_snapshot(body: bytes) -> None:
    """A binder would begin from nothing, and the log before the snapshot is gone."""
    state = ClusterState()
    fold_entry(state, Entry(EntryType.ADDED, "Node", "", "n0", "u0", "1", object=body))
    fold_entry(state, Entry(EntryType.ADDED, "Node", "", "n1", "u1", "1", object=SOUND))
    decoded = decode_state(encode_state(state))
    assert decoded is not None
    assert encode_state(decoded) == encode_state(state)
    assert dict(decoded.of(Node)) == dict(state.of(Node))
    assert list(decoded.unreadable()) == list(state.unreadable())


@pytest.mark.parametrize("ts_ms", [10**15, 2**64, 10**29, -(10**29)])
def test_entry_of_an_absurd_time_neither_hides_a_silence_nor_spoils_the_snapshot(ts_ms: int) -> None:
    """R33."""
    state = ClusterState()
    fold_entry(state, Entry(EntryType.HEARTBEAT, ts_ms=NOW_MS))
    fold_entry(state, Entry(EntryType.HEARTBEAT, ts_ms=ts_ms))
    fold_entry(state, Entry(EntryType.ABSENT, "Node", ts_ms=ts_ms))
    assert state.heard_ms == NOW_MS
    assert decode_state(encode_state(state)) is not None
