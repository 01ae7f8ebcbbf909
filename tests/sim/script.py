"""A life as data: what happens when, and what goes wrong when. What is data can be repeated and shrunk."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

from binder.core.policy import Policy


@dataclass(frozen=True, slots=True)
class Act:
    """Something that somebody does at a moment (seconds since the life began)."""

    at_s: float
    do: str
    to: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        what = " ".join(f"{name}={value}" for name, value in self.to.items())
        return f"{self.at_s:7.2f} s  {self.do} {what}"


@dataclass(frozen=True, slots=True)
class Fault:
    """Between two moments a share of the calls of one process, or of all, goes wrong in one way."""

    from_s: float
    to_s: float
    process: str
    """Empty: every process."""
    calls: str
    """One of `faults.CALLS`."""
    kind: str
    """One of `faults.API_KINDS` or `faults.LOG_KINDS`."""
    rate: float

    def __str__(self) -> str:
        who = self.process or "everybody"
        times = f"{self.from_s:7.2f} s to {self.to_s:.2f} s"
        return f"{times}  {self.kind} for {self.rate:.0%} of {self.calls} of {who}"


@dataclass(frozen=True, slots=True)
class Script:
    """One life. After `calm_s` nothing more goes wrong and everything has to settle."""

    seed: int
    policy: dict[str, int]
    acts: tuple[Act, ...]
    faults: tuple[Fault, ...]
    calm_s: float

    def policy_value(self, *, is_enabled: bool = True) -> Policy:
        return Policy(is_enabled=is_enabled, **self.policy)


def as_json(script: Script) -> bytes:
    return orjson.dumps(asdict(script), option=orjson.OPT_INDENT_2)


def of_json(body: bytes) -> Script:
    raw: Any = orjson.loads(body)
    acts = tuple(Act(**one) for one in raw.pop("acts"))
    faults = tuple(Fault(**one) for one in raw.pop("faults"))
    return Script(acts=acts, faults=faults, **raw)
