"""Sees every write of the binders, every pass and the journal, and says which check fails first.

What it knows comes from the API server, from the log as it stands, and from what passed through the clients.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from binder.consumer import PassReport
from eventlog.entries import EntryType, id_order
from eventlog.port import Snapshot
from kube.port import Json, Page
from model import resources as r
from tests.sim import checks, writing
from tests.sim.clients import Write
from tests.sim.past import Past
from tests.sim.processes import LEASE, Ground
from tests.sim.replaying import Replay
from tests.sim.view import View, uid

PATIENCE = 2
"""Passes that knew all of it, after which a wrong that is of the moment counts (6: "for longer than two")."""


@dataclass(slots=True)
class Term:
    """What one process's binder has under way."""

    replay: Replay
    intent: Any = None
    begun_at: str = ""
    """What the log ended with at its first pass."""
    is_open: bool = False
    """Whether its last intent has still to be concluded."""
    is_current: bool = False
    """Whether its last pass knew all there was."""


@dataclass(slots=True)
class Judge:
    """Implements `clients.Witness`."""

    ground: Ground
    past: Past
    failures: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    decided: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    last_write_s: float = 0.0
    last_write: str = ""
    _terms: dict[str, Term] = field(default_factory=dict)
    _epoch: tuple[str, int] = ("", -1)
    _lasting: dict[str, int] = field(default_factory=dict)

    def fail(self, why: str) -> None:
        """Only the first ones matter: what follows may be their work."""
        if why and len(self.failures) < 5:
            self.failures.append(why)

    def view(self) -> View:
        return View(self.ground.server.store)

    # The journal.

    def snapshot_loaded(self, process: str, snapshot: Snapshot | None) -> None:
        self._terms[process] = Term(Replay(self.ground.log))
        self._terms[process].replay.begin_from(snapshot)

    def table_recalled(self, process: str, name: str, table: Mapping[str, bytes]) -> None:
        self._terms[process].replay.recall(name, table)

    def claims_listed(self, process: str, pages: list[Page]) -> None:
        if process in self._terms:
            self._terms[process].replay.pages = list(pages)

    async def committed(self, process: str, epoch: int, intent: bytes) -> None:
        term, said = self._terms[process], orjson.loads(intent)
        term.intent, term.is_open, term.begun_at = said, True, term.begun_at or said["position"]
        identity = self.ground.log._identity
        if self._epoch[0] == identity and epoch < self._epoch[1]:
            self.fail(f"9: {process} commits with epoch {epoch} after epoch {self._epoch[1]} has committed")
        self._epoch = (identity, max(epoch, self._epoch[1] if self._epoch[0] == identity else -1))
        self.fail(await term.replay.check(intent))
        term.is_current = not said["blocked"] and self._knows_all(said["position"])
        self.counts["passes"] += 1
        for decision in said["decisions"]:
            self.decided[decision["do"]] += 1
        for waiting in said["waiting"]:
            self.reasons[waiting["reason"]] += 1
        if said["blocked"]:
            self.counts["passes blocked"] += 1

    def concluded(self, process: str, epoch: int, done_ids: Sequence[str]) -> None:
        term = self._terms[process]
        term.is_open = False
        seen = id_order(term.intent["position"]) if term.intent else (0, 0)
        ahead = [one for one in done_ids if id_order(one) > seen and self._tells(one)]
        if ahead:
            self.fail(f"9: {process} acknowledges {ahead[0]}, which no recorded pass has seen")

    def _tells(self, entry_id: str) -> bool:
        """Whether the entry says more than that a watcher lives."""
        found = [fields for one, fields in self.ground.log._events if one == entry_id]
        return bool(found) and found[0].get(b"t") != EntryType.HEARTBEAT.encode()

    def _knows_all(self, position: str) -> bool:
        """Whether a fold up to there has each object of a kind that matters as the API server has it."""
        known = self.ground.log._known
        for resource in writing.MATTERS:
            have = known.get(resource.kind, {})
            for one in self.ground.server.store.scan(resource):
                seen = have.get(uid(one))
                if seen is None or int(seen.resource_version) < int(one["metadata"]["resourceVersion"]):
                    return False
        later = [f for i, f in self.ground.log._events if id_order(i) > id_order(position)]
        return all(fields.get(b"t") == EntryType.HEARTBEAT.encode() for fields in later)

    # Writes.

    def write_begins(self, write: Write) -> None:
        self.counts["writes begun"] += 1
        term = self._terms.get(write.process)
        if term is None or not term.is_open:
            self.fail(f"9: {write.process} writes {write.key} before its intent is recorded")
        lease = self.ground.server.store.read(r.LEASES, LEASE)
        holder = (lease or {}).get("spec", {}).get("holderIdentity")
        if holder != write.process:
            self.fail(f"2: {write.process} begins to write {write.key}, the lease is {holder}'s")

    def write_done(self, write: Write, old: Json | None, new: Json | None) -> None:
        self.counts["writes"] += 1
        self.last_write_s, self.last_write = self.past.now_s(), f"{write.verb} {write.key} {write.body}"
        self.look()
        term = self._terms[write.process]
        policy = term.intent["policy"] if term.intent else {}
        done = writing.Done(write, old, new, term.replay.state, policy, self._was_told(term))
        for check in writing.CHECKS:
            for why in check(done, self.view(), self.past):
                self.fail(why)
        self.past.note_write(done)

    def _was_told(self, term: Term) -> Callable[[str], bool]:
        """Whether a pass of this term has read that a pod failed, after the first.

        What a node refused and what went with it before a term began is known to nobody any more.
        """
        before = id_order(term.begun_at)
        seen = id_order(term.intent["position"]) if term.intent else (0, 0)

        def was_told_failed(pod_uid: str) -> bool:
            mine = [one for one in self.ground.log._events if one[1].get(b"u") == pod_uid.encode()]
            return any(b'"Failed"' in fields[b"o"] for at, fields in mine if before < id_order(at) <= seen)

        return was_told_failed

    # Passes.

    def pass_done(self, process: str, report: PassReport) -> None:
        self.look()
        view = self.view()
        for _, why in checks.no_more_is_booked_than_a_node_ever_had(view, self.past.most):
            self.fail(why)
        term = self._terms[process]
        if report.failed or report.failing or not term.is_current:  # who failed is let wait a while
            return
        wrongs = dict(wrong for check in self._lasting_checks(term) for wrong in check(view))
        self._lasting = {of: self._lasting.get(of, 0) + 1 for of in wrongs}
        for of, times in self._lasting.items():
            if times > PATIENCE:
                self.fail(wrongs[of])

    def _lasting_checks(self, term: Term) -> Sequence[Callable[[View], Any]]:
        """Whom a node has refused, or for whom a VM that restarts is waited with units, waits rightly."""
        memory = term.replay.memory
        if not term.intent["policy"]["is_enabled"]:
            return ()  # R30: launchers go where the scheduler has room, and no claim follows
        if memory.rejections or memory.ended:
            return [one for one in checks.LASTING if one is not checks.nobody_waits_for_nothing]
        return checks.LASTING

    def look(self) -> None:
        """Remember how the nodes are."""
        self.past.look(self.view())
