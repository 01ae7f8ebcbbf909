"""The webhook configurations: what holds of their text. That a server takes them, a real one shows."""

from __future__ import annotations

from typing import Any

import pytest

from admission.policies import gate_policy
from admission.webhooks import INJECT, Address, check_webhooks, gate_webhook, service
from model.names import LABEL_OURS, OURS

ADDRESS = Address("gpus", "admit")


def gate() -> dict[str, Any]:
    (webhook,) = gate_webhook(ADDRESS)["webhooks"]
    return dict(webhook)


def checks() -> dict[str, dict[str, Any]]:
    return {one["name"].split(".")[0]: one for one in check_webhooks(ADDRESS)["webhooks"]}


def test_gate_fails_closed_and_sees_what_the_policy_sees() -> None:
    """R6: two forms, one meaning. The webhook can be down: it is asked only about what may need the gate."""
    policy = gate_policy()[0]["spec"]
    assert gate()["failurePolicy"] == policy["failurePolicy"] == "Fail"
    assert gate()["objectSelector"] == policy["matchConstraints"]["objectSelector"]
    (rule,), (seen,) = gate()["rules"], policy["matchConstraints"]["resourceRules"]
    assert seen.items() <= rule.items()
    assert "devices.kubevirt.io/kvm" in gate()["matchConditions"][0]["expression"]


def test_checks_fail_open_and_never_look_at_kube_system() -> None:
    assert {one["failurePolicy"] for one in checks().values()} == {"Ignore"}
    (condition,) = checks()["pods"]["namespaceSelector"]["matchExpressions"]
    assert (condition["operator"], condition["values"]) == ("NotIn", ["kube-system"])


def test_each_check_sees_what_it_judges() -> None:
    seen = {
        name: (one["rules"][0]["resources"], one["rules"][0]["operations"]) for name, one in checks().items()
    }
    assert seen == {
        "claims": (["gpuclaims"], ["CREATE"]),
        "pods": (["pods"], ["CREATE"]),
        "classes": (["gpuclasses"], ["CREATE", "UPDATE"]),
        "budgets": (["gpubudgets"], ["CREATE", "UPDATE", "DELETE"]),
    }


def test_nobody_waits_longer_than_a_second_and_nothing_has_side_effects() -> None:
    for webhook in (gate(), *checks().values()):
        assert (webhook["timeoutSeconds"], webhook["sideEffects"]) == (1, "None")


def test_uninstall_finds_each_configuration_by_its_label() -> None:
    for one in (gate_webhook(ADDRESS), check_webhooks(ADDRESS), *service(ADDRESS)):
        assert one["metadata"]["labels"] == {LABEL_OURS: OURS}


def test_service_is_called_by_the_name_that_our_certificate_carries() -> None:
    called = gate()["clientConfig"]["service"]
    assert called == {"namespace": "gpus", "name": "admit", "path": "/gate"}
    assert f"{called['name']}.{called['namespace']}.svc" in ADDRESS.names
    (made,) = service(ADDRESS)
    assert (made["metadata"]["name"], made["metadata"]["namespace"]) == ("admit", "gpus")


def test_url_stands_for_the_service() -> None:
    outside = Address(url="https://127.0.0.1:9443/")
    (webhook,) = gate_webhook(outside)["webhooks"]
    assert webhook["clientConfig"] == {"url": "https://127.0.0.1:9443/gate"}
    assert service(outside) == []


@pytest.mark.parametrize("made", [gate_webhook, check_webhooks])
def test_cert_manager_is_told_where_its_authority_goes(made: Any) -> None:
    assert "annotations" not in made(ADDRESS)["metadata"]
    assert made(Address(inject_from="gpus/tls"))["metadata"]["annotations"] == {INJECT: "gpus/tls"}
