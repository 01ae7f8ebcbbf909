"""Sets whose template claims the API server refuses, e.g. for a quota: they wait and take no room (R12).

Their claims are tried again all the same, when the loop lets them; who waits behind them is placed as if they
were not there. Once the claims exist the set is one like any other.
"""

from __future__ import annotations

from binder.core.scene import Scene
from binder.core.sets import ClaimSet, Obstacle
from binder.core.world import Queue
from model.reasons import Reason
from projections.folds import refused_claims
from projections.folds.memory import Lesson


def refused_write(claim_set: ClaimSet, scene: Scene) -> Obstacle | None:
    """What keeps the set from any node, in the server's words."""
    words = scene.memory.refused_claims.get(_vmi_uid(claim_set))
    if not words or not _lacks_claims(claim_set):
        return None
    return Obstacle(Reason.WRITE_REFUSED, f"its claim cannot be created: {words}")


def forget_refused_claims(scene: Scene) -> None:
    """Of VMIs that no longer wait for a claim that is still to be created."""
    if not scene.memory.refused_claims:
        return
    gated = scene.world.queues[Queue.GATED].values()
    waiting = {_vmi_uid(claim_set) for claim_set in gated if _lacks_claims(claim_set)}
    for uid in sorted(scene.memory.refused_claims.keys() - waiting):
        scene.lessons.append(Lesson(refused_claims.NAME, uid, None))


def _vmi_uid(claim_set: ClaimSet) -> str:
    return claim_set.vmi.metadata.uid if claim_set.vmi is not None else ""


def _lacks_claims(claim_set: ClaimSet) -> bool:
    return any(member.claim is None for member in claim_set.members)
