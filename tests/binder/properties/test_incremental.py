"""A world kept up change by change equals one built from nothing, and so does what a pass decides."""

from __future__ import annotations

import copy

from hypothesis import given
from hypothesis import strategies as st

from binder.core.bookkeeping import all_fields, entry_of
from binder.core.run_pass import run_pass
from binder.core.snapshot import decode_state, encode_state
from binder.core.usage import budget_use, class_uses
from binder.core.world import World, look_at
from tests.binder.properties.budget import examples
from tests.binder.properties.events import Event, events, happen, start
from tests.binder.properties.life import Life
from tests.binder.properties.views import sites_of, view

histories = st.lists(st.lists(events, min_size=1, max_size=4), min_size=1, max_size=12)


def assert_equals_from_nothing(life: Life) -> None:
    """Both worlds, both passes, and both worlds again when the pass has booked and given back."""
    kept_up, built = life.look(), life.from_nothing()
    before = view(kept_up)
    assert before == view(built)
    assert sites_of(kept_up) == sites_of(built)
    memory = copy.deepcopy(life.memory)
    result = run_pass(kept_up, life.memory, life.policy, life.now_ms)
    assert repr(result) == repr(run_pass(built, memory, life.policy, life.now_ms))
    assert memory == life.memory, "a pass only reads the memory"
    assert view(kept_up) == view(built) == before
    assert sites_of(kept_up) == sites_of(built)
    assert repr(result) == repr(run_pass(kept_up, memory, life.policy, life.now_ms))
    life.learn(result)
    if not result.blocked:
        assert life.memory.ledger == {name: entry_of(name, built) for name in all_fields(built)}


def assert_books_equal_usage(world: World) -> None:
    """What is kept by difference, and what is counted from nothing."""
    for name, use in class_uses(world).items():
        assert world.books.class_use(name) == use, name
    counted = {
        name: (nonzero(use.classes), nonzero(use.resources)) for name, use in budget_use(world).items()
    }
    assert {name: (use.classes, use.resources) for name, use in world.books.uses.items()} == counted


def nonzero(amounts: dict[str, int]) -> dict[str, int]:
    return {name: units for name, units in amounts.items() if units}


@given(histories)
@examples(60)
def test_books_kept_by_difference_equal_usage_counted_from_nothing(history: list[list[Event]]) -> None:
    """R26, R27: whatever has changed, comes and goes, in any order."""
    life = Life()
    start(life)
    for step in history:
        for event in step:
            happen(life, event)
        assert_books_equal_usage(life.look())


@given(histories)
@examples(60)
def test_world_kept_up_equals_world_from_nothing(history: list[list[Event]]) -> None:
    """R4: and a pass leaves the world's room as it was."""
    life = Life()
    start(life)
    for step in history:
        for event in step:
            happen(life, event)
        assert_equals_from_nothing(life)


@given(histories)
@examples(20)
def test_state_from_its_snapshot_gives_the_same_world_and_pass(history: list[list[Event]]) -> None:
    """A snapshot is the fold of the log and nothing else."""
    life = Life()
    start(life)
    for step in history:
        for event in step:
            happen(life, event)
    body = encode_state(life.state)
    decoded = decode_state(body)
    assert decoded is not None
    assert encode_state(decoded) == body
    again, kept_up = look_at(decoded, life.claims), life.look()
    again.fallen = kept_up.fallen
    assert view(again) == view(kept_up)
    expected = run_pass(kept_up, life.memory, life.policy, life.now_ms)
    assert repr(run_pass(again, life.memory, life.policy, life.now_ms)) == repr(expected)
