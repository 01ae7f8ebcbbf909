"""9: the journal, replayed, gives the same bytes.

Beside each term of a binder a second one is folded from the log alone, up to the position that an intent
names, and given the claims that were listed and the memory that was recalled then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from binder.core.policy import Policy
from binder.core.run_pass import run_pass
from binder.core.snapshot import decode_state
from binder.core.state import ClusterState, fold_entry
from binder.core.world import World
from binder.journal import intent_body
from binder.live import list_claims
from eventlog.adapters.memory import MemoryLog
from eventlog.entries import Unreadable, id_order
from eventlog.port import START, Snapshot
from kube.port import ALL, Page, Selection
from model.resources import Resource
from projections.folds.memory import Lesson, Memory, recalled


@dataclass(slots=True)
class Recorded:
    """A `kube.port.Reader` of one list, as it was answered."""

    pages: list[Page]

    async def list_page(
        self, resource: Resource, selection: Selection = ALL, *, limit: int = 500, continue_token: str = ""
    ) -> Page:
        return self.pages.pop(0)


@dataclass(slots=True)
class Replay:
    """One term, done again."""

    log: MemoryLog
    state: ClusterState = field(default_factory=ClusterState)
    memory: Memory = field(default_factory=Memory)
    position: str = START
    tables: dict[str, Mapping[str, bytes]] = field(default_factory=dict)
    pages: list[Page] = field(default_factory=list)
    """Of the claims, as listed for the pass under way."""
    world: World = field(init=False)
    passes: int = 0

    def __post_init__(self) -> None:
        self.world = World(self.state)

    def begin_from(self, snapshot: Snapshot | None) -> None:
        state = decode_state(snapshot.body) if snapshot else None
        if snapshot is not None and state is not None:
            self.state, self.position = state, snapshot.position
            self.world = World(state)

    def recall(self, name: str, table: Mapping[str, bytes]) -> None:
        self.tables[name] = table
        self.memory, _ = recalled(self.tables)

    async def check(self, intent: bytes) -> str:
        """What differs, or nothing."""
        said: Any = orjson.loads(intent)
        await self.fold_up_to(said["position"])
        if self.position != said["position"]:
            return ""  # the log was emptied since the pass has read it: what is gone nobody replays
        if not self.pages:
            return f"2: the pass at {said['position']} has listed no claims (R3)"
        claims, _ = await list_claims(Recorded(self.pages), _ignore, {})
        policy = Policy(**said["policy"])
        self.world.update(claims)
        heard = [Lesson(one["in"], one["field"], one["value"]) for one in said["heard"]]
        self.memory.learn(heard)
        result = run_pass(self.world, self.memory, policy, said["now"])
        again = intent_body(result, policy, said["position"], said["now"], heard)
        self.memory.learn(result.lessons)
        if not result.blocked:
            self.world.learned_from()
        self.passes += 1
        return "" if again == intent else f"9: the pass at {said['position']} decides {_first(again, intent)}"

    async def fold_up_to(self, position: str) -> None:
        for stored in await self.log.read_range(self.position, 10**9):
            if id_order(stored.id) > id_order(position):
                break
            self.position = stored.id
            if not isinstance(stored, Unreadable):
                fold_entry(self.state, stored.entry, id_order(stored.id)[0])


def _ignore(name: str, why: str) -> None:
    return


def _first(again: bytes, intent: bytes) -> str:
    """The first difference."""
    one, other = orjson.loads(again), orjson.loads(intent)
    for key in sorted(one.keys() | other.keys()):
        if one.get(key) != other.get(key):
            return f"another {key} when replayed: {one.get(key)!r:.600} instead of {other.get(key)!r:.600}"
    return "the same in other bytes"
