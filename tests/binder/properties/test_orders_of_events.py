"""In which order things were told changes nothing that is decided: R2, R4."""

from __future__ import annotations

import re
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tests.binder.properties.budget import examples
from tests.binder.properties.life import Life
from tests.binder.properties.raw import Raw
from tests.binder.properties.test_closed_loops import History, begin, histories, live
from tests.binder.properties.views import sites_of, view
from tests.binder.reference.clusters import clusters

VERSION = re.compile(r"resource_version='\d+'")


def decided(objects: list[tuple[str, Raw]], looks: int) -> tuple[str, object, object]:
    """By one pass after all of them, with looks on the way; what tells when an object came is left out."""
    life = Life()
    for number, (kind, one) in enumerate(objects):
        life.put(kind, one)
        if looks and number % looks == 0:
            life.look()
    world = life.look()
    found = view(world)["troubled"], sites_of(world)
    return VERSION.sub("", repr(life.decide())), *found


@given(st.data())
@examples(40)
def test_order_in_which_a_batch_came_changes_no_decision(data: st.DataObject) -> None:
    """Nor do looks in between."""
    objects = [(kind, one) for kind, found in data.draw(clusters()).items() for one in found]
    shuffled = data.draw(st.permutations(objects))
    assert decided(shuffled, data.draw(st.integers(0, 3))) == decided(objects, 0)


@given(histories, st.integers(0, 1000))
@examples(25)
def test_fresh_binder_that_reads_in_any_order_finds_the_old_one_at_rest(history: History, seed: int) -> None:
    """With the same memory it has nothing to do where the old one had nothing."""
    loop = begin(hold_s=300)
    live(loop, history)
    objects = [(kind, one) for (kind, _), one in sorted(loop.life.objects.items())]
    Random(seed).shuffle(objects)
    fresh = Life(memory=loop.life.memory, policy=loop.life.policy, now_ms=loop.life.now_ms)
    for kind, one in objects:
        fresh.put(kind, one)
    assert fresh.decide().decisions == ()
