"""Taints and tolerations as core/v1 writes them. Their meaning is in `binder.core.nodes`."""

from __future__ import annotations

from model.meta import Lean


class Taint(Lean):
    """Keeps pods that do not tolerate it off a node."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class Toleration(Lean):
    """What a class or a pod puts up with; `toleration_seconds` counts for NoExecute only."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None
