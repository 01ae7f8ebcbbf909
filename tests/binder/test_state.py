"""The fold of the log: what it keeps, drops and believes (R32, R33), and its snapshot."""

from __future__ import annotations

import zlib

import orjson
from hypothesis import given
from hypothesis import strategies as st

from binder.core.snapshot import VERSION, decode_state, encode_state
from binder.core.state import LATEST_MS, VANISH_GRACE_MS, ClusterState, fold_entries, fold_entry
from eventlog.entries import Entry, EntryType
from model.kinds import BY_KIND
from model.kubevirt import VirtualMachine
from model.nodes import Node
from model.pods import Pod

VMS = "VirtualMachine"
NEWCOMER = b'{"metadata":{"uid":"u0"}}'


def entry(of: EntryType, name: str = "a", *, uid: str = "u1", kind: str = "Node", ts_ms: int = 1000) -> Entry:
    body = orjson.dumps({"metadata": {"name": name, "uid": uid}})
    return Entry(of, kind, "", name, uid, "1", "w", ts_ms, b"" if of is EntryType.DELETED else body)


def folded(*entries: Entry) -> ClusterState:
    state = ClusterState()
    fold_entries(state, entries)
    return state


def test_deletion_takes_only_the_object_of_its_uid() -> None:
    state = folded(entry(EntryType.ADDED), entry(EntryType.ADDED, uid="u2"), entry(EntryType.DELETED))
    assert [node.metadata.uid for node in state.of(Node).values()] == ["u2"]
    fold_entry(state, entry(EntryType.DELETED, uid="u2"))
    assert dict(state.of(Node)) == {}


def test_laggard_that_tells_of_a_predecessor_does_not_hide_its_successor() -> None:
    """Two watchers: one has told of the new object of the name, the other still tells of the old one."""
    new = Entry(EntryType.ADDED, "Node", "", "a", "u2", "10", "w2", 2, b'{"metadata":{"uid":"u2"}}')
    old = Entry(EntryType.MODIFIED, "Node", "", "a", "u1", "9", "w1", 3, b'{"metadata":{"uid":"u1"}}')
    state = folded(entry(EntryType.ADDED), new, old, entry(EntryType.DELETED))
    assert [node.metadata.uid for node in state.of(Node).values()] == ["u2"]


def test_kind_is_complete_after_its_list_or_its_absence() -> None:
    """R33."""
    state = folded(Entry(EntryType.SYNCED, "Node"), Entry(EntryType.ABSENT, VMS, ts_ms=1))
    assert not {"Node", VMS} & set(state.missing_kinds())
    assert "Pod" in state.missing_kinds()


def test_kind_that_vanishes_is_believed_only_after_the_grace() -> None:
    """R32."""
    beat = EntryType.HEARTBEAT
    state = folded(entry(EntryType.ADDED, kind=VMS), Entry(EntryType.ABSENT, VMS, ts_ms=2000))
    fold_entry(state, Entry(beat, ts_ms=2000 + VANISH_GRACE_MS))
    assert len(state.of(VirtualMachine)) == 1
    fold_entry(state, Entry(beat, ts_ms=2001 + VANISH_GRACE_MS))
    assert len(state.of(VirtualMachine)) == 0


def test_kind_that_comes_back_within_the_grace_keeps_its_objects() -> None:
    """R32."""
    state = folded(entry(EntryType.ADDED, kind=VMS), Entry(EntryType.ABSENT, VMS, ts_ms=2000))
    fold_entry(state, Entry(EntryType.SYNCED, VMS, ts_ms=9000))
    fold_entry(state, Entry(EntryType.HEARTBEAT, ts_ms=9000 + 2 * VANISH_GRACE_MS))
    assert len(state.of(VirtualMachine)) == 1


def test_object_of_a_kind_that_vanished_shows_that_it_is_back() -> None:
    """R32: no list has to be complete for that."""
    state = folded(entry(EntryType.ADDED, kind=VMS), Entry(EntryType.ABSENT, VMS, ts_ms=2000))
    fold_entry(state, entry(EntryType.ADDED, "b", uid="u2", kind=VMS))
    fold_entry(state, Entry(EntryType.HEARTBEAT, ts_ms=9000 + VANISH_GRACE_MS))
    assert len(state.of(VirtualMachine)) == 2


def test_kind_is_absent_since_that_was_told_first_whatever_the_clock_said() -> None:
    """R32: told again it is not away for less long; 0 and what is beyond the end are moments, too."""
    state = folded(*(Entry(EntryType.ABSENT, VMS, ts_ms=ts_ms) for ts_ms in (2000, 9000)))
    assert state.shelves[VMS].absent_since_ms == 2000
    assert folded(Entry(EntryType.ABSENT, VMS, ts_ms=0)).shelves[VMS].absent_since_ms == 1
    late = folded(Entry(EntryType.ABSENT, VMS, ts_ms=LATEST_MS + 5))
    assert late.shelves[VMS].absent_since_ms == LATEST_MS


def test_of_what_has_gone_nothing_is_left() -> None:
    """Also of what could not be read; who takes the name is new, whatever its version."""
    broken = Entry(EntryType.ADDED, VMS, "", "b", "u2", "1", "w", 1000, b"[]")
    deleted = [Entry(EntryType.DELETED, VMS, "", name, uid) for name, uid in (("a", "u1"), ("b", "u2"))]
    vanished = [Entry(EntryType.ABSENT, VMS, ts_ms=1), Entry(EntryType.HEARTBEAT, ts_ms=2 + VANISH_GRACE_MS)]
    for is_read in (True, False):
        for gone in (deleted, vanished):
            state = folded(entry(EntryType.ADDED, kind=VMS), broken)
            if is_read:
                assert len(state.of(VirtualMachine)) == len(list(state.unreadable())) == 1
            fold_entries(state, gone)
            assert dict(state.of(VirtualMachine)) == {}
            assert list(state.unreadable()) == list(state.shelves[VMS].bodies()) == []
            fold_entry(state, Entry(EntryType.ADDED, VMS, "", "a", "u0", "0", "w", 9, NEWCOMER))
            assert [one.metadata.uid for one in state.of(VirtualMachine).values()] == ["u0"]


def test_object_that_went_before_it_was_read_was_nothing() -> None:
    """Whoever looks at what has gone finds no object in it."""
    state = ClusterState()
    state.shelves["Node"].uids["", "a"] = "u1"
    fold_entry(state, entry(EntryType.DELETED))
    assert state.shelves["Node"].departed == {"u1": b""}


def test_object_that_cannot_be_decoded_is_in_no_pass_and_is_named() -> None:
    broken = Entry(EntryType.MODIFIED, "Node", "", "a", "u1", "2", "w", 2000, b'{"spec": []}')
    state = folded(entry(EntryType.ADDED), entry(EntryType.ADDED, "b", uid="u2"), broken)
    assert list(state.of(Node)) == [("", "b")]
    assert [(kind, key) for kind, key, _ in state.unreadable()] == [("Node", ("", "a"))]
    fold_entry(state, entry(EntryType.MODIFIED))
    assert len(state.of(Node)) == 2
    assert list(state.unreadable()) == []


def test_unknown_kinds_are_passed_over() -> None:
    assert folded(entry(EntryType.ADDED, kind="Gadget")).missing_kinds()


def test_object_that_becomes_unreadable_is_in_no_pass_any_more_and_says_why() -> None:
    """What it was is no longer what it is."""
    state = folded(entry(EntryType.ADDED))
    assert list(state.of(Node)) == [("", "a")]
    fold_entry(state, Entry(EntryType.MODIFIED, "Node", "", "a", "u1", "2", "w", 2000, b'{"spec": 5}'))
    assert dict(state.of(Node)) == {}
    ((_, _, why),) = state.unreadable()
    assert why.startswith("Input should be")


def test_what_was_looked_at_is_not_decoded_again() -> None:
    state = folded(entry(EntryType.ADDED))
    first = state.of(Node)["", "a"]
    assert state.of(Node)["", "a"] is first


def test_changes_are_told_once_and_sorted() -> None:
    """World.update rests on it: also what a kind that vanished took along."""
    beat = EntryType.HEARTBEAT
    state = folded(*(entry(EntryType.ADDED, name, uid=f"u-{name}", kind=VMS) for name in "cab"))
    shelf = state.shelves[VMS]
    assert shelf.take_touched() == [("", "a"), ("", "b"), ("", "c")]
    assert shelf.take_touched() == []
    fold_entry(state, entry(EntryType.DELETED, "b", uid="u-b", kind=VMS))
    fold_entry(state, entry(EntryType.ADDED, "c", uid="u-c2", kind=VMS))
    assert {uid: body[:12] for uid, body in shelf.departed.items()} == {
        "u-b": b'{"metadata":', "u-c": b'{"metadata":'
    }  # fmt: skip
    assert shelf.take_touched() == [("", "b"), ("", "c")]
    assert shelf.departed == {}
    fold_entry(state, Entry(EntryType.ABSENT, VMS, ts_ms=2000))
    fold_entry(state, Entry(beat, ts_ms=2001 + VANISH_GRACE_MS))
    assert shelf.take_touched() == [("", "a"), ("", "c")]
    assert shelf.absent_since_ms == 0


def test_unreadable_objects_are_named_in_one_order() -> None:
    broken = [
        Entry(EntryType.ADDED, kind, "", name, f"u{name}", "2", "w", 2000, b'{"spec": 5}')
        for kind in ("Pod", "Node")
        for name in "ba"
    ]
    state = folded(*broken)
    assert not state.of(Node)
    assert not state.of(Pod)
    assert [(kind, key[1]) for kind, key, _ in state.unreadable()] == [
        ("Node", "a"), ("Node", "b"), ("Pod", "a"), ("Pod", "b")
    ]  # fmt: skip
    assert [key for key, _ in state.shelves["Pod"].bodies()] == [("", "a"), ("", "b")]


def test_snapshot_is_the_same_bytes_whatever_came_first_and_keeps_what_is_complete_and_heard() -> None:
    """R4, R33."""
    told = [entry(EntryType.SYNCED, kind=kind, ts_ms=5000) for kind in ("Pod", "Node", VMS)]
    told += [entry(EntryType.ADDED, name, uid=name, kind=kind) for kind in ("Pod", "Node") for name in "ba"]
    body = encode_state(folded(*told))
    assert body == encode_state(folded(*reversed(told)))
    again = decode_state(body)
    assert again is not None
    assert (again.complete, again.heard_ms) == ({"Pod", "Node", VMS}, 5000)


def test_snapshot_lists_complete_kinds_by_name() -> None:
    """R4: they are a set."""
    body = orjson.loads(zlib.decompress(encode_state(ClusterState(complete=set(BY_KIND)))))
    assert body["complete"] == sorted(BY_KIND)


def test_missing_kinds_are_sorted() -> None:
    assert list(ClusterState().missing_kinds()) == sorted(ClusterState().missing_kinds())


def test_entry_of_the_last_moment_counts_and_a_later_one_does_not() -> None:
    """R33: an entry from beyond the year 9999 would make every silence look short."""
    state = ClusterState()
    fold_entry(state, Entry(EntryType.HEARTBEAT, ts_ms=LATEST_MS + 1))
    assert state.heard_ms == 0
    fold_entry(state, Entry(EntryType.HEARTBEAT, ts_ms=LATEST_MS))
    assert state.heard_ms == LATEST_MS


changes = st.builds(
    entry,
    st.sampled_from(
        [EntryType.ADDED, EntryType.MODIFIED, EntryType.DELETED, EntryType.SYNCED, EntryType.ABSENT]
    ),
    st.sampled_from(["a", "b", "c"]),
    uid=st.sampled_from(["u1", "u2", "u3"]),
    kind=st.sampled_from(["Node", "Pod", VMS]),
    ts_ms=st.integers(0, 10**7),
)


@given(st.lists(changes, max_size=40), st.integers(0, 40))
def test_rest_of_the_log_on_a_snapshot_gives_what_the_whole_log_gives(entries: list[Entry], at: int) -> None:
    """Retention rests on it."""
    begun = decode_state(encode_state(folded(*entries[:at])))
    assert begun is not None
    fold_entries(begun, entries[at:])
    whole = folded(*entries)
    assert encode_state(begun) == encode_state(whole)
    assert dict(begun.of(Node)) == dict(whole.of(Node))


@given(st.binary(max_size=60))
def test_bytes_that_are_no_snapshot_are_none(body: bytes) -> None:
    assert decode_state(body) is None


def test_snapshot_of_another_version_is_not_read() -> None:
    body = zlib.decompress(encode_state(ClusterState()))
    assert decode_state(zlib.compress(body)) is not None
    assert decode_state(zlib.compress(body.replace(b'"v":%d' % VERSION, b'"v":0'))) is None


def test_watcher_whose_clock_runs_ahead_hides_no_silence() -> None:
    """R33: the log's own time of an entry bounds what its watcher says."""
    state = ClusterState()
    fold_entry(state, Entry(EntryType.HEARTBEAT, ts_ms=9_000_000), appended_ms=5_000)
    assert state.heard_ms == 5_000
    fold_entry(state, Entry(EntryType.HEARTBEAT, ts_ms=6_000), appended_ms=7_000)
    assert state.heard_ms == 6_000
