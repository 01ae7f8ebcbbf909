"""Step 2: no set is partly Lost, elsewhere than its launcher, or split without need (R16-R19)."""

from __future__ import annotations

from binder.core.placing import bind_at_anchor, choose, follow, over_budget, put, wish_of
from binder.core.scene import Scene
from binder.core.sets import ClaimSet, Obstacle, Stage
from binder.core.world import Queue
from binder.core.writing import losses
from model.reasons import Reason

_PARTLY = "another claim of its set is Lost, and no node takes them all"


def settle_sets(scene: Scene) -> None:
    """Gather what belongs together, or lose all of it. Gated launchers are gathered by step 3."""
    for _, claim_set in sorted(scene.world.queues[Queue.UNSETTLED].items()):
        if claim_set.key in scene.settled:
            continue
        if claim_set.stage in (Stage.STARTING, Stage.RUNNING) and claim_set.anchor:
            _settle_at_launcher(claim_set, scene)
        elif claim_set.stage in (Stage.IDLE, Stage.COMING):
            _gather(claim_set, scene)
        elif claim_set.lost:  # it ends, or its launcher can go anywhere: no node is the right one
            _lose(claim_set, _PARTLY, scene)


def _settle_at_launcher(claim_set: ClaimSet, scene: Scene) -> None:
    if claim_set.lost:
        if not bind_at_anchor(claim_set, scene):
            _lose(claim_set, _PARTLY, scene)
    elif not follow(claim_set, scene):
        why = f"its VM is on {claim_set.anchor}, which has not the units for all of its claims"
        _lose(claim_set, why, scene)
        scene.tell(claim_set, Reason.NODE_LOST, why)


def _gather(claim_set: ClaimSet, scene: Scene) -> None:
    if over_budget(claim_set, scene):
        claim_set = claim_set.without_new()
    wish = wish_of(claim_set, scene)
    node = None if isinstance(wish, Obstacle) else choose(claim_set, wish, scene)
    if node is not None:
        put(claim_set, node, scene)
    elif claim_set.lost:
        _lose(claim_set, _PARTLY, scene)


def _lose(claim_set: ClaimSet, why: str, scene: Scene) -> None:
    scene.decisions += losses(claim_set, why, scene.now_ms)
    scene.settled.add(claim_set.key)
