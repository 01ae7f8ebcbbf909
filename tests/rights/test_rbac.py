"""RBAC as it is printed: what holds of its text. That it is enough and needed, a real API server shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from admission.writers import writer_policies
from gpubinder.cli import main
from gpubinder.rbac import Places, account_name, rbac_of
from gpubinder.rights import RIGHTS, Process, permissions_of, rights_table
from model.resources import LEASES

ROOT = Path(__file__).parents[2]


def printed(*arguments: str) -> list[dict[str, Any]]:
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    return list(yaml.safe_load_all(done.output))


def named(documents: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [one for one in documents if one["kind"] == kind]


def test_no_rule_says_everything() -> None:
    """Least privilege: no star, no Secret but its own, and never a ConfigMap or another right."""
    for process in Process:
        for role in rbac_of(process, Places()):
            for rule in role.get("rules", []):
                assert "*" not in [*rule["verbs"], *rule["resources"], *rule["apiGroups"]]
                assert not {"configmaps", "roles", "clusterroles"} & set(rule["resources"])
                if "secrets" in rule["resources"]:
                    is_own = rule.get("resourceNames") == ["gpubinder-admission-tls"]
                    assert (role["kind"], process) == ("Role", Process.ADMIT)
                    assert is_own or rule["verbs"] == ["create"]


def test_nobody_but_the_binder_may_write_a_placement() -> None:
    """R1."""
    writers = {
        process
        for process in Process
        for one in permissions_of(process)
        if one.subresource == "status" and one.verb in ("patch", "update", "create")
    }
    assert writers == {Process.BIND, Process.UP}


def test_those_who_look_change_nothing() -> None:
    for process in (Process.WATCH, Process.STATUS):
        assert {one.verb for one in permissions_of(process)} <= {"get", "list", "watch"}


def test_up_may_what_watch_and_bind_may() -> None:
    both = {*permissions_of(Process.WATCH), *permissions_of(Process.BIND)}
    assert set(permissions_of(Process.UP)) == both


@pytest.mark.parametrize("process", [one for one in Process if one is not Process.UP])
def test_rights_are_given_once_and_for_a_reason(process: Process) -> None:
    given = [one for right in RIGHTS[process] for one in right.permissions]
    assert len(given) == len(set(given))
    assert all(right.why for right in RIGHTS[process])


def test_the_lease_is_the_only_one_and_in_one_namespace() -> None:
    """Nobody may touch another's Lease; to create one cannot be narrowed to a name."""
    for process in Process:
        documents = rbac_of(process, Places(lease="somewhere"))
        for role in named(documents, "ClusterRole"):
            assert not any(LEASES.plural in rule["resources"] for rule in role["rules"])
        for role in named(documents, "Role"):
            for rule in role["rules"]:
                if rule["resources"] == ["secrets"]:
                    continue
                assert role["metadata"]["namespace"] == "somewhere"
                assert rule["resources"] == ["leases"]
                assert rule["verbs"] == ["create"] or rule["resourceNames"] == ["gpubinder-binder"]


def test_uninstall_may_take_off_our_policies_and_no_others() -> None:
    (role,) = named(rbac_of(Process.UNINSTALL, Places()), "ClusterRole")
    deleting = [rule for rule in role["rules"] if "delete" in rule["verbs"]]
    names = {name for rule in deleting for name in rule["resourceNames"]}
    front = ("placement", "gate", "checks")
    ours = {f"gpu.cozystack.io-{name}" for name in front} | {
        one["metadata"]["name"] for one in writer_policies()
    }
    assert names == ours


def test_command_prints_what_is_asked_for_where_it_is_asked_for() -> None:
    documents = printed("rbac", "--process", "bind", "--namespace", "gpu", "--lease-namespace", "leases")
    (account,) = named(documents, "ServiceAccount")
    assert account["metadata"]["namespace"] == "gpu"
    for binding in (*named(documents, "ClusterRoleBinding"), *named(documents, "RoleBinding")):
        assert binding["subjects"] == [
            {"kind": "ServiceAccount", "name": account_name(Process.BIND), "namespace": "gpu"}
        ]
    assert named(documents, "Role")[0]["metadata"]["namespace"] == "leases"
    assert len(named(printed("rbac"), "ServiceAccount")) == len(Process) - 1, "people have accounts already"


def test_wrong_names_are_refused_in_one_line() -> None:
    for arguments in (
        ["rbac", "--namespace", "No!"],
        ["crds", "--binder-user", " "],
        ["rbac", "--process", "x"],
    ):
        done = CliRunner().invoke(main, arguments)
        assert (done.exit_code, done.output.count("\n")) == (2, 1), done.output


def texts(*arguments: str) -> list[str]:
    """The conditions of all policies that `gpubinder crds` prints."""
    policies = named(printed("crds", *arguments), "ValidatingAdmissionPolicy")
    return [rule["expression"] for policy in policies for rule in policy["spec"]["validations"]]


def test_accounts_of_the_policies_are_those_of_rbac_or_those_that_are_given() -> None:
    own = "system:serviceaccount:gpu:gpubinder-bind"
    usual = "system:serviceaccount:kubevirt:kubevirt-controller"
    assert any(own in text for text in texts("--account-namespace", "gpu"))
    given = texts("--binder-user", "me", "--binder-user", "o'neil", "--kubevirt-user", "virt")
    assert not any("gpubinder-bind" in text or usual in text for text in given)
    assert sum("'me', 'o\\'neil'" in text for text in given) == 3
    assert sum("'virt'" in text for text in given) == 3


def test_policies_can_be_left_out() -> None:
    assert texts("--writers", "none") == []


def test_every_refusal_is_one_sentence_and_names_who_may() -> None:
    for policy in named(writer_policies(), "ValidatingAdmissionPolicy"):
        for rule in policy["spec"]["validations"]:
            assert rule["message"].startswith("only ")
            assert "system:serviceaccount:" in rule["message"]
            assert ". " not in rule["message"]
            assert rule["reason"] == "Forbidden"


def test_policies_look_at_main_resources_and_our_status_only() -> None:
    """Kubelets, scheduler and controllers write statuses, bindings and evictions of pods."""
    seen = [
        (rule["apiGroups"][0], resource)
        for policy in named(writer_policies(), "ValidatingAdmissionPolicy")
        for rule in policy["spec"]["matchConstraints"]["resourceRules"]
        for resource in rule["resources"]
    ]
    assert [one for one in seen if one[0] == ""] == [("", "pods")]
    assert {resource for group, resource in seen if "/" in resource} == {
        f"{kind}/status" for kind in ("gpuclaims", "gpuclasses", "gpubudgets")
    }


def test_documentation_shows_the_rights_as_they_are() -> None:
    assert rights_table() in (ROOT / "docs" / "rights.md").read_text(encoding="utf-8"), rights_table()
