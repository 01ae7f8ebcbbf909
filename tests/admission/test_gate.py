"""Which pods get the gate (R6), by the pure function."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.gate import gate_launcher
from model.names import GATE
from tests.admission.pods_to_gate import FOREIGN, LAUNCHER, SOLD, TABLE, gpus, pod

RECORDINGS = Path(__file__).parents[1] / "recordings" / "data"
RECORDED = "nvidia.com/GH100_H100_SXM5_80GB"


@pytest.mark.parametrize(("body", "is_gated"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_launcher_that_asks_for_something_sold_is_gated_and_nothing_else(
    body: dict[str, Any], is_gated: bool
) -> None:
    gated = gate_launcher(body, {SOLD})
    assert (gated is not None) is is_gated
    if gated is not None:
        assert gated["spec"]["schedulingGates"] == [{"name": GATE}]
        assert without_gates(gated) == without_gates(body)


def without_gates(pod: dict[str, Any]) -> dict[str, Any]:
    return {**pod, "spec": {k: v for k, v in pod["spec"].items() if k != "schedulingGates"}}


def test_foreign_gates_are_left_alone_and_ours_is_added_once() -> None:
    gated = gate_launcher(FOREIGN, {SOLD})
    assert gated is not None
    assert [gate["name"] for gate in gated["spec"]["schedulingGates"]] == ["example.com/mine", GATE]
    assert gate_launcher(gated, {SOLD}) is None


def test_nothing_is_gated_where_nothing_is_sold() -> None:
    assert gate_launcher(pod(LAUNCHER, gpus("1")), set()) is None


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.sampled_from(["virt-launcher", SOLD, "1", "x"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["metadata", "labels", "kubevirt.io", "spec", "containers", "resources", "requests", SOLD]
                ),
                inner,
                max_size=4,
            )
        ),
    )
)
def test_malformed_pod_is_no_error(body: Any) -> None:
    gate_launcher(body, {SOLD})


def test_pod_that_was_given_stays_as_it_was() -> None:
    before = pod(LAUNCHER, gpus("1"), schedulingGates=[{"name": "example.com/mine"}])
    gate_launcher(before, {SOLD})
    assert before == FOREIGN


def test_recorded_launchers_get_the_gate_that_the_real_policy_gave_them() -> None:
    """Recorded on a real API server, where the policy gated them; KubeVirt itself sets no gate."""
    launchers = list(recorded_launchers())
    for recorded in launchers:
        bare = without_gates(recorded)
        assert gate_launcher(bare, {RECORDED}) == recorded
        assert gate_launcher(bare, {RECORDED.lower()}) is None
    assert len(launchers) >= 10


def recorded_launchers() -> Iterator[dict[str, Any]]:
    """Each as it was created."""
    for path in sorted(RECORDINGS.glob("*.ndjson")):
        for line in path.read_text(encoding="utf-8").splitlines():
            event = json.loads(line)
            if event["kind"] == "Pod" and event["type"] == "ADDED":
                yield event["object"]
