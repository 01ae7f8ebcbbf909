"""One pass over growing clusters: how long, and how it grows."""

from __future__ import annotations

import math

from bench.figures import Figure, best_of
from binder.core.policy import Policy
from binder.core.run_pass import run_pass
from binder.core.state import ClusterState
from model.claims import GPUClaim, GPUClass
from model.kinds import BY_KIND
from model.nodes import Node
from simulator.objects import gpu_node

GPU = "nvidia.com/GH100_H100_SXM5_80GB"
SIZES = (250, 1000)
NOW_MS = 1_800_000_000_000


def figures() -> list[Figure]:
    """A quiet pass (nothing waits) over nodes with eight units each, and four claims a node."""
    took = {size: _pass_s(size) for size in SIZES}
    small, large = SIZES
    exponent = math.log(took[large] / took[small]) / math.log(large / small)
    return [
        *(Figure(f"quiet pass over {size} nodes", took[size] * 1000, "ms") for size in SIZES),
        Figure("growth exponent of a quiet pass", exponent, "(1.1 wanted at most)"),
    ]


def _pass_s(size: int) -> float:
    state, claims = _cluster(size)
    return best_of(3, lambda: run_pass(state, claims, {}, Policy(), NOW_MS))


def _cluster(size: int) -> tuple[ClusterState, dict[tuple[str, str], GPUClaim]]:
    state = ClusterState(heard_ms=NOW_MS, complete=set(BY_KIND))
    sold = {"metadata": {"name": "h100", "uid": "c"}, "spec": {"resourceName": GPU}}
    state.shelves["GPUClass"].models["", "h100"] = GPUClass.model_validate(sold)
    claims = {}
    for number in range(size):
        node = Node.model_validate(gpu_node(f"n{number}", {GPU: 8}))
        state.shelves["Node"].models["", f"n{number}"] = node
        for part in range(4):
            name = f"claim-{number}-{part}"
            claims["default", name] = GPUClaim.model_validate(
                {
                    "metadata": {"name": name, "namespace": "default", "uid": name},
                    "spec": {"className": "h100", "units": 1},
                    "status": {"phase": "Bound", "nodeName": f"n{number}"},
                }
            )
    return state, claims
