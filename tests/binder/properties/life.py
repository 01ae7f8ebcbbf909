"""A long-lived state and world that real entries change, beside live claims: what a binder holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from binder.core.policy import Policy
from binder.core.run_pass import PassResult, run_pass
from binder.core.state import ClusterState, Key, fold_entry
from binder.core.world import World, look_at
from eventlog.entries import Entry, EntryType
from model.claims import GPUClaim
from model.kinds import BY_KIND
from model.lean import lean_object
from projections.folds.memory import Memory
from tests.binder.properties.raw import Raw

NOW_MS = 1_800_000_000_000


@dataclass(slots=True)
class Life:
    """Objects by kind and key, as the cluster has them now, and what a binder has made of their changes."""

    state: ClusterState = field(default_factory=ClusterState)
    world: World = field(init=False)
    memory: Memory = field(default_factory=Memory)
    policy: Policy = field(default_factory=Policy)
    now_ms: int = NOW_MS
    objects: dict[tuple[str, Key], Raw] = field(default_factory=dict)
    claims: dict[Key, GPUClaim] = field(default_factory=dict)
    version: int = 100
    entries: list[Entry] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world = World(self.state)
        for kind in BY_KIND:
            self._fold(Entry(EntryType.SYNCED, kind, ts_ms=self.now_ms))

    def put(self, kind: str, raw: Raw) -> None:
        """The object is as told; a claim is live only, as the log lags behind."""
        meta = raw["metadata"]
        key = (meta["namespace"], meta["name"])
        self.version += 1
        watched = BY_KIND[kind]
        if kind == "GPUClaim":
            meta = meta | {"resourceVersion": str(self.version), "generation": 1}
            self.claims[key] = GPUClaim.model_validate(raw | {"metadata": meta})
        old = self.objects.get((kind, key))
        if old is not None and old["metadata"]["uid"] != meta["uid"]:
            self._tell(EntryType.DELETED, kind, old)
        self.objects[kind, key] = raw
        body = lean_object(watched.model, watched.prune, raw)
        self._tell(EntryType.MODIFIED if old else EntryType.ADDED, kind, raw, body)

    def delete(self, kind: str, key: Key) -> None:
        """The object is gone, if there was one."""
        self.claims.pop(key, None) if kind == "GPUClaim" else None
        raw = self.objects.pop((kind, key), None)
        if raw is not None:
            self.version += 1
            self._tell(EntryType.DELETED, kind, raw)

    def pass_time(self, seconds: int) -> None:
        """A watcher is heard of then."""
        self.now_ms += 1000 * seconds
        self._fold(Entry(EntryType.HEARTBEAT, ts_ms=self.now_ms))

    def look(self) -> World:
        """The world, up to date: told which claims have changed, as the live list tells it."""
        known = self.world.relations.claims
        changed = [key for key, claim in self.claims.items() if known.get(key) is not claim]
        self.world.update(self.claims, changed)
        return self.world

    def decide(self) -> PassResult:
        """One pass of the long-lived world; what it learns is remembered."""
        result = run_pass(self.look(), self.memory, self.policy, self.now_ms)
        self.learn(result)
        return result

    def learn(self, result: PassResult) -> None:
        """What a pass has learned is stored; one that could not decide has learned nothing."""
        self.memory.learn(result.lessons)
        if not result.blocked:
            self.world.learned_from()

    def from_nothing(self) -> World:
        """The world as a binder has it that has just read the whole log.

        Who has gone since the last pass is told by the entries since then, to both alike.
        """
        state = ClusterState()
        for entry in self.entries:
            fold_entry(state, entry)
        for shelf in state.shelves.values():
            shelf.departed.clear()
        world = look_at(state, self.claims)
        world.fallen = self.world.fallen
        return world

    def _tell(self, of: EntryType, kind: str, raw: Raw, body: bytes = b"") -> None:
        meta: dict[str, Any] = raw["metadata"]
        entry = Entry(
            of,
            kind,
            meta["namespace"],
            meta["name"],
            meta["uid"],
            str(self.version),
            "w",
            self.now_ms,
            body,
        )
        self._fold(entry)

    def _fold(self, entry: Entry) -> None:
        self.entries.append(entry)
        fold_entry(self.state, entry)
