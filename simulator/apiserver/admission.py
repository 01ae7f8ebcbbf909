"""Admission hooks: what plays webhooks and admission policies in the simulator."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

from kube.port import Json, ObjectKey
from model.resources import Resource

Mutator = Callable[[Resource, Json], Json | None]
"""Called on creation, after the defaults: the changed object, or None. Raises a Refused to refuse."""


class Operation(StrEnum):
    """What a request does."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


@dataclass(frozen=True, slots=True)
class Request:
    """A write as a validator sees it: `old` is None on creation, `new` on deletion."""

    operation: Operation
    key: ObjectKey
    old: Json | None
    new: Json | None
    subresource: str = ""


Validator = Callable[[Request], None]
"""Called on every valid write before it is stored, bindings apart. Raises a Refused to refuse."""
Webhook = Callable[[Request], Awaitable[Json | None]]
"""Asked on creation, after the defaults; other requests come in while it answers, as with a real one.

Gives the changed object, or None. Raises a Refused to refuse.
"""
