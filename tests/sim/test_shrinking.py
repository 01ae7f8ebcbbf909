"""Shrinking leaves out what the failure does not need, and no more."""

from __future__ import annotations

from tests.sim.drawing import draw_script
from tests.sim.script import Act, Script
from tests.sim.shrinking import shrink, told


def script(names: str) -> Script:
    return Script(1, {}, tuple(Act(float(at), name) for at, name in enumerate(names)), (), 30.0)


def test_what_the_failure_needs_stays_in_order() -> None:
    def breaks(one: Script) -> bool:
        names = [act.do for act in one.acts]
        return "c" in names and "q" in names and names.index("c") < names.index("q")

    small = shrink(script("abcdefghijklmnopqrst"), breaks)
    assert [act.do for act in small.acts] == ["c", "q"]


def test_it_ends_when_nothing_can_be_left_out_and_when_its_tries_are_over() -> None:
    played = []

    def all_are_needed(one: Script) -> bool:
        played.append(one)
        return len(one.acts) == 8

    assert shrink(script("abcdefgh"), all_are_needed) == script("abcdefgh")
    played.clear()
    shrink(script("abcdefgh"), all_are_needed, tries=3)
    assert len(played) == 3


def test_shrunk_life_is_told_line_by_line() -> None:
    life = draw_script(3)
    assert len(told(life).splitlines()) == 1 + len(life.acts) + len(life.faults)
