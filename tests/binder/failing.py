"""A node with something wrong, and another that could take what it holds."""

from __future__ import annotations

from typing import Any

from binder.core.state import ClusterState
from model.meta import Lean
from tests.builders import gpu_class, node, order, state

GRACE_S = 300
HELD = order("o", node="gpu-1")
SELECTING: dict[str, Any] = {"nodeSelector": {"pool": "gpu"}}
NO_EXECUTE = {"key": "broken", "value": "yes", "effect": "NoExecute"}
IN_POOL: dict[str, Any] = {"labels": {"pool": "gpu"}}


def nodes(*, spare: int = 2, **wrong: Any) -> tuple[Lean, ...]:
    """gpu-1 with something wrong, and gpu-2."""
    gpu_1 = () if wrong.pop("gone", False) else (node("gpu-1", **{**IN_POOL, **wrong}),)
    return (*gpu_1, node("gpu-2", spare, **IN_POOL))


def cluster(*objects: Lean, spare: int = 2, **wrong: Any) -> ClusterState:
    """gpu-1 with something wrong, gpu-2, and a class that selects a pool."""
    return state(*nodes(spare=spare, **wrong), gpu_class(**SELECTING), *objects)
