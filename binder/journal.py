"""What the journal says of a pass: the intent before its effects, the outcome after them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import orjson

from binder.core.run_pass import PassResult
from binder.effects.carry_out import Outcome
from model.decisions import Decision

VERSION = 1
"""Of the shape of both entries."""


def intent_body(result: PassResult, position: str, now_ms: int) -> bytes:
    """What the pass looked at (the log up to `position`, the time) and what it decided."""
    body: dict[str, Any] = {
        "v": VERSION,
        "position": position,
        "now": now_ms,
        "blocked": result.blocked,
        "decisions": [_decision(decision) for decision in result.decisions],
        "waiting": [asdict(waiting) for waiting in result.waiting],
    }
    return orjson.dumps(body)


def outcome_body(outcomes: Iterable[Outcome]) -> bytes:
    """How many decisions were carried out, and what failed."""
    done = list(outcomes)
    failed = [
        {"do": type(o.decision).__name__, "set": o.decision.set, "error": o.error} for o in done if o.error
    ]
    return orjson.dumps({"v": VERSION, "done": len(done) - len(failed), "failed": failed})


def _decision(decision: Decision) -> dict[str, Any]:
    fields = {name: _plain(getattr(decision, name)) for name in decision.__slots__}
    return {"do": type(decision).__name__} | fields


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(by_alias=True, exclude_defaults=True)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return asdict(value) if hasattr(value, "__dataclass_fields__") else value
