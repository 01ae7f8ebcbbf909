"""Step 4: sets that their node cannot keep are moved whole, or become Lost (R20-R22, R24, R25)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from binder.core.explanation import explain
from binder.core.keeping import IDLE_ONLY, Kind, Trouble, counts_from_ms
from binder.core.placement import Wish
from binder.core.placing import choose, over_budget, put, wish_of
from binder.core.refusals import RESTARTED_AFTER_POD_DELETION
from binder.core.restarts import has_vmi_run
from binder.core.scene import Scene, Stuck
from binder.core.sets import ClaimSet, Obstacle, Stage
from binder.core.writing import losses, pod_ref, pod_whereabouts, vmi_ref, vmi_whereabouts
from model.decisions import BindClaim, DeletePod, DeleteVmi
from model.nodes import Node
from model.reasons import Reason
from projections.folds import deletions
from projections.folds.memory import Lesson

MASS_OUTAGE = 3
"""More than one in so many GPU nodes failing at once is no node's fault: nothing is moved (R24)."""
LEAST_OUTAGE = 2
"""One node alone fails for reasons of its own, however few there are."""
_MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Leaving:
    """A set that is to leave its node, and why."""

    claim_set: ClaimSet
    node: str
    trouble: Trouble

    @property
    def why(self) -> str:
        """For people."""
        detail = f" ({self.trouble.detail})" if self.trouble.detail else ""
        return f"node {self.node} {self.trouble.kind}{detail}"


def move_sets(scene: Scene) -> None:
    """All that must leave and has somewhere to go moves; what has not is Lost."""
    _forget_old_deletions(scene)
    leaving = list(_leaving(scene))
    outage = _mass_outage(scene)
    if outage:
        scene.notices.append(outage)
        return
    blocked = {one.claim_set.key for one in scene.stuck if isinstance(one.wish, Obstacle)}
    ending = {one.set for one in scene.decisions if isinstance(one, DeletePod)}
    for one in sorted(leaving, key=lambda one: _turn(one, scene)):
        if one.claim_set.key not in scene.settled and one.claim_set.key not in ending:
            _leave(_movable(one, blocked, scene), scene)


def _movable(one: Leaving, blocked: set[str], scene: Scene) -> Leaving:
    """Where something else than room is in the way of the set, what it holds moves without the rest."""
    claim_set = one.claim_set
    is_blocked = claim_set.stage is Stage.GATED and claim_set.key in blocked
    is_loose = claim_set.stage in (Stage.IDLE, Stage.COMING)
    if is_blocked or (is_loose and over_budget(claim_set, scene)):
        return replace(one, claim_set=claim_set.without_new())
    return one


def _leaving(scene: Scene) -> Iterator[Leaving]:
    """Every set with a trouble that counts, once, with the first of them; those that just left are not."""
    went_to = {one.set: one.node for one in scene.decisions if isinstance(one, BindClaim)}
    for node, troubles in sorted(scene.world.troubled.items()):
        counting = []
        for trouble in troubles:
            at_ms = counts_from_ms(trouble, scene.since_ms(trouble.name(node)), scene.policy)
            if at_ms <= scene.now_ms:
                counting.append(trouble)
            else:
                scene.wake_by(at_ms)
        held = scene.world.held_on.get(node, {}).values() if counting else ()
        here = [one for one in held if went_to.get(one.key, node) == node]
        too_many = {t.of: _must_leave(here, node, t.of, scene) for t in counting if t.kind is Kind.SHORT}
        for claim_set in here:
            for trouble in counting:
                if _is_meant(trouble, claim_set, too_many):
                    yield Leaving(claim_set, node, trouble)
                    break


def _is_meant(trouble: Trouble, claim_set: ClaimSet, too_many: dict[str, frozenset[str]]) -> bool:
    if trouble.kind is Kind.SHORT:
        return claim_set.key in too_many[trouble.of]
    if trouble.kind in IDLE_ONLY and claim_set.stage is not Stage.IDLE:
        return False
    return trouble.concerns(claim_set)


def _must_leave(here: list[ClaimSet], node: str, resource: str, scene: Scene) -> frozenset[str]:
    """As many sets as must, latest bound first; of equal ones first those that idle or ran."""
    held = {one.key: one.held_on(node).get(resource, 0) for one in here}
    excess = sum(held.values()) - scene.world.room.nodes[node].allocatable.get(resource, 0)
    leaving: list[str] = []
    by_age = sorted(here, key=lambda one: (_rank(one, scene), one.key))
    for claim_set in sorted(by_age, key=ClaimSet.bound_at, reverse=True):
        if excess > 0 and held[claim_set.key]:
            leaving.append(claim_set.key)
            excess -= held[claim_set.key]
    for key in reversed(leaving[:-1]):
        if held[key] <= -excess:  # what left after it has made its leaving needless
            leaving.remove(key)
            excess += held[key]
    return frozenset(leaving)


def _mass_outage(scene: Scene) -> str:
    """Nodes count from the moment they fail, not after the grace: the first to fail must not move alone."""
    world = scene.world
    failing = [
        node
        for node, troubles in world.troubled.items()
        if any(_is_failure(trouble, node, scene) for trouble in troubles) and world.held_on.get(node)
    ]
    if len(failing) < LEAST_OUTAGE or len(failing) * MASS_OUTAGE <= len(world.gpu_nodes):
        return ""
    count = f"{len(failing)} of {len(world.gpu_nodes)} GPU nodes cannot keep their sets"
    return f"{Reason.MASS_OUTAGE}: {count}: nothing is moved or lost until some return"


def _is_failure(trouble: Trouble, node: str, scene: Scene) -> bool:
    """A taint is none as long as it is tolerated, nor is what an operator closes."""
    if trouble.kind is Kind.NO_EXECUTE:
        return counts_from_ms(trouble, scene.since_ms(trouble.name(node)), scene.policy) <= scene.now_ms
    return trouble.kind not in IDLE_ONLY


def _turn(one: Leaving, scene: Scene) -> tuple[int, str]:
    return (_rank(one.claim_set, scene), one.claim_set.key)


def _rank(claim_set: ClaimSet, scene: Scene) -> int:
    """R21: idle sets cost nothing; a VMI that never ran costs its VM a start back-off."""
    if claim_set.stage in (Stage.IDLE, Stage.COMING) or claim_set.vmi is None:
        return 0
    return 1 if has_vmi_run(claim_set.vmi, scene) else 2


def _leave(one: Leaving, scene: Scene) -> None:
    claim_set, is_free_to_stay = one.claim_set, one.trouble.kind in IDLE_ONLY
    wish = wish_of(claim_set, scene, leaving=one.node)
    target = None if isinstance(wish, Obstacle) else choose(claim_set, wish, scene)
    if claim_set.stage is Stage.GATED:
        target = None  # step 3 has found none
    if target is not None:
        _move(one, target, scene)
    elif claim_set.stage is not Stage.ENDING and not is_free_to_stay:
        scene.decisions += losses(claim_set, f"{one.why}; {_why_none(claim_set, wish, scene)}", scene.now_ms)
        scene.tell(claim_set, Reason.NODE_LOST, one.why)
        scene.settled.add(claim_set.key)


def _move(one: Leaving, target: str, scene: Scene) -> None:
    claim_set = one.claim_set
    launcher = claim_set.launcher
    if launcher is None:
        put(claim_set, target, scene)
        return
    if claim_set.stage is Stage.STARTING and claim_set.run_strategy in RESTARTED_AFTER_POD_DELETION:
        scene.decisions.append(
            DeletePod(claim_set.key, pod_ref(launcher), pod_whereabouts(launcher), one.why)
        )
    elif claim_set.stage is Stage.RUNNING and claim_set.run_strategy == "Always":
        if not _may_delete(scene):
            return
        uid = launcher.vmi.metadata.uid
        scene.lessons.append(Lesson(deletions.NAME, uid, scene.now_ms))
        scene.deleted += 1
        scene.decisions.append(
            DeleteVmi(claim_set.key, vmi_ref(launcher), vmi_whereabouts(launcher), one.why)
        )
    elif claim_set.stage in (Stage.STARTING, Stage.RUNNING):
        text = f"{one.why}, and run strategy {claim_set.run_strategy or 'none'} does not bring the VM back"
        scene.stuck.append(Stuck(claim_set, Obstacle(Reason.NODE_LOST, text)))
        return
    _reserve(claim_set, target, scene)


def _reserve(claim_set: ClaimSet, target: str, scene: Scene) -> None:
    """Nobody else of this pass gets the room that the set is to move to."""
    for resource, amount in {**claim_set.shape.other, **claim_set.needs}.items():
        scene.world.room.take(target, resource, amount)


def _may_delete(scene: Scene) -> bool:
    """R24: at most so many VMIs a minute."""
    recent = [scene.past_ms(at) for at in scene.memory.deletions.values() if scene.now_ms - at < _MINUTE_MS]
    if len(recent) + scene.deleted < scene.policy.max_vmi_deletions:
        return True
    scene.wake_by(min(recent, default=scene.now_ms) + _MINUTE_MS)
    scene.say_once(f"no more than {scene.policy.max_vmi_deletions} VMIs are deleted a minute")
    return False


def _forget_old_deletions(scene: Scene) -> None:
    for uid, at_ms in sorted(scene.memory.deletions.items()):
        if scene.now_ms - at_ms >= _MINUTE_MS:
            scene.lessons.append(Lesson(deletions.NAME, uid, None))
        elif scene.past_ms(at_ms) != at_ms:
            scene.lessons.append(Lesson(deletions.NAME, uid, scene.past_ms(at_ms)))


def _why_none(claim_set: ClaimSet, wish: Wish | Obstacle, scene: Scene) -> str:
    if isinstance(wish, Obstacle):
        return wish.message
    world = scene.world
    return explain(wish, world.sites_for(claim_set), world.room, world.state.of(Node)).message
