"""Our own kinds as they are read: tolerant of what is missing, one clear error for what is wrong."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from model.claims import GPUBudget, GPUClaim, GPUClass, Phase

H100 = "nvidia.com/GH100_H100_SXM5_80GB"


def claim(spec: dict[str, Any], **status: Any) -> GPUClaim:
    return GPUClaim.model_validate({"metadata": {"name": "a"}, "spec": spec, "status": status})


def a_claim(**status: Any) -> GPUClaim:
    return claim({"className": "h100", "units": 1}, **status)


def test_claim_without_status_is_pending_and_holds_nothing() -> None:
    read = GPUClaim.model_validate({"metadata": {"name": "a"}, "spec": {"className": "h100", "units": 2}})
    assert (read.status.phase, read.bound_node, read.placed_condition) == (Phase.PENDING, "", None)
    assert (read.status.vm, read.status.bound_at, read.metadata.deletion_timestamp) == (None, None, None)


def test_bound_claim_is_read_whole() -> None:
    condition = {"type": "Placed", "status": "True", "reason": "Placed", "observedGeneration": 1}
    read = a_claim(
        phase="Bound",
        nodeName="gpu-1",
        boundAt="2026-12-01T00:00:00Z",
        vm={"name": "vm", "uid": "u"},
        conditions=[{"type": "Other"}, condition],
    )
    assert read.bound_node == "gpu-1"
    assert read.status.vm is not None
    assert read.status.vm.uid == "u"
    assert read.placed_condition is not None
    assert read.placed_condition.observed_generation == 1


@pytest.mark.parametrize(
    "status", [{"phase": "Bound"}, {"phase": "Pending", "nodeName": "n"}, {"phase": "Lost", "nodeName": "n"}]
)
def test_status_that_contradicts_itself_holds_nothing(status: dict[str, Any]) -> None:
    assert a_claim(**status).bound_node == ""


@pytest.mark.parametrize("units", [4, "4", 4.0])
def test_units_are_read_as_they_come(units: object) -> None:
    assert claim({"className": "h100", "units": units}).spec.units == 4


@pytest.mark.parametrize("units", [0, -1, 1025, 1.5, "four", "", None, [4], float("nan"), "9" * 5000])
def test_units_that_make_no_sense_are_one_error_at_their_field(units: object) -> None:
    with pytest.raises(ValidationError) as refused:
        claim({"className": "h100", "units": units})
    (error,) = refused.value.errors(include_url=False)
    assert error["loc"] == ("spec", "units")


@pytest.mark.parametrize("name", ["", "H100", "h100 ", "h100\n", "-h", "a" * 254, None, 5])
def test_name_that_no_class_can_have_is_refused(name: object) -> None:
    with pytest.raises(ValidationError):
        claim({"className": name, "units": 1})


def test_unknown_fields_are_not_seen_and_nothing_can_be_changed() -> None:
    read = claim({"className": "h100", "units": 1, "colour": "red"})
    assert not hasattr(read.spec, "colour")
    with pytest.raises(ValidationError):
        read.spec.units = 2  # type: ignore[misc]


def test_class_and_budget_are_read_with_their_defaults() -> None:
    read = GPUClass.model_validate({"spec": {"resourceName": H100, "tolerations": [{"operator": "Exists"}]}})
    assert (read.spec.default, read.spec.node_selector) == (False, {})
    assert read.spec.tolerations[0].toleration_seconds is None
    assert read.status.free == 0
    budget = GPUBudget.model_validate({"spec": {"classes": {"h100": 8}, "resources": {H100: "4"}}})
    assert (budget.spec.parent, budget.spec.classes, budget.spec.resources) == ("", {"h100": 8}, {H100: 4})
