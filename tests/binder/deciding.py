"""One pass over a built cluster, and what a test asks of its result."""

from __future__ import annotations

from dataclasses import dataclass, field

from binder.core.policy import Policy
from binder.core.run_pass import PassResult, run_pass
from binder.core.state import ClusterState
from binder.core.statuses import status_write
from binder.core.world import World, look_at
from model.claims import GPUBudget, GPUClaim, GPUClass
from model.decisions import BindClaim, PinLauncher, WarnVmi, WriteClassStatus
from model.reasons import Reason
from projections.folds import vm_history
from projections.folds.memory import FORGOTTEN, Lesson, Memory, as_fields, recalled
from projections.folds.vm_history import Run
from tests.builders import NOW_MS, claims


def decide(
    cluster: ClusterState, *live: GPUClaim, memory: Memory | None = None, **policy: int | bool
) -> PassResult:
    """One pass at NOW_MS over a world built from nothing."""
    world = say_statuses(look_at(cluster, claims(*live)))
    return run_pass(world, memory or Memory(), Policy(**policy), NOW_MS)  # type: ignore[arg-type]


def say_statuses(world: World) -> World:
    """As after quiet seconds: classes and budgets say what they should, and a pass decides other things."""
    names = (
        *(f"class/{name}" for name in world.relations.classes),
        *(f"budget/{name}" for name in world.budgets.budgets),
    )
    for write in filter(None, (status_write(name, world, NOW_MS) for name in names)):
        model = GPUClass if isinstance(write, WriteClassStatus) else GPUBudget
        shelf, key = world.state.shelves[model.__name__], ("", write.ref.name)
        said = shelf.models[key].model_copy(update={"status": write.status})
        shelf.put(key, write.ref.uid, "9", said.model_dump_json(by_alias=True).encode())
    world.update(world.relations.claims)
    return world


def told(uid: str, reason: Reason) -> Memory:
    """The memory of having told a VMI's tenant."""
    memory = Memory()
    name = uid.removeprefix("vmi-")
    memory.learn([Lesson(vm_history.NAME, uid, Run("default", name, f"vm-{name}", told=str(reason)))])
    return memory


def placed_on(result: PassResult) -> dict[str, str]:
    return {d.set: d.node for d in result.decisions if isinstance(d, PinLauncher)}


def reason_of(result: PassResult) -> Reason:
    (waiting,) = result.waiting
    return waiting.reason


@dataclass
class Binder:
    """A binder over a changing cluster: its memory is stored and recalled after each pass, as by a crash."""

    stored: dict[str, dict[str, bytes]] = field(default_factory=dict)
    now_ms: int = NOW_MS
    world: World = field(default_factory=lambda: World(ClusterState()))

    def passes(
        self, cluster: ClusterState, *live: GPUClaim, after_s: float = 0, **policy: int | bool
    ) -> PassResult:
        """One pass, `after_s` seconds after the one before, with what that one has stored."""
        self.now_ms += int(after_s * 1000)
        cluster.heard_ms = self.now_ms
        self.world = say_statuses(look_at(cluster, claims(*live)))
        return self._decide(Policy(**policy))  # type: ignore[arg-type]

    def goes_on(self, cluster: ClusterState, *live: GPUClaim, after_s: float = 0) -> PassResult:
        """The next pass of the same process: the cluster has become this one."""
        self.now_ms += int(after_s * 1000)
        self.world.state.heard_ms = self.now_ms
        for kind, shelf in self.world.state.shelves.items():
            before, after = dict(shelf.decoded()), cluster.shelves[kind].decoded()
            for key, model in before.items():
                if key not in after or after[key].metadata.uid != model.metadata.uid:
                    shelf.drop(key, shelf.uids[key])
            for key, model in after.items():
                if before.get(key) != model:
                    shelf.put(key, model.metadata.uid, "99", model.model_dump_json(by_alias=True).encode())
        self.world.update(claims(*live))
        return self._decide(Policy())

    def _decide(self, policy: Policy) -> PassResult:
        result = run_pass(self.world, self.memory, policy, self.now_ms)
        self.world.learned_from()
        for name, fields in as_fields(result.lessons).items():
            table = self.stored.setdefault(name, {})
            table.update(fields)
            self.stored[name] = {key: body for key, body in table.items() if body != FORGOTTEN}
        return result

    @property
    def memory(self) -> Memory:
        """What the stored fields tell a binder that begins."""
        memory, unreadable = recalled(self.stored)
        assert unreadable == ()
        return memory


def kinds_of(result: PassResult) -> list[type]:
    """The classes of the decisions, in order."""
    return [type(one) for one in result.decisions]


def bound_to(result: PassResult) -> dict[str, str]:
    """The node of each claim that is bound."""
    return {one.claim.name: one.node for one in result.decisions if isinstance(one, BindClaim)}


def warnings(result: PassResult) -> list[Reason]:
    """What tenants are told."""
    return [one.reason for one in result.decisions if isinstance(one, WarnVmi)]
