"""One pass: the whole cluster in, all decisions out (R4, R5).

A pure function of its arguments: no clock, no I/O, every loop over sorted things. It books in the world's
room while it decides and leaves it as it was. What it has learned is for its caller to store before anything
is carried out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from binder.core.bookkeeping import keep_ledger
from binder.core.explanation import Explanation, explain
from binder.core.lifecycle import collect_left, keep_claims, keep_classes, open_gates, release_ended
from binder.core.migrating import hold_for_targets, place_targets
from binder.core.moving import move_sets
from binder.core.placing import place_gated, place_orders, rebind_lost
from binder.core.policy import Policy
from binder.core.refusals import notice_refusals, recall_rejections
from binder.core.refused_claims import forget_refused_claims
from binder.core.restarts import hold_for_restarts, remember_runs
from binder.core.scene import Scene, Stuck
from binder.core.sets import Obstacle, Shape
from binder.core.settling import settle_sets
from binder.core.state import ClusterState
from binder.core.statuses import write_statuses
from binder.core.strangers import warn_strangers
from binder.core.world import World
from binder.core.writing import marked_reason, marks
from model.decisions import Decision
from model.nodes import Node
from model.reasons import Reason
from projections.folds.memory import Lesson, Memory

MAX_REFRESHED = 20
"""Claims whose reason stands but not its counts, rewritten in one pass; the others have their turn in
the next: a node that flaps must not cost a write for everyone who waits."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A set that cannot be placed now, and why; `vmi_uid` is empty for orders."""

    set: str
    reason: Reason
    message: str
    vmi_uid: str = ""
    stops: Mapping[Reason, int] = field(default_factory=dict)
    """How many nodes each stage of R8 stopped; see `explanation.REMEDIES` for what would help."""
    nearest: str = ""
    """The node that came nearest."""


@dataclass(frozen=True, slots=True)
class PassResult:
    """What a pass decided and learned, who waits and why, or why it decided nothing."""

    decisions: tuple[Decision, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    lessons: tuple[Lesson, ...] = ()
    notices: tuple[str, ...] = ()
    blocked: str = ""
    wake_at_ms: int | None = None
    """When something may change without any event: a grace, a hold or a rejection that runs out."""


def run_pass(world: World, memory: Memory, policy: Policy, now_ms: int) -> PassResult:
    """Decide for all GPU objects at once. The world holds live claims, read past the log (R3)."""
    blocked = why_blocked(world.state, policy, now_ms)
    if blocked:
        return PassResult(blocked=blocked)
    scene = Scene(world, memory, policy, now_ms)
    with world.room.draft():
        _decide(scene)
        waiting = _tell_waiting(scene)
    scene.remember_troubles()
    scene.remember_told()
    scene.remember_runs()
    keep_ledger(scene)
    write_statuses(scene)
    return PassResult(
        tuple(scene.decisions),
        waiting,
        tuple(scene.lessons),
        tuple(scene.notices),
        wake_at_ms=scene.wake_at_ms,
    )


def _decide(scene: Scene) -> None:
    """R5, step by step. From step 3 on, each changes whole sets only."""
    remember_runs(scene)
    # (0) finalizers: what is in use stays, what has ended gives its units back
    keep_classes(scene)
    keep_claims(scene)
    release_ended(scene)
    collect_left(scene)
    warn_strangers(scene)
    forget_refused_claims(scene)
    if not scene.policy.is_enabled:
        open_gates(scene)
        return
    # (1) refusals noticed and remembered, refused pods deleted
    recall_rejections(scene)
    notice_refusals(scene)
    # (2) the set invariant restored
    hold_for_restarts(scene)
    hold_for_targets(scene)
    settle_sets(scene)
    # (3) gated launchers, and the targets of migrations
    place_gated(scene)
    place_targets(scene)
    # (4) moves
    move_sets(scene)
    # (5) Lost sets
    rebind_lost(scene)
    # (6) new orders
    place_orders(scene)


def why_blocked(state: ClusterState, policy: Policy, now_ms: int) -> str:
    """Why no decision may be made now (R33), or the empty string."""
    missing = state.missing_kinds()
    if missing:
        return f"waiting for the first complete list of {', '.join(missing)}"
    silent_s = (now_ms - state.heard_ms) // 1000
    if silent_s > policy.stale_after_s:
        return f"{Reason.STALE_LOG}: no watcher was heard of for {silent_s} s"
    return ""


def _tell_waiting(scene: Scene) -> tuple[Waiting, ...]:
    """R12: each waiting set's reason, on its claims and to its tenant."""
    known: dict[Shape, Explanation] = {}
    waiting, refreshed = [], 0
    for one in scene.stuck:
        claim_set = one.claim_set
        why = _why(one, scene, known)
        if claim_set.caution:
            why = replace(why, message=f"{why.message}; {claim_set.caution}")
        obstacle = Obstacle(why.reason, why.message)
        is_news = marked_reason(claim_set) != why.reason
        told = marks(claim_set, obstacle, scene.now_ms) if is_news or refreshed < MAX_REFRESHED else []
        refreshed += 0 if is_news else len(told)
        scene.decisions += told
        scene.tell(claim_set, why.reason, why.message)
        uid = claim_set.vmi.metadata.uid if claim_set.vmi is not None else ""
        waiting.append(Waiting(claim_set.key, why.reason, why.message, uid, why.stops, why.nearest))
    return tuple(waiting)


def _why(one: Stuck, scene: Scene, known: dict[Shape, Explanation]) -> Explanation:
    """Sets that want the same of the same nodes wait for the same reason."""
    wish, claim_set, world = one.wish, one.claim_set, scene.world
    if isinstance(wish, Obstacle):
        return Explanation(wish.reason, wish.message)
    if wish.is_plain and claim_set.shape in known:
        return known[claim_set.shape]
    found = explain(wish, world.sites_for(claim_set), world.room, world.state.of(Node))
    if wish.is_plain:
        known[claim_set.shape] = found
    return found
