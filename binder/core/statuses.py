"""What classes and budgets say of themselves: their status as the books have it, and when it is written.

A status is written when it differs from what the log says the object has; what others have written into it
besides (conditions of other types) is theirs. Runs with the feature switched off, too (R30).
"""

from __future__ import annotations

from binder.core.scene import Scene
from binder.core.world import World
from model.claims import BudgetUse, GPUBudget, GPUBudgetStatus, GPUClass, GPUClassStatus
from model.decisions import ObjectRef, WriteBudgetStatus, WriteClassStatus
from model.instants import rfc3339
from model.meta import Condition, ObjectMeta
from model.reasons import Reason
from projections.folds import ledger, statuses
from projections.folds.memory import Lesson

STATUS_EVERY_MS = 5000
"""No object's status is written more often: numbers that change all the time are read now and then."""
MAX_STATUSES = 50
"""Written in one pass; the others have their turn after STATUS_ROUND_MS: launchers do not wait for them."""
STATUS_ROUND_MS = 1000
READY, VALID = "Ready", "Valid"
"""The condition of a class, and of a budget."""
HAS_NODES, NO_NODES = "HasNodes", "NoNodes"

Write = WriteClassStatus | WriteBudgetStatus


def write_statuses(scene: Scene) -> None:
    """Each that differs, at most once in STATUS_EVERY_MS, those that have waited longest first.

    After a pass every status is as it should be, or remembered as one that is not yet: only those and what
    has been touched since are looked at.
    """
    known, due = scene.memory.statuses, []
    for field in sorted(known.keys() | scene.world.books.touched):
        last = known.get(field, 0)
        wait_ms = last + STATUS_EVERY_MS - scene.now_ms if last <= scene.now_ms else 0
        write = status_write(field, scene.world, scene.now_ms)
        if write is None:
            if field in known and wait_ms <= 0:
                scene.lessons.append(Lesson(statuses.NAME, field, None))
        elif wait_ms > 0:
            scene.wake_by(last + STATUS_EVERY_MS)
        else:
            due.append((last, field, write))
    due.sort(key=lambda one: one[0])
    for _, field, write in due[:MAX_STATUSES]:
        scene.decisions.append(write)
        scene.lessons.append(Lesson(statuses.NAME, field, scene.now_ms))
        scene.wake_by(scene.now_ms + STATUS_EVERY_MS)  # if it fails nothing else may wake us
    for last, field, _ in due[MAX_STATUSES:]:
        if field not in known:
            scene.lessons.append(Lesson(statuses.NAME, field, last))
        scene.wake_by(scene.now_ms + STATUS_ROUND_MS)


def status_write(field: str, world: World, now_ms: int) -> Write | None:
    """The write that makes an object say what it should; None if it does, is gone or being deleted."""
    if field.startswith(ledger.CLASS):
        gpu_class = world.state.of(GPUClass).get(("", field.removeprefix(ledger.CLASS)))
        return _class_write(gpu_class, world, now_ms) if gpu_class and _stays(gpu_class.metadata) else None
    if field.startswith(ledger.BUDGET):
        budget = world.state.of(GPUBudget).get(("", field.removeprefix(ledger.BUDGET)))
        return _budget_write(budget, world, now_ms) if budget and _stays(budget.metadata) else None
    return None


def _stays(meta: ObjectMeta) -> bool:
    return meta.deletion_timestamp is None


def _class_write(gpu_class: GPUClass, world: World, now_ms: int) -> WriteClassStatus | None:
    meta, use = gpu_class.metadata, world.books.class_use(gpu_class.metadata.name)
    says = _condition(gpu_class.status.conditions, READY)
    wanted = GPUClassStatus(
        nodes=use.nodes,
        allocatable=use.allocatable,
        bound=use.bound,
        raw=use.raw,
        lost=use.lost,
        pending=use.pending,
        free=use.free,
        conditions=(_since(_ready(gpu_class, world), says, meta, now_ms),),
    )
    if gpu_class.status.model_copy(update={"conditions": (says,)}) == wanted:
        return None
    return WriteClassStatus(f"class {meta.name}", ObjectRef("", meta.name, meta.uid), wanted, meta.generation)


def _budget_write(budget: GPUBudget, world: World, now_ms: int) -> WriteBudgetStatus | None:
    meta, use = budget.metadata, world.books.uses[budget.metadata.name]
    says = _condition(budget.status.conditions, VALID)
    classes = dict.fromkeys(budget.spec.classes, 0) | use.classes
    resources = dict.fromkeys(budget.spec.resources, 0) | use.resources
    used = BudgetUse(classes=dict(sorted(classes.items())), resources=dict(sorted(resources.items())))
    wanted = GPUBudgetStatus(used=used, conditions=(_since(_valid(budget, world), says, meta, now_ms),))
    if budget.status.model_copy(update={"conditions": (says,)}) == wanted:
        return None
    return WriteBudgetStatus(
        f"budget {meta.name}", ObjectRef("", meta.name, meta.uid), wanted, meta.generation
    )


def _ready(gpu_class: GPUClass, world: World) -> Condition:
    """Whether any node can give a unit of it, or what keeps all from it (R8a)."""
    name, resource = gpu_class.metadata.name, gpu_class.spec.resource_name
    nodes, offering = world.books.class_use(name).nodes, world.books.offering.get(resource)
    if nodes:
        return Condition(
            type=READY,
            status="True",
            reason=HAS_NODES,
            message=f"{nodes} of {offering} nodes with {resource}",
        )
    if offering:
        why = "not Ready, cordoned, tainted, being deleted or without a label of its nodeSelector"
        text = f"none of {offering} nodes with {resource} is accepted: {why}"
        return Condition(type=READY, status="False", reason=Reason.CLASS_CONSTRAINTS, message=text)
    return Condition(type=READY, status="False", reason=NO_NODES, message=f"no node offers {resource}")


def _valid(budget: GPUBudget, world: World) -> Condition:
    """Whether it allows anything, or what is wrong with it or above it."""
    fault = world.budgets.faults.get(budget.metadata.name)
    if fault is None:
        return Condition(type=VALID, status="True", reason=VALID, message="it and all above it count")
    text = f"{fault.text}: it allows nothing new"
    return Condition(type=VALID, status="False", reason=fault.reason, message=text)


def _condition(conditions: tuple[Condition, ...], of: str) -> Condition | None:
    return next((one for one in conditions if one.type == of), None)


def _since(wanted: Condition, says: Condition | None, meta: ObjectMeta, now_ms: int) -> Condition:
    """With the time of the status's last change, and the generation that it speaks of.

    An entry from before generations entered the log has none: what the object says stands then.
    """
    is_kept = says is not None and says.status == wanted.status and bool(says.last_transition_time)
    since = says.last_transition_time if says is not None and is_kept else rfc3339(now_ms)
    generation = meta.generation or (says.observed_generation if says is not None else 0)
    return wanted.model_copy(update={"last_transition_time": since, "observed_generation": generation})
