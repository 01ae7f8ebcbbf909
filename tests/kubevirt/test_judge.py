"""The judge of the stories finds what it is there to find."""

from __future__ import annotations

from collections import Counter

import pytest

from kube.port import Json
from tests.kubevirt.judge import booked, is_off_its_pin, used
from tests.kubevirt.plane import RESOURCES

GPU = RESOURCES[0]


def pod(node: str, pin: str, phase: str = "Running", units: int = 1) -> Json:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [pin]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {
        "metadata": {"name": "launcher", "labels": {"kubevirt.io": "virt-launcher"}},
        "spec": {
            "nodeName": node,
            "affinity": {"nodeAffinity": required} if pin else {},
            "containers": [{"resources": {"requests": {GPU: str(units)}}}],
        },
        "status": {"phase": phase},
    }


def claim(phase: str, node: str, units: int) -> Json:
    return {"spec": {"units": units}, "status": {"phase": phase, "nodeName": node}}


@pytest.mark.parametrize(
    ("node", "pin", "is_off"),
    [("", "", False), ("", "a", False), ("a", "a", False), ("b", "a", True), ("a", "", True)],
)
def test_launcher_without_its_pin_or_on_another_node_is_seen(node: str, pin: str, is_off: bool) -> None:
    assert is_off_its_pin(pod(node, pin)) is is_off


def test_units_of_pods_count_until_they_have_ended() -> None:
    pods = [pod("a", "a", units=2), pod("a", "a", "Pending"), pod("a", "a", "Failed", 8), pod("", "")]
    assert used(pods, GPU) == Counter({"a": 3})


def test_units_of_claims_count_while_they_are_bound() -> None:
    claims = [claim("Bound", "a", 2), claim("Bound", "a", 1), claim("Lost", "", 4), claim("Pending", "", 1)]
    assert booked([*claims, {"spec": {"units": 1}}]) == Counter({"a": 3})
