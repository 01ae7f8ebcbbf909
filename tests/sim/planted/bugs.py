"""Bugs that are planted on purpose: wrong versions of shipped functions, each of which a life must find.

Each is a rule that somebody could leave out, and what would then be written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

import binder.consumer
import binder.core.forming
import binder.core.moving
import binder.core.placing
import binder.core.run_pass
import binder.core.world
import binder.effects.set_writer
from binder.consumer import Term
from binder.core.pin import ungate_patch
from binder.effects.leased import LeasedClient
from binder.leader import Leader
from eventlog.adapters.memory import MemoryLog
from kube.port import DeleteOptions
from model.claims import GPUClaim, Phase
from model.decisions import PinLauncher
from model.reasons import Reason
from projections.folds import rejections

Patch = Callable[[pytest.MonkeyPatch], None]
CACHED_S = 3.0


@dataclass(frozen=True, slots=True)
class Bug:
    """A patch, and the checks that may find it first."""

    name: str
    plant: Patch
    checks: tuple[str, ...]
    seeds: tuple[int, ...] = ()
    """Those that are known to find it, tried first."""


def skip_the_fence(patch: pytest.MonkeyPatch) -> None:
    """A deposed leader may commit."""
    patch.setattr(MemoryLog, "_fence", lambda self, epoch: None)


def ignore_the_lease(patch: pytest.MonkeyPatch) -> None:
    """Writes begin whether the lease lasts or not."""
    patch.setattr(LeasedClient, "_check", lambda self, target: None)
    patch.setattr(Leader, "is_ours_for", lambda self, seconds: True)


def acknowledge_before_commit(patch: pytest.MonkeyPatch) -> None:
    """Entries are acknowledged before the pass that has seen them is recorded."""
    commit = Term._commit

    async def conclude_and_commit(self: Term, result: Any, now_ms: int) -> None:
        await self._conclude(())
        await commit(self, result, now_ms)

    patch.setattr(Term, "_commit", conclude_and_commit)


def pin_before_booking(patch: pytest.MonkeyPatch) -> None:
    """The launcher is pinned first."""
    placement = binder.core.placing.placement

    def pins_first(*args: Any) -> list[Any]:
        return sorted(placement(*args), key=lambda one: not isinstance(one, PinLauncher))

    patch.setattr(binder.core.placing, "placement", pins_first)


def forget_terminating_pods(patch: pytest.MonkeyPatch) -> None:
    """A pod that is being deleted counts for nothing."""
    uncovered = binder.core.world.uncovered

    def of_the_living(pods: list[Any], *args: Any) -> Any:
        return uncovered([one for one in pods if one.metadata.deletion_timestamp is None], *args)

    patch.setattr(binder.core.world, "uncovered", of_the_living)


def cache_the_claims(patch: pytest.MonkeyPatch) -> None:
    """The list of claims is kept for a while."""
    list_claims = binder.consumer.list_claims
    kept: dict[str, Any] = {"at_s": -1e9, "loop": None}

    async def listed_lately(*args: Any) -> Any:
        loop = asyncio.get_running_loop()
        if kept["loop"] is not loop or loop.time() - kept["at_s"] > CACHED_S:
            kept.update(live=await list_claims(*args), at_s=loop.time(), loop=loop)
        return kept["live"]._replace(changed=list(kept["live"].claims))

    patch.setattr(binder.consumer, "list_claims", listed_lately)


def delete_without_precondition(patch: pytest.MonkeyPatch) -> None:
    """Whatever has the name is deleted."""
    patch.setattr(binder.effects.set_writer, "DeleteOptions", lambda **_: DeleteOptions())


def forget_rejections(patch: pytest.MonkeyPatch) -> None:
    """A new term does not know who was refused where."""
    recalled = binder.consumer.recalled

    def without(tables: Any) -> Any:
        return recalled({name: table for name, table in tables.items() if name != rejections.NAME})

    patch.setattr(binder.consumer, "recalled", without)


def delete_without_limit(patch: pytest.MonkeyPatch) -> None:
    """R24 is dropped."""
    patch.setattr(binder.core.moving, "_may_delete", lambda scene: True)


def count_lost_as_held(patch: pytest.MonkeyPatch) -> None:
    """A Lost claim still holds what it had."""

    def bound_or_lost(self: GPUClaim) -> str:
        if self.status.phase is Phase.LOST:
            return self.status.lost_from or ""
        return self.status.node_name if self.status.phase is Phase.BOUND else ""

    patch.setattr(GPUClaim, "bound_node", property(bound_or_lost))


def adopt_foreign_claims(patch: pytest.MonkeyPatch) -> None:
    """A claim that has the right name is taken for the VMI's own."""
    forming = binder.core.forming
    with_template_claims = forming._with_template_claims

    def adopting(whole: Any, missing: Any, world: Any) -> Any:
        found = with_template_claims(whole, missing, world)
        if found.obstacle is None or found.obstacle.reason is not Reason.NAME_TAKEN:
            return found
        claim = world.claims[found.taken]
        gpu_class = world.classes.get(claim.spec.class_name)
        if gpu_class is None:
            return found
        members = (*found.members, forming._member(claim, gpu_class))
        return replace(found, members=members, obstacle=None, taken=None)

    patch.setattr(forming, "_with_template_claims", adopting)


def ungate_without_pin(patch: pytest.MonkeyPatch) -> None:
    """The gate goes, the pin does not come."""
    patch.setattr(binder.effects.set_writer, "pin_patch", lambda live, *_: ungate_patch(live))


def sleep_through_deadlines(patch: pytest.MonkeyPatch) -> None:
    """A grace that runs out wakes nobody."""
    patch.setattr(Term, "_is_time", lambda self: False)


def ignore_budgets(patch: pytest.MonkeyPatch) -> None:
    """No budget is asked."""
    patch.setattr(binder.core.placing, "over_budget", lambda claim_set, scene: "")


def look_at_another_clock(patch: pytest.MonkeyPatch) -> None:
    """The pass has a time of its own, which the journal does not say."""
    run_pass = binder.consumer.run_pass

    def a_second_later(world: Any, memory: Any, policy: Any, now_ms: int) -> Any:
        return run_pass(world, memory, policy, now_ms + 1000)

    patch.setattr(binder.consumer, "run_pass", a_second_later)


def settle_nothing(patch: pytest.MonkeyPatch) -> None:
    """Step 2 is left out: a set that is partly Lost stays so, a VMI that migrated is not followed."""
    patch.setattr(binder.core.run_pass, "settle_sets", lambda scene: None)


BUGS = (
    Bug("the epoch's fence is skipped", skip_the_fence, ("9",), (1, 7)),
    Bug("the lease rule is ignored", ignore_the_lease, ("2",), (16, 29)),
    Bug("acknowledged before commit", acknowledge_before_commit, ("9",), (1, 2)),
    Bug("pinned before booking", pin_before_booking, ("4",), (1, 2)),
    Bug("terminating pods are forgotten", forget_terminating_pods, ("1", "2"), (7, 64)),
    Bug("the claim list is cached", cache_the_claims, ("1", "2"), (1, 2)),
    Bug("deletes have no precondition", delete_without_precondition, ("5",), (2, 7)),
    Bug("rejections are forgotten at a restart", forget_rejections, ("R13", "9"), (1, 2)),
    Bug("R24 has no limit", delete_without_limit, ("5",), (87,)),
    Bug("Lost counts as held", count_lost_as_held, ("1", "2", "3", "4", "6"), (15, 36)),
    Bug("a foreign claim is adopted", adopt_foreign_claims, ("4",), (36, 47)),
    Bug("ungated without pin", ungate_without_pin, ("4",), (1, 2)),
    Bug("deadlines wake nobody", sleep_through_deadlines, ("6", "8"), (53,)),
    Bug("budgets are ignored", ignore_budgets, ("7",), (2, 9)),
    Bug("the pass has a clock of its own", look_at_another_clock, ("9",), (1, 2)),
    Bug("no set is settled", settle_nothing, ("3", "4"), (26, 32)),
)
