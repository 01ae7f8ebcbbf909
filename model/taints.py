"""Taints and tolerations as core/v1 writes them. Their meaning is in `binder.core.nodes`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from model.meta import Lean
from model.schema import OneOf


class Taint(Lean):
    """Keeps pods that do not tolerate it off a node."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class Toleration(Lean):
    """A taint that a class or a pod puts up with."""

    key: Annotated[str, Field(description="The taint's key; every key when empty, with Exists only.")] = ""
    operator: Annotated[
        str, OneOf(("", "Equal", "Exists")), Field(description="Exists, or Equal (also when empty).")
    ] = ""
    value: Annotated[str, Field(description="The taint's value, with Equal only.")] = ""
    effect: Annotated[
        str,
        OneOf(("", "NoSchedule", "PreferNoSchedule", "NoExecute")),
        Field(description="The taint's effect; every effect when empty."),
    ] = ""
    toleration_seconds: Annotated[
        int | None, Field(description="For how long, with NoExecute only; for ever when absent.")
    ] = None
