"""The objects and patches that the binder writes, as JSON. Pure: everything comes in as a value."""

from __future__ import annotations

import hashlib
from typing import Any

from model.decisions import BindClaim, CreateClaim, LoseClaim, MarkWaiting, ObjectRef, WarnPod, WarnVmi
from model.names import FINALIZER
from model.reasons import Reason
from model.resources import EVENTS, GPU_CLAIMS, PODS, VIRTUAL_MACHINE_INSTANCES

Json = dict[str, Any]
CONTROLLER = "gpu.cozystack.io/binder"
_MAX_NOTE = 1024
"""What events.k8s.io/v1 allows a note to hold."""


def claim_body(decision: CreateClaim) -> Json:
    """A template claim; its owner's end takes it along (garbage collection)."""
    owner = decision.owner
    reference = {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }
    return {
        "apiVersion": GPU_CLAIMS.api_version,
        "kind": GPU_CLAIMS.kind,
        "metadata": {
            "name": decision.claim.name,
            "namespace": decision.claim.namespace,
            "ownerReferences": [reference],
            "finalizers": [FINALIZER],
        },
        "spec": {"className": decision.class_name, "units": decision.units},
    }


def status_patch(decision: BindClaim | MarkWaiting | LoseClaim, ref: ObjectRef) -> Json:
    """The merge patch of a claim's status that the decision stands for."""
    match decision:
        case BindClaim():
            return bound_patch(decision, ref)
        case MarkWaiting():
            return waiting_patch(decision, ref)
        case LoseClaim():
            return lost_patch(decision, ref)


def bound_patch(decision: BindClaim, ref: ObjectRef) -> Json:
    """A merge patch of status: Bound, with what an earlier phase left taken away."""
    vm = {"name": decision.vm.name, "uid": decision.vm.uid} if decision.vm else None
    text = f"held on {decision.node}" + (f"; {decision.caution}" if decision.caution else "")
    placed = _condition("True", "Placed", text, decision.bound_at, decision.generation)
    status = {
        "phase": "Bound",
        "nodeName": decision.node,
        "boundAt": decision.bound_at,
        "lostFrom": None,
        "lostAt": None,
        "vm": vm,
        "conditions": [placed],
    }
    return {"metadata": _precondition(ref), "status": status}


def waiting_patch(decision: MarkWaiting, ref: ObjectRef) -> Json:
    """A merge patch of status: Pending, and why."""
    placed = _condition("False", decision.reason, decision.message, decision.since, decision.generation)
    return {"metadata": _precondition(ref), "status": {"phase": "Pending", "conditions": [placed]}}


def lost_patch(decision: LoseClaim, ref: ObjectRef) -> Json:
    """A merge patch of status: Lost from its node, and why."""
    vm = {"name": decision.vm.name, "uid": decision.vm.uid} if decision.vm else None
    placed = _condition("False", Reason.NODE_LOST, decision.message, decision.lost_at, decision.generation)
    status = {
        "phase": "Lost",
        "nodeName": None,
        "boundAt": None,
        "lostFrom": decision.lost_from,
        "lostAt": decision.lost_at,
        "vm": vm,
        "conditions": [placed],
    }
    return {"metadata": _precondition(ref), "status": status}


def warning_event(decision: WarnVmi | WarnPod, at_micro: str, instance: str) -> Json:
    """An events.k8s.io/v1 Event on the VMI or pod, named by what it says: saying it twice is one event."""
    match decision:
        case WarnVmi(vmi=ref):
            resource = VIRTUAL_MACHINE_INSTANCES
        case WarnPod(pod=ref):
            resource = PODS
    said = f"{ref.uid}/{decision.reason}/{decision.at}"
    return {
        "apiVersion": EVENTS.api_version,
        "kind": EVENTS.kind,
        "metadata": {
            "name": f"{ref.name[:200]}.{hashlib.sha256(said.encode()).hexdigest()[:16]}",
            "namespace": ref.namespace,
        },
        "eventTime": at_micro,
        "type": "Warning",
        "reason": str(decision.reason),
        "action": "Place",
        "note": decision.message[:_MAX_NOTE],
        "reportingController": CONTROLLER,
        "reportingInstance": instance[:128],
        "regarding": {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "name": ref.name,
            "namespace": ref.namespace,
            "uid": ref.uid,
        },
    }


def _precondition(ref: ObjectRef) -> Json:
    return {"uid": ref.uid, "resourceVersion": ref.resource_version}


def _condition(status: str, reason: str, message: str, since: str, generation: int) -> Json:
    return {
        "type": "Placed",
        "status": status,
        "reason": str(reason),
        "message": message,
        "lastTransitionTime": since,
        "observedGeneration": generation,
    }
