"""Statuses settle: whatever has happened and whoever has written them, a few seconds later they are right."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from binder.core.run_pass import PassResult
from binder.core.usage import budget_use, class_uses
from binder.effects.status_writer import status_difference
from model.claims import GPUBudget, GPUClass
from model.decisions import WriteBudgetStatus, WriteClassStatus
from simulator.apiserver.patches import merge_patch
from tests.binder.properties.budget import examples
from tests.binder.properties.events import Event, events, happen, start
from tests.binder.properties.life import Life

histories = st.lists(st.lists(events, min_size=1, max_size=4), min_size=1, max_size=8)
Write = WriteClassStatus | WriteBudgetStatus


@given(histories)
@examples(40)
def test_statuses_say_what_is_counted_from_nothing_and_then_nothing_is_written(
    history: list[list[Event]],
) -> None:
    """R26, R27: two passes, five seconds apart, and every class and budget that stays says so."""
    life = Life()
    start(life)
    for step in history:
        for event in step:
            happen(life, event)
        if step_is_quiet(life):
            continue
        for _ in range(2):
            carry_out(life, life.decide())
            life.pass_time(5)
        assert writes_of(life.decide()) == []
        assert_statuses_are_right(life)


def step_is_quiet(life: Life) -> bool:
    """Silence of the watchers: nothing is decided (R33)."""
    return bool(life.decide().blocked)


def writes_of(result: PassResult) -> list[Write]:
    return [one for one in result.decisions if isinstance(one, WriteClassStatus | WriteBudgetStatus)]


def carry_out(life: Life, result: PassResult) -> None:
    """As the API server merges the patch that the binder sends."""
    for write in writes_of(result):
        kind = "GPUClass" if isinstance(write, WriteClassStatus) else "GPUBudget"
        found = life.objects[kind, ("", write.ref.name)]
        status = found.get("status", {})
        life.put(kind, found | {"status": merge_patch(status, status_difference(status, write.status))})


def assert_statuses_are_right(life: Life) -> None:
    world = life.look()
    for (_, name), one in life.state.of(GPUClass).items():
        if one.metadata.deletion_timestamp is None:
            use, status = class_uses(world)[name], one.status
            numbers = (
                status.nodes,
                status.allocatable,
                status.bound,
                status.raw,
                status.lost,
                status.pending,
            )
            assert (use.nodes, use.allocatable, use.bound, use.raw, use.lost, use.pending) == numbers, name
            assert use.free == status.free, name
            (ready,) = (c for c in status.conditions if c.type == "Ready")
            assert (ready.status == "True") == (use.nodes > 0), name
    for name, use in budget_use(world).items():
        budget = life.state.of(GPUBudget)["", name]
        classes = {n: u for n, u in budget.status.used.classes.items() if u or n not in budget.spec.classes}
        assert classes == {n: u for n, u in use.classes.items() if u}, name
        assert {n: u for n, u in budget.status.used.resources.items() if u} == use.resources, name
        (valid,) = (c for c in budget.status.conditions if c.type == "Valid")
        assert (valid.status == "False") == (name in world.budgets.faults), name
