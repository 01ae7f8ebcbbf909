"""Which pods are launchers, where they are tied to, what they asked for before the pin (R8b, R10, R28)."""

from __future__ import annotations

from typing import Any

import pytest

from binder.core.launchers import (
    VM_KIND,
    VMI_KIND,
    Launcher,
    affinity_before_pin,
    controller_uid,
    is_launcher_of,
    is_target_of,
    pinned_node,
    vm_of,
)
from model.decisions import VmRef
from model.meta import ObjectMeta
from model.names import GATE, LABEL_MIGRATION_JOB
from tests.builders import launcher, pinned_to, vm, vmi

ZONE = {"key": "zone", "operator": "In", "values": ["1"]}
PIN = pinned_to("n")[0]["matchFields"][0]  # type: ignore[index]
OTHER_NAME = {"key": "metadata.name", "operator": "NotIn", "values": ["x"]}


@pytest.mark.parametrize(
    ("pod", "run", "is_placeable", "anchor"),
    [
        ({}, {}, True, ""),
        ({"deleting": True}, {}, False, ""),
        ({}, {"deleting": True}, False, ""),
        ({"phase": "Failed"}, {}, False, ""),
        ({}, {"phase": "Succeeded"}, False, ""),
        ({"gates": []}, {}, False, ""),
        ({"gates": [], "terms": pinned_to("n")}, {}, False, "n"),
        ({"gates": [], "terms": pinned_to("n"), "node": "m"}, {}, False, "m"),
        ({"gates": [], "node": "m", "phase": "Failed"}, {}, False, ""),
        ({"terms": pinned_to("n")}, {}, True, ""),
    ],
)
def test_launcher_waits_for_a_node_or_is_tied_to_one(
    pod: dict[str, Any], run: dict[str, Any], is_placeable: bool, anchor: str
) -> None:
    """R10, R21: gated and alive; ungated and not ended."""
    one = Launcher(launcher(**pod), vmi(**run))
    assert (one.is_placeable, one.anchor) == (is_placeable, anchor)


@pytest.mark.parametrize(
    ("terms", "pin"),
    [
        ([], ""),
        ([{"matchFields": [PIN]}], "n"),
        ([{"matchFields": [PIN]}, {"matchFields": [OTHER_NAME, PIN]}], "n"),
        ([{"matchFields": [PIN]}, *pinned_to("m")], ""),
        ([{"matchFields": [PIN | {"values": ["n", "m"]}]}], ""),
        ([{"matchFields": [PIN | {"values": []}]}], ""),
        ([{"matchFields": [OTHER_NAME]}], ""),
        ([{"matchFields": [PIN | {"key": "metadata.uid"}]}], ""),
    ],
)
def test_pin_is_the_one_node_that_every_term_names(terms: list[Any], pin: str) -> None:
    """R10."""
    assert pinned_node(launcher(terms=terms)) == pin


@pytest.mark.parametrize(
    ("gates", "terms", "before"),
    [
        ([], [{"matchExpressions": [ZONE], "matchFields": [PIN]}], [{"matchExpressions": [ZONE]}]),
        ([], [{"matchFields": [OTHER_NAME, PIN]}], [{"matchFields": [OTHER_NAME]}]),
        ([], [{"matchFields": [PIN]}], None),
        ([], [{"matchExpressions": [ZONE], "matchFields": [PIN]}, {"matchFields": [PIN]}], None),
        ([], [{"matchFields": [OTHER_NAME]}], [{"matchFields": [OTHER_NAME]}]),
        ([], [{"matchFields": [PIN, OTHER_NAME]}], [{"matchFields": [PIN, OTHER_NAME]}]),
        ([], [{"matchExpressions": [ZONE]}, {"matchFields": [PIN]}], None),
        ([GATE], [{"matchFields": [PIN]}], [{"matchFields": [PIN]}]),
        ([], [{}], [{}]),
    ],
    ids=[
        "label", "name", "the pin alone", "one term allows all", "no pin", "pin not last",
        "term without a pin", "gated", "a term that nothing matches",
    ],
)  # fmt: skip
def test_constraint_before_the_pin_is_what_the_user_wrote(
    gates: list[str], terms: list[Any], before: list[Any] | None
) -> None:
    """R8b: as it was before ours was appended; while it is gated all of it is the user's."""
    found = affinity_before_pin(launcher(gates=gates, terms=terms))
    wanted = launcher(terms=before).required_affinity if before is not None else None
    assert found == wanted


def test_pod_without_required_terms_has_no_constraint() -> None:
    """R8b."""
    assert affinity_before_pin(launcher(gates=[])) is None


@pytest.mark.parametrize(
    ("node_name", "on", "is_launcher", "is_target"),
    [("", "a", False, True), ("b", "a", False, True), ("b", "b", True, False)],
    ids=["gated", "on its way", "arrived"],
)
def test_target_of_a_migration_is_the_launcher_once_the_vmi_runs_there(
    node_name: str, on: str, is_launcher: bool, is_target: bool
) -> None:
    """R28."""
    pod = launcher(labels={LABEL_MIGRATION_JOB: "job"}, node=node_name)
    run = vmi(phase="Running", node=on)
    assert (is_launcher_of(pod, run), is_target_of(pod, run)) == (is_launcher, is_target)
    stranger = launcher(labels={LABEL_MIGRATION_JOB: "job"}, node=node_name, uid="not-listed")
    assert (is_launcher_of(stranger, run), is_target_of(stranger, run)) == (False, False)


@pytest.mark.parametrize(
    ("controller", "kind", "uid"),
    [(True, VMI_KIND, "u"), (False, VMI_KIND, ""), (True, VM_KIND, "")],
)
def test_owner_is_the_controller_of_the_kind(controller: bool, kind: str, uid: str) -> None:
    """R28."""
    reference = {"apiVersion": "v1", "kind": kind, "name": "x", "uid": "u", "controller": controller}
    assert controller_uid(ObjectMeta.model_validate({"ownerReferences": [reference]}), VMI_KIND) == uid


def test_vmi_is_of_the_vm_of_its_name_that_it_refers_to() -> None:
    """R18, R28: where one of that name exists it must be that very one; a VMI without a VM is its own."""
    there = {("default", "vm1"): vm()}
    assert vm_of(vmi(), there) == VmRef("vm1", "vm-vm1")
    assert vm_of(vmi(), {}) == VmRef("vm1", "vm-vm1")
    assert vm_of(vmi(vm_uid="vm-other"), there) == VmRef("vm1", "vmi-vm1")
    assert vm_of(vmi(vm_uid=""), there) == VmRef("vm1", "vmi-vm1")
