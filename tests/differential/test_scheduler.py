"""The same pods and nodes before a real kube-scheduler and before our predicates: they agree node by node.

Each pod meets 40 nodes. GPUBINDER_SEED repeats a run, GPUBINDER_CASES sets how many pods are judged. Where
the two disagree, the run's seed and the first pods are told; `python -m tests.differential SEED` writes a run
down, so that it can be looked at, and kept, without a server.
"""

from __future__ import annotations

import os
import secrets
import sys

import pytest

from tests.differential.comparing import disagreements
from tests.differential.finding import find_assets
from tests.differential.running import run
from tests.differential.verdicts import judge_of

pytestmark = [pytest.mark.envtest, pytest.mark.allow_hosts(["127.0.0.1"]), pytest.mark.timeout(600)]
CASES = int(os.environ.get("GPUBINDER_CASES", "2100"))
REFUSED_PERCENT = 5
"""What the API server may refuse of the random pods: more would mean that they are mostly nonsense."""
ACCEPTED_PERCENT = 5
"""What must pass at least of all pods and nodes: a comparison of mere refusals would say little."""


def test_our_predicates_and_the_real_scheduler_agree_on_every_node(
    record_property: pytest.RecordProperty,
) -> None:
    """R8, R26, R29."""
    seed = os.environ.get("GPUBINDER_SEED") or secrets.token_hex(4)
    record_property("seed", seed)
    print(f"differential run: GPUBINDER_SEED={seed}", file=sys.stderr)
    found = run(find_assets(), seed, CASES)
    nodes = sum(one["kind"] == "Node" for one in found.objects)
    assert len(found.refused) * 100 <= REFUSED_PERCENT * CASES, found.refused[:3]
    assert len(found.cases) >= CASES * (100 - REFUSED_PERCENT) // 100
    accepted = sum(len(case.nodes) for case in found.cases)
    assert accepted * 100 >= ACCEPTED_PERCENT * nodes * len(found.cases)
    wrong = disagreements(judge_of(found.objects), found.cases)
    assert not wrong, "\n".join([f"GPUBINDER_SEED={seed}: {len(wrong)} disagree", *wrong[:5]])
