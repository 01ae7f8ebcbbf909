"""Which pods get the gate (R6), by the pure function."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.gate import gate_launcher
from model.names import GATE
from tests.admission.pods_to_gate import FOREIGN, LAUNCHER, SOLD, TABLE, gpus, pod


@pytest.mark.parametrize(("body", "is_gated"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_launcher_that_asks_for_something_sold_is_gated_and_nothing_else(
    body: dict[str, Any], is_gated: bool
) -> None:
    gated = gate_launcher(body, {SOLD})
    assert (gated is not None) is is_gated
    if gated is not None:
        assert gated["spec"].pop("schedulingGates") == [{"name": GATE}]
        assert gated == body


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
    if isinstance(body, dict):
        gate_launcher(body, {SOLD})
