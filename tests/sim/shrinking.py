"""A smaller life that breaks the same check: acts and faults are left out while it still does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.sim.script import Act, Fault, Script

MAX_TRIES = 80
"""Lives that are played for it: about a minute."""

Breaks = Callable[[Script], bool]


def shrink(script: Script, breaks: Breaks, tries: int = MAX_TRIES) -> Script:
    """Leave out what can be left out, larger parts first. `breaks` plays a life."""
    parts: tuple[Act | Fault, ...] = (*script.faults, *script.acts)
    size = max(1, len(parts) // 2)
    while tries > 0:
        at, has_shrunk = 0, False
        while at < len(parts) and tries > 0:
            fewer = parts[:at] + parts[at + size :]
            tries -= 1
            if breaks(_with(script, fewer)):
                parts, has_shrunk = fewer, True
            else:
                at += size
        if size == 1 and not has_shrunk:
            break
        size = max(1, size // 2)
    return _with(script, parts)


def _with(script: Script, parts: Sequence[Act | Fault]) -> Script:
    acts = tuple(one for one in parts if isinstance(one, Act))
    faults = tuple(one for one in parts if isinstance(one, Fault))
    return replace(script, acts=acts, faults=faults)


def told(script: Script) -> str:
    """The life, line by line."""
    lines = [f"policy {script.policy}, calm at {script.calm_s:.2f} s"]
    return "\n".join([*lines, *map(str, script.acts), *map(str, script.faults)])
