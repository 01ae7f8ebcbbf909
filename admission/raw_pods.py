"""May this pod be made without a claim? Raw pods are held to the budgets' `resources`. Pure (R27, R29).

A launcher that KubeVirt makes is none at this moment: the binder counts what its claims do not cover, once
they are made. Whatever a tenant makes counts, also under KubeVirt's labels and owner references: whoever
creates a pod writes those (R28).
"""

from __future__ import annotations

from collections.abc import Collection

from admission.ledger import Ledger
from admission.review import Refusal
from model.names import LABEL_KUBEVIRT, LABEL_LAUNCHER
from model.pods import Pod
from model.reasons import Reason
from model.requests import effective_request


def is_made_by_kubevirt(pod: Pod, user: str, kubevirt_users: Collection[str]) -> bool:
    """Whether it is a launcher, proven by who creates it."""
    return user in kubevirt_users and pod.metadata.labels.get(LABEL_KUBEVIRT) == LABEL_LAUNCHER


def refuse_raw_pod(pod: Pod, namespace: str, ledger: Ledger) -> Refusal | None:
    """Why a raw pod may not be made in a namespace, or None; one that asks for nothing sold always may."""
    sold = ledger.sold()
    wanted = {resource: units for resource, units in effective_request(pod).items() if resource in sold}
    for name, budget in ledger.over(namespace) if wanted else ():
        if budget.fault:
            text = f"GPUBudget {name} is invalid ({budget.fault}): it allows nothing new"
            return Refusal(str(Reason.BUDGET_EXCEEDED), text)
        for resource, units in sorted(wanted.items()):
            limit, used = budget.resource_limits.get(resource), budget.resource_units.get(resource, 0)
            if limit is not None and used + units > limit:
                text = f"GPUBudget {name} allows pods without a claim {limit} of {resource}"
                text += f": {used} in use, {units} more wanted"
                return Refusal(str(Reason.BUDGET_EXCEEDED), text)
    return None
