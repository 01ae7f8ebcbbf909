"""What the steps of a pass look at, and where they put what they decide and learn.

Built once per pass. The steps read world, memory, policy and now; they book in the world's room and add to
the lists here. Must not know: what any step does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from binder.core.placement import Wish
from binder.core.policy import Policy
from binder.core.relations import Uid
from binder.core.sets import ClaimSet, Obstacle, Shape
from binder.core.world import World
from binder.core.writing import marked_reason
from model.claims import Phase
from model.decisions import Decision, ObjectRef, WarnVmi
from model.instants import rfc3339
from model.reasons import Reason
from projections.folds import troubles, vm_history
from projections.folds.memory import Lesson, Memory
from projections.folds.rejections import Rejection
from projections.folds.vm_history import Run


@dataclass(frozen=True, slots=True)
class Hold:
    """Units that wait on a node for a VM that restarts (R39)."""

    node: str
    units: Mapping[str, int]
    """By resource."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """A set that waits, for what is in its way or for a node that fulfils its wish.

    Why there is none is told when all sets have been placed.
    """

    claim_set: ClaimSet
    wish: Wish | Obstacle


@dataclass(slots=True)
class Scene:
    """One pass."""

    world: World
    memory: Memory
    policy: Policy
    now_ms: int
    decisions: list[Decision] = field(default_factory=list)
    stuck: list[Stuck] = field(default_factory=list)
    lessons: list[Lesson] = field(default_factory=list)
    learned: dict[str, Run | None] = field(default_factory=dict)
    """Runs that are to be remembered otherwise than they are, by the VMI's uid; None: forgotten."""
    notices: list[str] = field(default_factory=list)
    """What the pass as a whole has to say, e.g. that it moves nothing and why."""
    rejections: dict[str, Mapping[str, Rejection]] = field(default_factory=dict)
    """As they stand now, by the VM as memory names it, then by node."""
    holds: dict[Uid, Hold] = field(default_factory=dict)
    """By the VM (R39)."""
    leaving: set[Uid] = field(default_factory=set)
    """VMs whose last run still has its claims: they are about to go, and its units with them (R39)."""
    placed_units: dict[str, dict[str, int]] = field(default_factory=dict)
    """Units that are or were placed, by namespace and class, with what this pass has added (R27)."""
    wake_at_ms: int | None = None
    settled: set[str] = field(default_factory=set)
    """Keys of the sets that an earlier step has decided over."""
    unfit: dict[Shape, int] = field(default_factory=dict)
    """Shapes of sets that no node had room for, by how often room had been given back then."""
    deleted: int = 0
    """VMIs that this pass deletes (R24)."""
    _told: dict[str, Reason] = field(default_factory=dict)
    _seen: dict[str, int] = field(default_factory=dict)

    def wake_by(self, at_ms: int) -> None:
        """Something may change then without any event."""
        if at_ms > self.now_ms and (self.wake_at_ms is None or at_ms < self.wake_at_ms):
            self.wake_at_ms = at_ms

    def since_ms(self, trouble: str) -> int:
        """Since when the trouble lasts; it is remembered while passes go on asking."""
        since = self._seen[trouble] = self.past_ms(self.memory.troubles.get(trouble, self.now_ms))
        return since

    def past_ms(self, remembered_ms: int) -> int:
        """A remembered moment. One that is still to come was told by a clock that was ahead: it is now."""
        return min(remembered_ms, self.now_ms)

    def refused_by(self, vm: Uid) -> frozenset[str]:
        """The nodes that are left alone for the VM (R13)."""
        return frozenset(self.rejections.get("/".join(vm), ()))

    def run_of(self, vmi_uid: str) -> Run | None:
        """What is known of the VMI, by memory or since then."""
        return self.learned[vmi_uid] if vmi_uid in self.learned else self.memory.runs.get(vmi_uid)

    def tell(self, claim_set: ClaimSet, reason: Reason, message: str) -> None:
        """Warn the VMI's tenant, once per change of reason (R12); of several in one pass, of the first."""
        vmi = claim_set.vmi
        if vmi is None or vmi.metadata.uid in self._told:
            return
        self._told[vmi.metadata.uid] = reason
        run = self.memory.runs.get(vmi.metadata.uid)
        if (run.told if run is not None else marked_reason(claim_set)) != reason:
            ref = ObjectRef(vmi.metadata.namespace, vmi.metadata.name, vmi.metadata.uid)
            self.decisions.append(WarnVmi(claim_set.key, ref, reason, message, rfc3339(self.now_ms)))

    def remember_troubles(self) -> None:
        """At the end: what is new among the troubles, and what is over."""
        known = self.memory.troubles
        self.lessons += [
            Lesson(troubles.NAME, name, at)
            for name, at in sorted(self._seen.items())
            if known.get(name) != at
        ]
        self.lessons += [
            Lesson(troubles.NAME, name, None) for name in sorted(known.keys() - self._seen.keys())
        ]

    def say_once(self, notice: str) -> None:
        """What the pass as a whole has to say."""
        if notice not in self.notices:
            self.notices.append(notice)

    def remember_told(self) -> None:
        """At the end: what each waiting VMI's tenant knows, and who no longer waits (R12)."""
        for uid in self.memory.told | self._told.keys():
            run, told = self.run_of(uid), str(self._told.get(uid, ""))
            if run is not None and run.told != told:
                self.learned[uid] = replace(run, told=told)

    def remember_runs(self) -> None:
        """At the very end: what has been learned of runs."""
        self.lessons += [Lesson(vm_history.NAME, uid, run) for uid, run in sorted(self.learned.items())]

    def count_placed(self, claim_set: ClaimSet) -> None:
        """The set's new units are in use now (R27)."""
        namespace = claim_set.user[0]
        units = self.placed_units.setdefault(namespace, dict(self.world.held_units.get(namespace, {})))
        for name, amount in new_units(claim_set).items():
            units[name] = units.get(name, 0) + amount


def new_units(claim_set: ClaimSet) -> dict[str, int]:
    """Units by class of members that have never been placed: what a budget is asked for (R27)."""
    wanted: dict[str, int] = {}
    for member in claim_set.members:
        if member.claim is None or member.claim.status.phase is Phase.PENDING:
            name = member.gpu_class.metadata.name
            wanted[name] = wanted.get(name, 0) + member.units
    return wanted
