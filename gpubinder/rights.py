"""Which rights each process needs on the API server, and what for: the one list, least privilege.

`gpubinder rbac` prints it as RBAC objects, docs/rights.md shows it as a table, and a test runs every process
with exactly this and takes each right away in turn to see that it is needed. Discovery (/version, /apis/...)
is not in it: Kubernetes gives that to everybody who has logged in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from admission.policies import gate_policy
from admission.webhooks import CHECKS_CONFIGURATION, GATE_CONFIGURATION
from admission.writers import writer_policies
from gpubinder.settings import AdmissionChoice
from gpubinder.system import LEASE
from model.kinds import WATCHED
from model.resources import (
    ADMISSION,
    EVENTS,
    GPU_BUDGETS,
    GPU_CLAIMS,
    GPU_CLASSES,
    LEASES,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    PODS,
    SECRETS,
    VALIDATING_WEBHOOKS,
    VIRTUAL_MACHINE_INSTANCES,
    Resource,
)


class Process(StrEnum):
    """What runs against the API server under an account of its own."""

    WATCH = "watch"
    BIND = "bind"
    UP = "up"
    STATUS = "status"
    ADMIT = "admit"
    UNINSTALL = "uninstall"


class Home(StrEnum):
    """Where a right is given."""

    CLUSTER = "cluster"
    LEASE = "lease"
    """In the Lease's namespace only."""
    ACCOUNTS = "accounts"
    """In the namespace of our accounts, where the webhooks' Secret is, only."""


_HOMES = {LEASES: Home.LEASE, SECRETS: Home.ACCOUNTS}


@dataclass(frozen=True, slots=True)
class Permission:
    """One verb on one resource; `name` narrows it to one object."""

    verb: str
    resource: Resource
    subresource: str = ""
    name: str = ""

    @property
    def home(self) -> Home:
        """Where it is given."""
        return _HOMES.get(self.resource, Home.CLUSTER)

    def __str__(self) -> str:
        what = self.resource.full_name + (f"/{self.subresource}" if self.subresource else "")
        return f"{self.verb} {what}" + (f" {self.name}" if self.name else "")


@dataclass(frozen=True, slots=True)
class Right:
    """Verbs on one resource, on the named objects of it or on all, and why a process needs them."""

    resource: Resource
    verbs: tuple[str, ...]
    why: str
    subresource: str = ""
    names: tuple[str, ...] = ()

    @property
    def permissions(self) -> Iterator[Permission]:
        """One by one."""
        for verb in self.verbs:
            for name in self.names or ("",):
                yield Permission(verb, self.resource, self.subresource, name)


_WEBHOOKS = {MUTATING_WEBHOOKS: {GATE_CONFIGURATION}, VALIDATING_WEBHOOKS: {CHECKS_CONFIGURATION}}


def _of_ours(resource: Resource) -> tuple[str, ...]:
    """The names of what `gpubinder crds` prints of a kind that stands in front of the API server."""
    documents = [*gate_policy(), *writer_policies()]
    names = {one["metadata"]["name"] for one in documents if one["kind"] == resource.kind}
    return tuple(sorted(names | _WEBHOOKS.get(resource, set())))


_WHOSE_LOG = Right(
    NAMESPACES, ("get",), "its uid names the cluster that the log belongs to", names=("kube-system",)
)
_LEADER = Right(LEASES, ("get",), "who the active binder is", names=(LEASE,))
_WATCH = (
    *(Right(kind.resource, ("list", "watch"), "its changes enter the log") for kind in WATCHED),
    _WHOSE_LOG,
)
_BIND = (
    Right(GPU_CLAIMS, ("list",), "each pass starts from the live claims (R3)"),
    Right(GPU_CLAIMS, ("get", "create", "delete"), "template claims come and go with their VMI (R7)"),
    Right(GPU_CLAIMS, ("patch",), "puts its finalizer on and takes it off (R30)"),
    Right(GPU_CLAIMS, ("patch",), "the placement, which nobody else writes (R1)", "status"),
    Right(GPU_CLASSES, ("get", "patch"), "puts its finalizer on and takes it off (R30)"),
    Right(GPU_CLASSES, ("patch",), "says who has its units", "status"),
    Right(GPU_BUDGETS, ("get",), "the version on which it says what is used"),
    Right(GPU_BUDGETS, ("patch",), "says what is used of it, and whether it is valid", "status"),
    Right(PODS, ("get", "patch"), "pins, tolerates and ungates a launcher (R10)"),
    Right(PODS, ("delete",), "a launcher that its node refused or cannot keep (R13, R21)"),
    Right(VIRTUAL_MACHINE_INSTANCES, ("get", "delete"), "moves a running VM off a node (R21)"),
    Right(EVENTS, ("create",), "tells a tenant why a VM waits (R12)"),
    Right(LEASES, ("create",), "the first one takes it; RBAC cannot name what is to be created"),
    Right(LEASES, ("get", "update"), "of several binders one is active", names=(LEASE,)),
    _WHOSE_LOG,
)
_STATUS = (
    *(Right(kind.resource, ("list",), "holdings are counted as a pass counts them") for kind in WATCHED),
    _LEADER,
)
_SECRET = (AdmissionChoice().secret,)
_ADMIT = (
    Right(GPU_CLASSES, ("list",), "which resources are on sale (R6)"),
    Right(GPU_CLASSES, ("get",), "an order of a class that is newer than the ledger"),
    Right(GPU_BUDGETS, ("list",), "what an operator should hear of a new budget"),
    Right(SECRETS, ("create",), "certificates of its own; RBAC cannot name what is to be created"),
    Right(SECRETS, ("get", "update"), "all replicas show one certificate, renewed in time", names=_SECRET),
    *(
        Right(resource, ("get", "patch"), "has the API server trust them", names=tuple(sorted(names)))
        for resource, names in _WEBHOOKS.items()
    ),
    _WHOSE_LOG,
)
_UNINSTALL = (
    *(Right(resource, ("list",), "finds what is ours by its label") for resource in ADMISSION),
    *(
        Right(resource, ("get", "delete"), "takes it off; of others none", names=_of_ours(resource))
        for resource in ADMISSION
    ),
    Right(PODS, ("list", "get", "patch"), "takes our gate off"),
    Right(GPU_CLAIMS, ("list", "get", "patch"), "takes our finalizer off"),
    Right(GPU_CLASSES, ("list", "get", "patch"), "takes our finalizer off"),
    Right(LEASES, ("get", "delete"), "sees that no binder is active, and takes it away", names=(LEASE,)),
)
RIGHTS: dict[Process, tuple[Right, ...]] = {
    Process.WATCH: _WATCH,
    Process.BIND: _BIND,
    Process.UP: (*_WATCH, *(right for right in _BIND if right not in _WATCH)),
    Process.STATUS: _STATUS,
    Process.ADMIT: _ADMIT,
    Process.UNINSTALL: _UNINSTALL,
}


def permissions_of(process: Process) -> tuple[Permission, ...]:
    """One by one, each once; Kubernetes' roles only add up."""
    return tuple(dict.fromkeys(one for right in RIGHTS[process] for one in right.permissions))


def rights_table() -> str:
    """The rights as a Markdown table, for docs/rights.md; what has one reason stands in one row."""
    lines = ["| process | verbs | on | why |", "| --- | --- | --- | --- |"]
    for process, rights in RIGHTS.items():
        if process is Process.UP:
            lines.append(f"| `{process}` | | all that `watch` and `bind` may | it is both |")
            continue
        rows: dict[tuple[str, str], list[str]] = {}
        for right in rights:
            rows.setdefault((", ".join(right.verbs), right.why), []).append(_objects(right))
        lines += [f"| `{process}` | {verbs} | {', '.join(on)} | {why} |" for (verbs, why), on in rows.items()]
    return "\n".join(lines) + "\n"


def _objects(right: Right) -> str:
    what = right.resource.full_name + (f"/{right.subresource}" if right.subresource else "")
    return what + "".join(f" `{name}`" for name in right.names)
