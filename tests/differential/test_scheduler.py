"""The same pods and nodes before a real kube-scheduler and before our predicates: they agree node by node.

Each pod meets 40 nodes. The seed is printed and recorded: GPUBINDER_SEED repeats a run, GPUBINDER_CASES sets
how many pods are judged. Where the two disagree, `python -m tests.differential SEED` writes the run down, so
that it can be looked at, and kept, without a server.
"""

from __future__ import annotations

import os
import secrets

import pytest

from tests.differential.comparing import disagreements
from tests.differential.finding import find_assets
from tests.differential.passing import wrong_pins
from tests.differential.running import Run, run
from tests.differential.verdicts import judge_of

pytestmark = [pytest.mark.envtest, pytest.mark.allow_hosts(["127.0.0.1"]), pytest.mark.timeout(600)]
SEED = os.environ.get("GPUBINDER_SEED") or secrets.token_hex(4)
CASES = int(os.environ.get("GPUBINDER_CASES", "2100"))
REFUSED_PERCENT = 5
"""What the API server may refuse of the random pods: more would mean that they are mostly nonsense."""
ACCEPTED_PERCENT = 5
"""What must pass at least of all pods and nodes: a comparison of mere refusals would say little."""
ASKING_PERCENT = 10
"""How many pods at least must ask for GPUs, so that a pass has something to place."""


@pytest.fixture(scope="module")
def found(pytestconfig: pytest.Config) -> Run:
    """What the scheduler says, once for all tests of this file."""
    reporter = pytestconfig.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.write_line(f"\ndifferential run of {CASES} cases: GPUBINDER_SEED={SEED}")
    return run(find_assets(), SEED, CASES)


def test_our_predicates_and_the_real_scheduler_agree_on_every_node(
    found: Run, record_property: pytest.RecordProperty
) -> None:
    """R8, R26, R29."""
    record_property("seed", SEED)
    nodes = sum(one["kind"] == "Node" for one in found.objects)
    accepted = sum(len(case.nodes) for case in found.cases)
    record_property("verdicts", f"{accepted} of {nodes * len(found.cases)} accept")
    assert len(found.refused) * 100 <= REFUSED_PERCENT * CASES, found.refused[:3]
    assert len(found.cases) >= CASES - len(found.refused)
    assert accepted * 100 >= ACCEPTED_PERCENT * nodes * len(found.cases)
    wrong = disagreements(judge_of(found.objects), found.cases)
    assert not wrong, "\n".join([f"GPUBINDER_SEED={SEED}: {len(wrong)} disagree", *wrong[:5]])


def test_pass_pins_launchers_only_where_the_real_scheduler_takes_them(found: Run) -> None:
    """R8, R10: a launcher waits exactly when the scheduler would take it nowhere."""
    count, wrong = wrong_pins(found.objects, found.cases)
    assert count * 100 >= ASKING_PERCENT * len(found.cases)
    assert not wrong, "\n".join([f"GPUBINDER_SEED={SEED}: {len(wrong)} pins are wrong", *wrong[:5]])
