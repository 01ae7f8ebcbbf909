"""One pass over a built cluster, and what a test asks of its result."""

from __future__ import annotations

from binder.core.policy import Policy
from binder.core.run_pass import PassResult, run_pass
from binder.core.state import ClusterState
from model.claims import GPUClaim
from model.decisions import PinLauncher
from model.reasons import Reason
from tests.builders import NOW_MS, claims


def decide(cluster: ClusterState, *live: GPUClaim, told: dict[str, Reason] | None = None) -> PassResult:
    return run_pass(cluster, claims(*live), told or {}, Policy(), NOW_MS)


def placed_on(result: PassResult) -> dict[str, str]:
    return {d.set: d.node for d in result.decisions if isinstance(d, PinLauncher)}


def reason_of(result: PassResult) -> Reason:
    (waiting,) = result.waiting
    return waiting.reason
