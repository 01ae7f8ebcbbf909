"""Who may write what, as ValidatingAdmissionPolicies of the API server (Kubernetes 1.30 and newer).

RBAC says who may write pods and claims at all; these say which of their writes are gpubinder's or KubeVirt's
alone, also to those who may do everything else. They look at accounts by name and at the main resources only:
kubelets, the scheduler, the garbage collector and the namespace controller never do what is refused here.
They fail closed, and their expressions cannot fail: every field that may be missing is asked for first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from model.names import FINALIZER, GATE, LABEL_CREATED_BY, LABEL_MIGRATION_JOB, LABEL_OURS, OURS
from model.resources import GPU_BUDGETS, GPU_CLAIMS, GPU_CLASSES, GROUP, PODS, VERSION

Json = dict[str, Any]
PREFIX = "gpu.cozystack.io-"
_API = "admissionregistration.k8s.io/v1"
_ACCOUNT = "system:serviceaccount:gpubinder-system:gpubinder-"


@dataclass(frozen=True, slots=True)
class Accounts:
    """The user names, as the API server calls them, of those who may."""

    kubevirt: tuple[str, ...] = ("system:serviceaccount:kubevirt:kubevirt-controller",)
    """virt-controller: makes launchers."""
    binder: tuple[str, ...] = (f"{_ACCOUNT}bind", f"{_ACCOUNT}up")
    """Writes placements, takes gates and finalizers off."""
    uninstall: tuple[str, ...] = (f"{_ACCOUNT}uninstall",)
    """Takes gates and finalizers off."""


def writer_policies(accounts: Accounts | None = None) -> list[Json]:
    """The policies with their bindings, ready to be applied."""
    chosen = accounts or Accounts()
    rules = (_launcher_rule(chosen), _status_rule(chosen), _finalizer_rule(chosen))
    return [document for rule in rules for document in rule]


def _launcher_rule(accounts: Accounts) -> list[Json]:
    """Pods: what makes a pod a launcher (R28) is KubeVirt's, the gate's removal is ours (R10)."""
    kubevirt, ours = accounts.kubevirt, (*accounts.binder, *accounts.uninstall)
    variables = {
        "isGated": _has_gate("object"),
        "wasGated": f"oldObject != null && {_has_gate('oldObject')}",
        "newVmis": _vmis_that_control("object"),
        "oldVmis": f"oldObject == null ? [] : {_vmis_that_control('oldObject')}",
    }
    for name, label in (("CreatedBy", LABEL_CREATED_BY), ("MigrationJob", LABEL_MIGRATION_JOB)):
        variables[f"new{name}"] = _label("object", label)
        variables[f"old{name}"] = f"oldObject == null ? '' : {_label('oldObject', label)}"
    makes = f"KubeVirt's controller ({', '.join(kubevirt)})"
    validations = [
        _only(
            kubevirt,
            "!variables.isGated || variables.wasGated",
            f"only {makes} creates pods with the gate {GATE}, which a pod gets that asks for a GPU and is "
            "labelled as a launcher: take the label off, or start a VirtualMachine",
        ),
        _only(
            kubevirt,
            "variables.newVmis.all(uid, uid in variables.oldVmis)",
            f"only {makes} gives a pod a VirtualMachineInstance as its controller",
        ),
        _only(
            kubevirt,
            "variables.newCreatedBy == variables.oldCreatedBy"
            " && variables.newMigrationJob == variables.oldMigrationJob",
            f"only {makes} sets or changes the labels {LABEL_CREATED_BY} and {LABEL_MIGRATION_JOB} of a pod",
        ),
        _only(
            ours,
            "!variables.wasGated || variables.isGated",
            f"only gpubinder ({', '.join(ours)}) takes the gate {GATE} off a pod: its GPUClaim says why it "
            "waits, and where gpubinder is no more, gpubinder uninstall takes gates off",
        ),
    ]
    return _policy("launchers", _rule("", "v1", ("CREATE", "UPDATE"), (PODS.plural,)), validations, variables)


def _status_rule(accounts: Accounts) -> list[Json]:
    """R1: one writer."""
    resources = tuple(f"{one.plural}/status" for one in (GPU_CLAIMS, GPU_CLASSES, GPU_BUDGETS))
    text = (
        f"only gpubinder's binder ({', '.join(accounts.binder)}) writes the status of GPUClaims, GPUClasses "
        "and GPUBudgets; another account is named with gpubinder crds --binder-user"
    )
    validations = [_only(accounts.binder, "", text)]
    return _policy("status", _rule(GROUP, VERSION, ("UPDATE",), resources), validations, {})


def _finalizer_rule(accounts: Accounts) -> list[Json]:
    """R30: a claim that goes while its launcher runs sells its units twice."""
    ours = (*accounts.binder, *accounts.uninstall)
    text = (
        f"only gpubinder ({', '.join(ours)}) takes the finalizer {FINALIZER} off: what is deleted goes when "
        "no launcher or claim uses it, and where gpubinder is no more, gpubinder uninstall takes it off"
    )
    variables = {"isKept": _is_kept("object"), "wasKept": _is_kept("oldObject")}
    validations = [_only(ours, "!variables.wasKept || variables.isKept", text)]
    rule = _rule(GROUP, VERSION, ("UPDATE",), (GPU_CLAIMS.plural, GPU_CLASSES.plural))
    return _policy("finalizers", rule, validations, variables)


def _has_gate(obj: str) -> str:
    gates = f"{obj}.spec.schedulingGates"
    return f"has({gates}) && {gates}.exists(gate, gate.name == {_quoted(GATE)})"


def _vmis_that_control(obj: str) -> str:
    """The uids in the controller references to VMIs, of whatever API group: one at most."""
    owners = f"{obj}.metadata.ownerReferences"
    is_one = "has(owner.controller) && owner.controller && owner.kind == 'VirtualMachineInstance'"
    return f"(has({owners}) ? {owners}.filter(owner, {is_one}).map(owner, owner.uid) : [])"


def _label(obj: str, label: str) -> str:
    labels, key = f"{obj}.metadata.labels", _quoted(label)
    return f"(has({labels}) && {key} in {labels} ? {labels}[{key}] : '')"


def _is_kept(obj: str) -> str:
    finalizers = f"{obj}.metadata.finalizers"
    return f"has({finalizers}) && {_quoted(FINALIZER)} in {finalizers}"


def _only(accounts: tuple[str, ...], unless: str, message: str) -> Json:
    """These accounts may; all others when `unless` holds, if ever."""
    names = ", ".join(_quoted(name) for name in accounts)
    expression = f"request.userInfo.username in [{names}]" + (f" || ({unless})" if unless else "")
    return {"expression": expression, "message": message, "reason": "Forbidden"}


def _quoted(text: str) -> str:
    """A string in CEL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _rule(group: str, version: str, operations: tuple[str, ...], resources: tuple[str, ...]) -> Json:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": list(operations),
        "resources": list(resources),
    }


def _policy(name: str, rule: Json, validations: list[Json], variables: dict[str, str]) -> list[Json]:
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "variables": [{"name": key, "expression": text} for key, text in variables.items()],
        "validations": validations,
    }
    binding = {"policyName": PREFIX + name, "validationActions": ["Deny"]}
    return [
        _document("ValidatingAdmissionPolicy", name, spec),
        _document("ValidatingAdmissionPolicyBinding", name, binding),
    ]


def _document(kind: str, name: str, spec: Json) -> Json:
    meta = {"name": PREFIX + name, "labels": {LABEL_OURS: OURS}}
    return {"apiVersion": _API, "kind": kind, "metadata": meta, "spec": spec}
