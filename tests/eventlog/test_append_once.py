"""Append-once against its model: whatever replicas report, in whatever order, each change is told once.

The model is a dictionary: uid to the newest version, the body last told, and when a deletion is forgotten.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace

from hypothesis import given, settings
from hypothesis import strategies as st
from redis.asyncio import Redis

from eventlog.adapters.memory import MemoryLog
from eventlog.adapters.redis_streams import connect
from eventlog.entries import CHANGES, Entry, EntryType, StoredEntry
from eventlog.keys import Keys
from eventlog.port import START, TOMBSTONE_MS, Log
from tests.eventlog.conftest import Server, now_ms

UIDS = ("u1", "u2", "u3")
BODIES = (b"{}", b'{"a":1}', b'{"a":2}')
VERSIONS = st.integers(1, 30) | st.integers(2**63 - 2, 2**63 + 2) | st.integers(2**128 - 3, 2**128)
_clusters = itertools.count()


@dataclass
class Model:
    """The rules in as few lines as they have."""

    versions: dict[tuple[str, str], int] = field(default_factory=dict)
    told: dict[tuple[str, str], bytes] = field(default_factory=dict)
    gone: dict[tuple[str, str], int] = field(default_factory=dict)

    def forget(self, now: int) -> None:
        for key in [key for key, until_ms in self.gone.items() if until_ms <= now]:
            del self.gone[key], self.versions[key]
            self.told.pop(key, None)

    def takes(self, entry: Entry, now: int) -> bool:
        if entry.type not in CHANGES:
            return True
        key, version = (entry.kind, entry.uid), int(entry.resource_version)
        if key in self.gone or version <= self.versions.get(key, -1):
            return False
        was_known = key in self.versions
        self.versions[key] = version
        if entry.type is EntryType.DELETED:
            self.gone[key] = now + TOMBSTONE_MS
            return was_known
        was_told, self.told[key] = self.told.get(key), entry.object
        return was_told != entry.object


@st.composite
def reports(draw: st.DrawFn) -> Entry:
    kind = draw(st.sampled_from(("Pod", "Node")))
    change = draw(st.sampled_from((*sorted(CHANGES) * 3, EntryType.SYNCED, EntryType.HEARTBEAT)))
    uid = draw(st.sampled_from(UIDS))
    body = b"" if change is EntryType.DELETED else draw(st.sampled_from(BODIES))
    return Entry(change, kind, "ns", f"pod-{uid}", uid, str(draw(VERSIONS)), "w", 1, body)


Run = list[tuple[int, list[Entry]]]


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """Batches of several replicas as they reach the log: the same events, each replica in its own time.

    Before each batch, the milliseconds that pass.
    """
    events = draw(st.lists(reports(), max_size=8))
    replicas = [list(events) for _ in range(draw(st.integers(1, 3)))]
    batches: Run = []
    while any(replicas):
        replica = draw(st.sampled_from([one for one in replicas if one]))
        size = draw(st.integers(1, len(replica)))
        batches.append((draw(st.sampled_from((0, 1, TOMBSTONE_MS - 1, TOMBSTONE_MS))), replica[:size]))
        del replica[:size]
    return batches


@dataclass
class Clock:
    ms: int

    def __call__(self) -> int:
        return self.ms


async def hold_to_the_model(log: Log, batches: Run, clock: Clock) -> None:
    model, told = Model(), list[Entry]()
    identity = await log.identity()
    for passes_ms, batch in batches:
        clock.ms += passes_ms
        model.forget(clock.ms)
        expected = [model.takes(entry, clock.ms) for entry in batch]
        assert await log.append_once(batch, identity) == expected
        told += itertools.compress(batch, expected)
    stored = await log.read_range(START, 1000)
    assert [one.entry for one in stored if isinstance(one, StoredEntry)] == told
    for kind in ("Pod", "Node"):
        seen = await log.seen(kind)
        assert {uid: one.resource_version for uid, one in seen.items()} == {
            uid: str(model.versions[kind, uid]) for uid in UIDS if is_living(model, kind, uid)
        }


def is_living(model: Model, kind: str, uid: str) -> bool:
    return (kind, uid) in model.versions and (kind, uid) not in model.gone


@given(runs())
async def test_log_in_memory_follows_the_model(batches: Run) -> None:
    clock = Clock(now_ms())
    await hold_to_the_model(MemoryLog(clock), batches, clock)


@given(batches=runs())
@settings(max_examples=60, deadline=None)
async def test_log_in_redis_follows_the_model(server: Server, batches: Run) -> None:
    clock = Clock(now_ms())
    log = await connect(server.url, f"model-{next(_clusters)}", "one", clock)
    await hold_to_the_model(log, batches, clock)
    await log.close()


async def test_what_is_remembered_of_deleted_objects_leaves(server: Server) -> None:
    """Months of short-lived pods: both logs hold what lives, not what ever lived."""
    clock = Clock(now_ms())
    cluster = f"model-{next(_clusters)}"
    log, memory = await connect(server.url, cluster, "one", clock), MemoryLog(clock)
    for number in range(20):
        lives = Entry(EntryType.ADDED, "Pod", "ns", "p", f"u{number}", f"{2 * number + 1}", object=b"{}")
        dies = replace(lives, type=EntryType.DELETED, resource_version=f"{2 * number + 2}", object=b"")
        for one in (log, memory):
            assert await one.append_once([lives, dies], await one.identity()) == [True, True]
        clock.ms += TOMBSTONE_MS // 4
    redis = Redis.from_url(server.url)
    assert await redis.hlen(Keys(cluster).seen("Pod")) == 4
    assert await redis.zcard(Keys(cluster).tombs("Pod")) == 4
    assert memory.remembered() == 4
    await redis.aclose()
    await log.close()
