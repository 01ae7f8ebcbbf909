"""A crash before and after every single effect and commit: short stories, once for each of them.

A clean run of a story counts the calls; then the process is killed at its nth one, for all n, and another one
takes its place. All that must hold is looked at as in every life.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from tests.sim.drawing import H, T
from tests.sim.lives import Report, run_life
from tests.sim.script import Act, Script

CALLS = ("writes", "commit", "conclude")
"""Effects, intents and outcomes."""
OTHER_CALLS = ("append", "lease")
"""What watchers and leaders write, in one of the stories."""
POLICY = {
    "keep_grace_s": 5,
    "unschedulable_after_s": 5,
    "rejection_s": 20,
    "restart_hold_s": 10,
    "max_vmi_deletions": 2,
}


@dataclass(frozen=True, slots=True)
class Crash:
    """Where the process of a story is killed."""

    story: str
    calls: str
    nth: int
    is_after: bool

    def __str__(self) -> str:
        return f"{self.story}:{self.calls}:{self.nth}:{'after' if self.is_after else 'before'}"


def crash_of(text: str) -> Crash:
    story, calls, nth, when = text.split(":")
    return Crash(story, calls, int(nth), when == "after")


def story_of(crash: Crash) -> Script:
    """The story with its crash."""
    clean = STORIES[crash.story]
    doom = {"name": "p1", "calls": crash.calls, "nth": crash.nth, "after": crash.is_after}
    begin = [act for act in clean.acts if act.at_s == 0.0]
    rest = [act for act in clean.acts if act.at_s > 0.0]
    return replace(clean, acts=(*begin, Act(0.0, "doom process", doom), *rest))


def play(crash: Crash) -> Report:
    return run_life(story_of(crash), revives=True)


def crashes() -> Iterator[Crash]:
    """All of them, by what clean runs have done."""
    for story, script in STORIES.items():
        done = run_life(script, revives=True)
        assert not done.failures, f"{story}: {done.failures}"
        for calls in (*CALLS, *(OTHER_CALLS if story == "places" else ())):
            for nth in range(1, done.calls[calls] + 1):
                yield Crash(story, calls, nth, is_after=False)
                yield Crash(story, calls, nth, is_after=True)


def _vm(at_s: float, name: str, gpus: dict[str, int], orders: str = "") -> Act:
    vm: dict[str, Any] = {"ns": "t1", "name": name, "gpus": gpus, "orders": orders}
    return Act(at_s, "create vm", vm | {"strategy": "Always", "class": ""})


def _script(*acts: Act, nodes: dict[str, dict[str, int]], calm_s: float) -> Script:
    begin = [
        Act(0.0, "create namespace", {"name": "t1", "team": "r"}),
        Act(0.0, "create class", {"name": "h", "resource": H, "default": True}),
        Act(0.0, "create class", {"name": "t", "resource": T, "default": False}),
        Act(0.0, "kubevirt arrives"),
        *(Act(0.0, "create node", {"name": n, "gpus": gpus, "zone": "a"}) for n, gpus in nodes.items()),
        Act(0.0, "start process", {"name": "p1"}),
    ]
    return Script(0, POLICY, (*begin, *acts), (), calm_s)


def _at(at_s: float, do: str, **to: Any) -> Act:
    return Act(at_s, do, to)


STORIES: dict[str, Script] = {
    "places": _script(
        _at(0.1, "create order", ns="t1", name="o1", units=1, **{"class": "h"}),
        _vm(0.2, "a", {H: 2}, "o1"),
        _vm(0.3, "b", {H: 1, T: 1}),
        _vm(0.4, "waits", {H: 2}),
        _at(6.0, "halt vm", ns="t1", name="b"),
        _at(9.0, "delete vm", ns="t1", name="a"),
        nodes={"n1": {H: 2, T: 1}, "n2": {H: 1, T: 1}},
        calm_s=14.0,
    ),
    "refuses": _script(
        _at(0.1, "refuse", name="n1"),
        _vm(0.2, "a", {H: 1}),
        _at(25.0, "accept", name="n1"),
        _vm(26.0, "b", {H: 1}),
        nodes={"n1": {H: 1}, "n2": {H: 2}},
        calm_s=40.0,
    ),
    "moves": _script(
        _at(0.1, "create order", ns="t1", name="o1", units=1, **{"class": "h"}),
        _vm(0.2, "a", {H: 1}),
        _vm(0.3, "b", {H: 2}),
        _at(4.0, "taint", name="n1", effect="NoExecute"),
        _at(9.0, "plugin down", name="n2"),
        _at(20.0, "plugin up", name="n2"),
        _at(22.0, "untaint", name="n1"),
        nodes={"n1": {H: 1}, "n2": {H: 2}, "n3": {H: 2}, "n4": {T: 1}},
        calm_s=26.0,
    ),
    "deletes": _script(
        _at(0.1, "set budget", name="b1", team="r", classes={"t": 0}, parent=""),
        _vm(0.2, "a", {H: 1}),
        _vm(0.3, "waits", {T: 1}),
        _at(3.0, "plugin down", name="n1"),
        _at(14.0, "plugin up", name="n1"),
        _at(15.0, "delete budget", name="b1"),
        nodes={"n1": {H: 1}, "n2": {H: 1}, "n3": {T: 1}},
        calm_s=18.0,
    ),
    "ends": _script(
        _at(0.1, "create order", ns="t1", name="o1", units=1, **{"class": "h"}),
        _vm(0.2, "a", {H: 1}, "o1"),
        _vm(0.3, "b", {H: 1}),
        _at(3.0, "migrate vm", ns="t1", name="b"),
        _at(6.0, "restart vm", ns="t1", name="a"),
        _at(9.0, "delete class", name="h"),
        _at(10.0, "delete order", ns="t1", name="o1"),
        _at(12.0, "delete namespace", name="t1"),
        nodes={"n1": {H: 2}, "n2": {H: 2}},
        calm_s=18.0,
    ),
}
