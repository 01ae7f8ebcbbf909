"""The end of a pass: what the books say becomes the ledger's (R1, R26, R27).

Runs with the feature switched off, too (R30). What the pass has just placed is in the books of the next one:
its writes wake it. Must not know: how the books are kept.
"""

from __future__ import annotations

from binder.core.scene import Scene
from binder.core.world import World
from projections.folds import ledger
from projections.folds.ledger import BudgetEntry, ClassEntry
from projections.folds.memory import Lesson


def keep_ledger(scene: Scene) -> None:
    """Learn what differs from the ledger, or has gone; after a pass they agree, so only that is looked at."""
    world, known = scene.world, scene.memory.ledger
    fields = world.books.touched
    if world.is_new:
        fields = {*known, *all_fields(world)}
    for field in sorted(fields):
        entry = entry_of(field, world)
        if entry != known.get(field):
            scene.lessons.append(Lesson(ledger.NAME, field, entry))


def entry_of(field: str, world: World) -> ledger.Entry | None:
    """What the books say of one field of the ledger, or None."""
    of, _, name = field.partition("/")
    match f"{of}/":
        case ledger.CLASS:
            return _class_entry(name, world)
        case ledger.BUDGET:
            return _budget_entry(name, world)
        case ledger.NAMESPACE:
            return world.budgets.over.get(name)
        case _:
            return None


def all_fields(world: World) -> list[str]:
    """What the ledger has after a pass."""
    return [
        *(ledger.CLASS + name for name in world.relations.classes),
        *(ledger.BUDGET + name for name in world.budgets.budgets),
        *(ledger.NAMESPACE + name for name in world.budgets.over),
    ]


def _class_entry(name: str, world: World) -> ClassEntry | None:
    gpu_class = world.relations.classes.get(name)
    if gpu_class is None:
        return None
    use = world.books.class_use(name)
    return ClassEntry(
        resource=gpu_class.spec.resource_name,
        is_leaving=gpu_class.metadata.deletion_timestamp is not None,
        nodes=use.nodes,
        allocatable=use.allocatable,
        bound=use.bound,
        raw=use.raw,
        lost=use.lost,
        pending=use.pending,
        free=use.free,
        largest=world.books.largest(name),
    )


def _budget_entry(name: str, world: World) -> BudgetEntry | None:
    budget = world.budgets.budgets.get(name)
    if budget is None:
        return None
    use, fault = world.books.uses[name], world.budgets.faults.get(name)
    return BudgetEntry(
        fault=fault.text if fault is not None else "",
        class_limits=dict(sorted(budget.spec.classes.items())),
        class_units=dict(sorted(use.classes.items())),
        resource_limits=dict(sorted(budget.spec.resources.items())),
        resource_units=dict(sorted(use.resources.items())),
    )
