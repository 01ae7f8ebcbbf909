"""Which pods are refused for a budget (R27, R28, R29, case 039)."""

from __future__ import annotations

import pytest

from admission.ledger import Ledger
from admission.raw_pods import is_made_by_kubevirt, refuse_raw_pod
from model.pods import Pod
from projections.folds.ledger import BudgetEntry
from tests.admission.ledgers import under
from tests.admission.pods_to_gate import CPU, LAUNCHER, gpus, init, pod, sidecar
from tests.builders import H100

KUBEVIRT = "system:serviceaccount:kubevirt:kubevirt-controller"
TEAM = under(team=BudgetEntry(resource_limits={H100: 4}, resource_units={H100: 2}))


def said(body: object, held: Ledger, namespace: str = "default") -> str:
    refusal = refuse_raw_pod(Pod.model_validate(body), namespace, held)
    return f"{refusal.reason}: {refusal.message}" if refusal else ""


def h100(count: str) -> dict[str, object]:
    return gpus(count, H100)


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (pod({}, h100("3")), 3),
        (pod({}, h100("1"), h100("2")), 3),
        (pod({}, h100("1"), initContainers=init(h100("3"))), 3),
        (pod({}, h100("2"), initContainers=sidecar(h100("1"))), 3),
        (pod(LAUNCHER, h100("3")), 3),
        (pod({}, h100("3"), schedulingGates=[{"name": "example.com/queue"}]), 3),
    ],
    ids=["one container", "two", "init container", "sidecar", "forged launcher", "gated by others"],
)
def test_pod_that_a_budget_has_no_room_for_is_refused_by_its_effective_request(
    body: object, wanted: int
) -> None:
    sentence = f"GPUBudget team allows pods without a claim 4 of {H100}: 2 in use, {wanted} more wanted"
    assert said(body, TEAM) == f"BudgetExceeded: {sentence}"


@pytest.mark.parametrize(
    "body",
    [
        pod({}, h100("2")),
        pod({}, h100("1"), initContainers=init(h100("2"))),
        pod({}, CPU),
        pod({}, gpus("9", "nvidia.com/NOT_SOLD")),
        pod({}, {}),
    ],
    ids=["fits", "init container beside", "no GPU", "not sold", "nothing"],
)
def test_pod_that_fits_or_asks_for_nothing_sold_is_made(body: object) -> None:
    assert said(body, TEAM) == ""


def test_budget_that_limits_other_resources_or_other_namespaces_refuses_nothing() -> None:
    assert said(pod({}, h100("9")), TEAM, "other") == ""
    assert said(pod({}, h100("9")), under(team=BudgetEntry(class_limits={"h100": 0}))) == ""


def test_invalid_budget_refuses_every_raw_pod_below_it_and_no_other_pod() -> None:
    broken = under(team=BudgetEntry(fault="its parents form a cycle through org"))
    assert said(pod({}, h100("1")), broken).startswith("BudgetExceeded: GPUBudget team is invalid")
    assert said(pod({}, CPU), broken) == ""


def test_launcher_is_proven_by_who_makes_it() -> None:
    """R28: labels and owner references prove nothing."""
    launcher = Pod.model_validate(pod(LAUNCHER, h100("1")))
    assert is_made_by_kubevirt(launcher, KUBEVIRT, [KUBEVIRT])
    assert not is_made_by_kubevirt(launcher, "tenant", [KUBEVIRT])
    assert not is_made_by_kubevirt(Pod.model_validate(pod({}, h100("1"))), KUBEVIRT, [KUBEVIRT])
