"""The settings of a process, as the command line and the environment give them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from admission.reviewing import Rules
from admission.webhooks import Address
from binder.core.policy import Policy

CLUSTER = "default"
LEASE_NAMESPACE = "kube-system"


@dataclass(frozen=True, slots=True)
class ClusterChoice:
    """Which cluster: a kubeconfig's, the pod's own, or the simulated one."""

    kubeconfig: str | None = None
    context: str | None = None
    is_embedded: bool = False
    port: int = 0
    """Of the simulated API server; 0 takes a free one."""
    nodes: int = 3
    """GPU nodes that the simulated cluster begins with."""


@dataclass(frozen=True, slots=True)
class LogChoice:
    """Which log: a Redis by URL, or the embedded one with its data in a folder."""

    url: str | None = None
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class AdmissionChoice:
    """How the webhooks are served; with port 0, not at all."""

    port: int = 0
    rules: Rules = field(default_factory=Rules)
    address: Address = field(default_factory=Address)
    secret: str = "gpubinder-admission-tls"  # noqa: S105 - its name
    """In the address's namespace: our own certificates, shared by all replicas."""
    certificate_folder: Path | None = None
    """Of tls.crt and tls.key that somebody else keeps, such as cert-manager."""
    names: tuple[str, ...] = ()
    """More host names or addresses that our certificate is to carry."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All of them."""

    cluster_choice: ClusterChoice
    log_choice: LogChoice
    cluster: str = CLUSTER
    """Names the keys of this cluster in Redis."""
    lease_namespace: str = LEASE_NAMESPACE
    metrics_port: int = 0
    policy: Policy = field(default_factory=Policy)
    """What the binder's decisions depend on."""
    admission: AdmissionChoice = field(default_factory=AdmissionChoice)
