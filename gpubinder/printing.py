"""What `gpubinder crds` prints: the CRDs, the gate in the form that the API server has, the checks."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from admission.policies import gate_policy
from admission.webhooks import Address, check_webhooks, gate_webhook, service
from gpubinder.settings import ClusterChoice
from gpubinder.stores import reach_cluster
from model.crds import all_crds
from model.resources import ADMISSION

Json = dict[str, Any]


class Gate(StrEnum):
    """What gates launchers (R6)."""

    AUTO = "auto"
    """The policy where the API server serves it, else the webhook."""
    POLICY = "policy"
    WEBHOOK = "webhook"
    NONE = "none"


class Checks(StrEnum):
    """What checks orders and raw pods."""

    WEBHOOK = "webhook"
    NONE = "none"


async def served_gate(cluster: ClusterChoice) -> Gate:
    """The form of the gate that the cluster's API server has. Raises CommandError."""
    policy = next(resource for resource in ADMISSION if resource.kind == "MutatingAdmissionPolicy")
    async with reach_cluster(cluster) as client:
        served = await client.served(policy.group, policy.version)
    return Gate.POLICY if policy.plural in served else Gate.WEBHOOK


def documents(gate: Gate, checks: Checks | None, address: Address) -> list[Json]:
    """All that is to be applied, in order. Checks that are not chosen come with the webhook gate."""
    chosen = checks or (Checks.WEBHOOK if gate is Gate.WEBHOOK else Checks.NONE)
    asked = [gate_webhook(address)] if gate is Gate.WEBHOOK else []
    asked += [check_webhooks(address)] if chosen is Checks.WEBHOOK else []
    return [
        *all_crds(),
        *(gate_policy() if gate is Gate.POLICY else []),
        *(service(address) if asked else []),
        *asked,
    ]
