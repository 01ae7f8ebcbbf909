"""What the journal says of a pass: the intent before its effects, the outcome after them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import orjson

from binder.core.policy import Policy
from binder.core.run_pass import PassResult, Waiting
from binder.effects.carry_out import Outcome
from model.decisions import Decision
from projections.folds.memory import Lesson

VERSION = 3
"""Of the shape of both entries."""


def intent_body(
    result: PassResult, policy: Policy, position: str, now_ms: int, heard: Iterable[Lesson] = ()
) -> bytes:
    """What the pass looked at (the log up to `position`, the policy, the time), decided and learned.

    `heard` is what outcomes have told since the pass before: this one knew it already.
    """
    body: dict[str, Any] = {
        "v": VERSION,
        "position": position,
        "now": now_ms,
        "policy": asdict(policy),
        "heard": [_lesson(lesson) for lesson in heard],
        "blocked": result.blocked,
        "decisions": [_decision(decision) for decision in result.decisions],
        "waiting": [_waiting(waiting) for waiting in result.waiting],
        "notices": result.notices,
        "learned": [_lesson(lesson) for lesson in result.lessons],
    }
    return orjson.dumps(body)


def outcome_body(outcomes: Iterable[Outcome]) -> bytes:
    """How many decisions were carried out, and what failed."""
    done = list(outcomes)
    failed = [
        {"do": type(o.decision).__name__, "set": o.decision.set, "error": o.error} for o in done if o.error
    ]
    return orjson.dumps({"v": VERSION, "done": len(done) - len(failed), "failed": failed})


def _waiting(waiting: Waiting) -> dict[str, Any]:
    return asdict(waiting) | {"stops": {str(stage): count for stage, count in waiting.stops.items()}}


def _lesson(lesson: Lesson) -> dict[str, Any]:
    value: Any = lesson.value
    if isinstance(value, Mapping):
        value = {name: asdict(one) for name, one in value.items()}
    return {"in": lesson.projection, "field": lesson.field, "value": _plain(value)}


def _decision(decision: Decision) -> dict[str, Any]:
    fields = {name: _plain(getattr(decision, name)) for name in decision.__slots__}
    return {"do": type(decision).__name__} | fields


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(by_alias=True, exclude_defaults=True)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return asdict(value) if hasattr(value, "__dataclass_fields__") else value
