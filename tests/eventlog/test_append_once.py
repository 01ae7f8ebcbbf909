"""Append-once against its model: whatever replicas report, in whatever order, each change is told once.

The model is a dictionary: uid to the newest version, the body last told, and whether the object is gone.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog.adapters.memory import MemoryLog
from eventlog.adapters.redis_streams import connect
from eventlog.entries import CHANGES, Entry, EntryType, StoredEntry
from eventlog.port import START, Log
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
    gone: set[tuple[str, str]] = field(default_factory=set)

    def takes(self, entry: Entry) -> bool:
        if entry.type not in CHANGES:
            return True
        key, version = (entry.kind, entry.uid), int(entry.resource_version)
        if key in self.gone or version <= self.versions.get(key, -1):
            return False
        was_known = key in self.versions
        self.versions[key] = version
        if entry.type is EntryType.DELETED:
            self.gone.add(key)
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


@st.composite
def runs(draw: st.DrawFn) -> list[list[Entry]]:
    """Batches of several replicas as they reach the log: the same events, each replica in its own time."""
    events = draw(st.lists(reports(), max_size=8))
    replicas = [list(events) for _ in range(draw(st.integers(1, 3)))]
    batches: list[list[Entry]] = []
    while any(replicas):
        replica = draw(st.sampled_from([one for one in replicas if one]))
        size = draw(st.integers(1, len(replica)))
        batches.append(replica[:size])
        del replica[:size]
    return batches


async def hold_to_the_model(log: Log, batches: list[list[Entry]]) -> None:
    model, told = Model(), list[Entry]()
    identity = await log.identity()
    for batch in batches:
        expected = [model.takes(entry) for entry in batch]
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
async def test_log_in_memory_follows_the_model(batches: list[list[Entry]]) -> None:
    await hold_to_the_model(MemoryLog(now_ms), batches)


@given(batches=runs())
@settings(max_examples=60, deadline=None)
async def test_log_in_redis_follows_the_model(server: Server, batches: list[list[Entry]]) -> None:
    log = await connect(server.url, f"model-{next(_clusters)}", "one", now_ms)
    await hold_to_the_model(log, batches)
    await log.close()
