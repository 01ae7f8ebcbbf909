"""One pass: the whole cluster in, all decisions out (R4, R5).

A pure function of its arguments: no clock, no I/O, nothing remembered between calls, every loop over sorted
things. Steps 1, 2, 4 and 5 of R5 (refusals, half-lost sets, moves, Lost sets) are not built yet; a claim that
is Bound stays where it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from binder.core.decide import Waiting, keep_classes, place_set, release_ended
from binder.core.launchers import Launcher
from binder.core.policy import Policy
from binder.core.scene import Scene, survey
from binder.core.sets import ClaimSet, launcher_set, order_sets
from binder.core.state import ClusterState, Key
from binder.core.told import Told
from model.claims import GPUClaim
from model.decisions import Decision
from model.reasons import Reason


@dataclass(frozen=True, slots=True)
class PassResult:
    """What a pass decided, who waits and why, and why it decided nothing, if so."""

    decisions: tuple[Decision, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    blocked: str = ""


def run_pass(
    state: ClusterState, claims: Mapping[Key, GPUClaim], told: Told, policy: Policy, now_ms: int
) -> PassResult:
    """Decide for all GPU objects at once. `claims` are the live ones, read past the log (R3)."""
    blocked = why_blocked(state, policy, now_ms)
    if blocked:
        return PassResult(blocked=blocked)
    scene = survey(state, claims, told, now_ms)
    decisions: list[Decision] = []
    waiting: list[Waiting] = []
    # (0) classes in use stay, what has ended gives its units back
    decisions += keep_classes(scene)
    decisions += release_ended(scene)
    # (3) gated launchers, then (6) new orders
    for claim_set in (*gated_sets(scene), *order_sets(scene.shop)):
        more, wait = place_set(claim_set, scene)
        decisions += more
        waiting += wait
    return PassResult(tuple(decisions), tuple(waiting))


def why_blocked(state: ClusterState, policy: Policy, now_ms: int) -> str:
    """Why no decision may be made now (R33), or the empty string."""
    missing = state.missing_kinds()
    if missing:
        return f"waiting for the first complete list of {', '.join(missing)}"
    silent_s = (now_ms - state.heard_ms) // 1000
    if silent_s > policy.stale_after_s:
        return f"{Reason.STALE_LOG}: no watcher was heard of for {silent_s} s"
    return ""


def gated_sets(scene: Scene) -> Iterable[ClaimSet]:
    """The sets of gated launchers in queue order: priority, then creation, then name (R11)."""
    gated = [launcher for launcher in scene.launchers.values() if launcher.is_placeable]
    for launcher in sorted(gated, key=_queue_place):
        yield launcher_set(launcher, scene.shop)


def _queue_place(launcher: Launcher) -> tuple[int, str, str, str]:
    meta = launcher.pod.metadata
    return (-launcher.pod.spec.priority, meta.creation_timestamp, meta.namespace, meta.name)
