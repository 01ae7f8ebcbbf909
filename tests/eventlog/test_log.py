"""What both logs promise: append once, history, group reading, the journal and its fence."""

from __future__ import annotations

import pytest

from eventlog.entries import Entry, EntryType, StoredEntry
from eventlog.errors import Fenced, LogReplaced
from eventlog.port import QUARANTINE_LIMIT, START, Log, Quarantined, Retention, Snapshot
from tests.eventlog.conftest import now_ms

pytestmark = pytest.mark.enable_socket


def change(
    version: str, *, uid: str = "u1", of: EntryType = EntryType.MODIFIED, body: bytes | None = None
) -> Entry:
    text = b"" if of is EntryType.DELETED else b'{"rv":"' + version.encode() + b'"}' if body is None else body
    return Entry(of, "Pod", "default", f"pod-{uid}", uid, version, "w1", 1000, text)


async def append(log: Log, *entries: Entry) -> list[bool]:
    return await log.append_once(entries, await log.identity())


async def history(log: Log) -> list[str]:
    stored = await log.read_range(START, 1000)
    return [one.entry.resource_version for one in stored if isinstance(one, StoredEntry)]


async def test_change_is_appended_once_whoever_sees_it(log: Log) -> None:
    assert await append(log, change("5"), change("5"), change("6")) == [True, False, True]
    assert await append(log, change("5"), change("6"), change("7")) == [False, False, True]
    assert await history(log) == ["5", "6", "7"]


async def test_resource_versions_compare_by_length_then_text(log: Log) -> None:
    """They are integers of up to 128 bits, beyond what Lua's numbers hold."""
    big = "340282366920938463463374607431768211455"
    assert await append(log, change("9"), change("10"), change(big[:-1] + "4"), change(big)) == [True] * 4
    assert await append(log, change("99"), change(big[:-1] + "4")) == [False, False]


async def test_change_that_leaves_the_lean_object_is_remembered_and_not_appended(log: Log) -> None:
    assert await append(log, change("5", body=b"{}"), change("6", body=b"{}")) == [True, False]
    assert (await log.seen("Pod"))["u1"].resource_version == "6"
    assert await append(log, change("6", body=b'{"x":1}'), change("7", body=b'{"x":1}')) == [False, True]


async def test_deleted_object_stays_deleted_for_laggards_and_is_not_seen(log: Log) -> None:
    assert await append(log, change("5"), change("9", of=EntryType.DELETED)) == [True, True]
    assert await append(log, change("7"), change("12"), change("9", of=EntryType.DELETED)) == [False] * 3
    assert dict(await log.seen("Pod")) == {}


async def test_deletion_of_what_was_never_seen_tells_nobody_but_is_remembered(log: Log) -> None:
    assert await append(log, change("9", of=EntryType.DELETED), change("8")) == [False, False]


async def test_object_of_the_same_name_with_a_new_uid_is_a_new_object(log: Log) -> None:
    assert (
        await append(log, change("5"), change("6", of=EntryType.DELETED), change("7", uid="u2")) == [True] * 3
    )
    seen = await log.seen("Pod")
    assert {uid: one.name for uid, one in seen.items()} == {"u2": "pod-u2"}


async def test_marks_are_always_appended(log: Log) -> None:
    mark = Entry(EntryType.SYNCED, "Pod", resource_version="5")
    assert await append(log, mark, mark) == [True, True]


async def test_append_to_another_log_than_the_one_listed_for_is_refused(log: Log) -> None:
    await log.identity()
    with pytest.raises(LogReplaced):
        await log.append_once([change("5")], "some other log")
    assert await history(log) == []


async def test_entry_comes_back_as_it_went_in(log: Log) -> None:
    entry = Entry(EntryType.ADDED, "Node", "", "knöten-1", "u", "12", "w", 5, '{"ü":"\\u0000"}'.encode())
    await append(log, entry)
    (stored,) = await log.read_range(START, 10)
    assert isinstance(stored, StoredEntry)
    assert stored.entry == entry


async def test_group_delivers_each_entry_once_and_keeps_it_until_acknowledged(log: Log) -> None:
    await log.take_over()
    await append(log, change("1"), change("2"), change("3"))
    identity = await log.identity()
    first = await log.read_new(2, 10, identity)
    rest = await log.read_new(10, 10, identity)
    assert [len(first), len(rest), len(await log.read_new(10, 10, identity))] == [2, 1, 0]
    assert (await log.info()).pending == 3
    await log.conclude(1, b"{}", [first[0].id])
    assert await log.take_over() == [first[1].id, rest[0].id]


async def test_journal_keeps_intents_and_outcomes_in_order(log: Log) -> None:
    first = await log.commit(3, b"intent-1", {"rejections": {"a": b"1", "@position": b"5-0"}})
    await log.conclude(3, b"outcome-1", [])
    second = await log.commit(4, b"intent-2", {})
    passes = await log.read_passes(START, 10)
    assert [(what, body) for _, what, body in passes] == [
        ("intent", b"intent-1"),
        ("outcome", b"outcome-1"),
        ("intent", b"intent-2"),
    ]
    assert [entry_id for entry_id, *_ in passes][::2] == [first, second]


async def test_older_epoch_is_fenced_off(log: Log) -> None:
    await log.commit(4, b"new leader", {})
    with pytest.raises(Fenced, match="epoch 3 is fenced: epoch 4"):
        await log.commit(3, b"old leader", {})
    with pytest.raises(Fenced):
        await log.conclude(3, b"old leader", [])
    assert len(await log.read_passes(START, 10)) == 1


async def test_many_entries_and_acknowledgements_go_through_in_bounded_batches(log: Log) -> None:
    await log.take_over()
    appended = await append(log, *(change(str(n), uid=f"u{n}") for n in range(1, 2500)))
    assert all(appended)
    batch = await log.read_new(5000, 10, await log.identity())
    assert len(batch) == 2499
    await log.conclude(1, b"{}", [one.id for one in batch])
    assert (await log.info()).pending == 0


async def test_log_of_a_rewound_cluster_begins_anew_once(log: Log) -> None:
    """An older etcd restored: versions count from below; of two who notice, the first does it."""
    await append(log, change("900"))
    old = await log.identity()
    await log.begin_anew(old)
    new = await log.identity()
    assert new != old
    assert await log.append_once([change("7")], new) == [True]
    await log.begin_anew(old)
    assert await log.identity() == new
    assert await history(log) == ["7"]


async def test_binder_of_a_rewound_cluster_is_not_fenced_and_the_journal_stays(log: Log) -> None:
    """Its lease has gone back in time, too."""
    await log.commit(7, b"before", {})
    await log.begin_anew(await log.identity())
    await log.commit(2, b"after", {})
    assert [body for *_, body in await log.read_passes(START, 10)] == [b"before", b"after"]


async def test_log_belongs_to_the_first_cluster_that_claims_it(log: Log) -> None:
    assert await log.cluster_of("uid-a") == "uid-a"
    assert await log.cluster_of("uid-b") == "uid-a"


async def test_log_that_is_handed_over_begins_anew_and_is_the_next_clusters(log: Log) -> None:
    await log.cluster_of("uid-a")
    before = await log.identity()
    await log.append_once([Entry(EntryType.SYNCED, "Node")], before)
    await log.hand_over("uid-b")
    assert await log.cluster_of("uid-a") == "uid-b"
    assert await log.identity() != before
    assert (await log.info()).entries == 0


KEEP_NOTHING = Retention(retain_ms=0, max_entries=0)


async def read_all(log: Log) -> list[str]:
    batch = await log.read_new(1000, 1, await log.identity())
    return [stored.id for stored in batch]


async def test_log_is_trimmed_only_behind_its_snapshot(log: Log) -> None:
    await log.take_over()
    await append(log, *(change(str(n)) for n in range(1, 6)))
    ids = await read_all(log)
    await log.conclude(1, b"", ids)
    later = now_ms() + 60_000
    assert await log.trim(KEEP_NOTHING, later) == 0
    await log.save_snapshot(1, Snapshot(ids[2], b"state"))
    assert await log.trim(KEEP_NOTHING, later) == 2
    assert await history(log) == ["3", "4", "5"]
    assert await log.trim(KEEP_NOTHING, later) == 0
    assert await log.load_snapshot() == Snapshot(ids[2], b"state")


async def test_what_is_not_acknowledged_is_not_trimmed(log: Log) -> None:
    """Case 061."""
    await log.take_over()
    await append(log, *(change(str(n)) for n in range(1, 6)))
    ids = await read_all(log)
    await log.conclude(1, b"", [ids[0], *ids[2:]])
    await log.save_snapshot(1, Snapshot(ids[-1], b""))
    await log.trim(KEEP_NOTHING, now_ms() + 60_000)
    assert await history(log) == ["2", "3", "4", "5"]
    assert await log.take_over() == [ids[1]]


@pytest.mark.parametrize(
    ("retention", "left"),
    [
        (Retention(retain_ms=10**9), 5),
        (Retention(retain_ms=10**9, max_entries=3), 3),
        (Retention(retain_ms=1), 1),
    ],
    ids=["young", "too many", "old"],
)
async def test_age_and_number_decide_what_stays_behind_the_snapshot(
    log: Log, retention: Retention, left: int
) -> None:
    await log.take_over()
    await append(log, *(change(str(n)) for n in range(1, 6)))
    ids = await read_all(log)
    await log.conclude(1, b"", ids)
    await log.save_snapshot(1, Snapshot(ids[-1], b""))
    await log.trim(retention, now_ms() + 60_000)
    assert len(await history(log)) == left


async def test_older_snapshot_never_replaces_a_newer_and_a_fenced_one_is_refused(log: Log) -> None:
    await log.save_snapshot(3, Snapshot("9-10", b"new"))
    await log.save_snapshot(3, Snapshot("9-9", b"old"))
    assert await log.load_snapshot() == Snapshot("9-10", b"new")
    await log.commit(4, b"", {})
    with pytest.raises(Fenced):
        await log.save_snapshot(3, Snapshot("10-0", b"fenced"))


async def test_reader_notices_entries_that_went_unread_or_a_log_that_lost_its_end(log: Log) -> None:
    """Case 065, and a failover to a replica that lacks the last second."""
    await log.take_over()
    await append(log, *(change(str(n)) for n in range(1, 6)))
    ids = await read_all(log)
    await log.conclude(1, b"", ids)
    assert not await log.has_lost(START)
    assert not await log.has_lost(ids[-1])
    await log.save_snapshot(1, Snapshot(ids[3], b""))
    await log.trim(KEEP_NOTHING, now_ms() + 60_000)
    assert await log.has_lost(START)
    assert await log.has_lost(ids[1])
    assert not await log.has_lost(ids[3])
    assert await log.has_lost("99999999999999-0")


async def test_quarantine_keeps_the_newest_and_is_bounded(log: Log) -> None:
    for number in range(QUARANTINE_LIMIT + 5):
        await log.quarantine(Quarantined(f"entry {number}", "no JSON", b"\xff\x00"))
    newest = await log.quarantined(2)
    assert newest[0] == Quarantined(f"entry {QUARANTINE_LIMIT + 4}", "no JSON", b"\xff\x00")
    assert len(await log.quarantined(10 * QUARANTINE_LIMIT)) == QUARANTINE_LIMIT
