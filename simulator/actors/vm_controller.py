"""virt-controller's part for one VM: its VMI, restarts by run strategy, back-off, status.

The restart table is the measured one: what happens under Always, RerunOnFailure, Manual, Once and Halted when
the VMI or its launcher ends or is deleted. What decides about a restart stands in the VM's status
(`runStrategy`, `stateChangeRequests`, `startFailure`), so that another controller could go on with it.
"""

from __future__ import annotations

from dataclasses import dataclass

from kube.port import MERGE_STATUS, Json
from model.instants import parse_rfc3339, rfc3339
from model.resources import VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES
from simulator.actors.acting import Stage, condition
from simulator.actors.vmi_controller import FINAL, FINALIZER, has_run, phase_of

BACKOFF_S = 10
BACKOFF_LIMIT_S = 300
"""A failed start waits 10 s times the square of the failures in a row, up to 300 s."""
START, STOP = "Start", "Stop"
"""Actions in `status.stateChangeRequests`, as `virtctl start` and `virtctl stop` write them."""
_COUNTS_FAILURES = ("Always", "RerunOnFailure", "Once")


@dataclass(slots=True)
class Last:
    """The VMI that a VM had last, as last seen: one that goes before it ran was a failed start."""

    uid: str = ""
    ran: bool = False


async def tend_vm(stage: Stage, vm: Json, last: Last) -> float | None:
    """One look at a VM; returns in how many seconds its back-off ends."""
    if not vm["metadata"].get("finalizers") and not vm["metadata"].get("deletionTimestamp"):
        vm = await stage.patch(VIRTUAL_MACHINES, vm, {"metadata": {"finalizers": [FINALIZER]}})
    vmi = stage.cache.get(VIRTUAL_MACHINE_INSTANCES, vm["metadata"]["name"], vm["metadata"]["namespace"])
    failure = _count_failure(stage, vm, vmi, last)
    wait_s = None
    if vm["metadata"].get("deletionTimestamp"):
        await _end_vm(stage, vm, vmi, failure)
        return None
    if vmi is None:
        vmi, wait_s = await _start_if_due(stage, vm, failure)
    elif not vmi["metadata"].get("deletionTimestamp") and _must_go(vm, vmi):
        if phase_of(vmi) == "Failed" and _strategy(vm) == "RerunOnFailure":
            vm = await _ask_for(stage, vm, START)
        await stage.delete(VIRTUAL_MACHINE_INSTANCES, vmi)
    if vmi is not None:
        last.uid, last.ran = vmi["metadata"]["uid"], has_run(vmi)
    await _write_status(stage, vm, vmi, failure)
    return wait_s


def _strategy(vm: Json) -> str:
    if "runStrategy" in vm["spec"]:
        return str(vm["spec"]["runStrategy"])
    return "Always" if vm["spec"].get("running") else "Halted"


def _must_go(vm: Json, vmi: Json) -> bool:
    strategy = _strategy(vm)
    if strategy == "Halted" or _is_asked_for(vm, STOP):
        return True
    if phase_of(vmi) in FINAL and _is_asked_for(vm, START):
        return True
    if phase_of(vmi) == "Failed":
        return strategy in ("Always", "RerunOnFailure")
    return phase_of(vmi) == "Succeeded" and strategy == "Always"


def _count_failure(stage: Stage, vm: Json, vmi: Json | None, last: Last) -> Json | None:
    """The VM's startFailure after what has just been seen of its VMI."""
    failure: Json | None = (vm.get("status") or {}).get("startFailure")
    if _strategy(vm) not in _COUNTS_FAILURES or (vmi is not None and has_run(vmi)):
        return None
    ended = vmi["metadata"]["uid"] if vmi is not None and phase_of(vmi) in FINAL else ""
    if vmi is None and last.uid and not last.ran:
        ended = last.uid
    if not ended or (failure and failure["lastFailedVMIUID"] == ended):
        return failure
    count = (failure or {}).get("consecutiveFailCount", 0) + 1
    retry_ms = stage.clock() + 1000 * min(BACKOFF_LIMIT_S, BACKOFF_S * count * count)
    return {
        "consecutiveFailCount": count,
        "lastFailedVMIUID": ended,
        "retryAfterTimestamp": rfc3339(retry_ms),
    }


async def _start_if_due(stage: Stage, vm: Json, failure: Json | None) -> tuple[Json | None, float | None]:
    if not _wants_start(vm):
        return None, None
    retry_ms = parse_rfc3339(failure["retryAfterTimestamp"]) if failure else None
    if retry_ms is not None and retry_ms > stage.clock():
        return None, (retry_ms - stage.clock()) / 1000
    return await stage.create(VIRTUAL_MACHINE_INSTANCES, _vmi_body(vm)), None


def _wants_start(vm: Json) -> bool:
    strategy = _strategy(vm)
    if _is_asked_for(vm, STOP):
        return False  # first the stop is noted as done
    if strategy == "RerunOnFailure":
        is_new = (vm.get("status") or {}).get("runStrategy") != strategy
        return is_new or _is_asked_for(vm, START)
    if strategy == "Manual":
        return _is_asked_for(vm, START)
    return strategy in ("Always", "Once")


def _requests(vm: Json) -> list[Json]:
    return (vm.get("status") or {}).get("stateChangeRequests") or []


def _is_asked_for(vm: Json, action: str) -> bool:
    return any(request.get("action") == action for request in _requests(vm))


async def _ask_for(stage: Stage, vm: Json, action: str) -> Json:
    if _is_asked_for(vm, action):
        return vm
    requests = [*_requests(vm), {"action": action}]
    change = {"status": {"stateChangeRequests": requests}}
    return await stage.patch(VIRTUAL_MACHINES, vm, change, MERGE_STATUS)


def _open_requests(vm: Json, vmi: Json | None) -> list[Json] | None:
    """A stop is done when the VMI has gone, a start when there is a new one."""
    left = [r for r in _requests(vm) if r.get("action") != STOP or vmi is not None]
    is_started = vmi is not None and phase_of(vmi) not in FINAL and not _is_asked_for(vm, STOP)
    if is_started and vmi is not None and not vmi["metadata"].get("deletionTimestamp"):
        left = [r for r in left if r.get("action") != START]
    return left or None


def _vmi_body(vm: Json) -> Json:
    meta, template = vm["metadata"], vm["spec"]["template"]
    given = template.get("metadata") or {}
    return {
        "metadata": {
            "name": meta["name"],
            "namespace": meta["namespace"],
            "labels": dict(given.get("labels") or {}),
            "annotations": {
                **(given.get("annotations") or {}),
                "kubevirt.io/vm-generation": str(meta.get("generation", 1)),
            },
            "finalizers": [FINALIZER],
            "ownerReferences": [
                {
                    "apiVersion": "kubevirt.io/v1",
                    "kind": "VirtualMachine",
                    "name": meta["name"],
                    "uid": meta["uid"],
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": template["spec"],
    }


async def _end_vm(stage: Stage, vm: Json, vmi: Json | None, failure: Json | None) -> None:
    if vmi is not None:
        if not vmi["metadata"].get("deletionTimestamp"):
            await stage.delete(VIRTUAL_MACHINE_INSTANCES, vmi)
        await _write_status(stage, vm, vmi, failure)
    elif vm["metadata"].get("finalizers"):
        await stage.patch(VIRTUAL_MACHINES, vm, {"metadata": {"finalizers": None}})


async def _write_status(stage: Stage, vm: Json, vmi: Json | None, failure: Json | None) -> None:
    old = vm.get("status") or {}
    ready = condition((vmi or {}).get("status", {}).get("conditions"), "Ready") if vmi else None
    is_ready = ready is not None and ready["status"] == "True"
    status: Json = {
        "printableStatus": _printable(vm, vmi, failure),
        "created": True if vmi is not None and phase_of(vmi) else None,
        "ready": True if is_ready else None,
        "startFailure": failure,
        "stateChangeRequests": _open_requests(vm, vmi),
        "runStrategy": _strategy(vm),
    }
    changed = {name: value for name, value in status.items() if old.get(name) != value}
    if changed:
        await stage.patch(VIRTUAL_MACHINES, vm, {"status": changed}, MERGE_STATUS)


def _printable(vm: Json, vmi: Json | None, failure: Json | None) -> str:
    if vm["metadata"].get("deletionTimestamp"):
        return "Terminating"
    if vmi is not None and phase_of(vmi) not in FINAL and vmi["metadata"].get("deletionTimestamp"):
        return "Stopping"
    if vmi is not None and phase_of(vmi) == "Running":
        return "Running"
    if vmi is not None and _is_unschedulable(vmi):
        return "ErrorUnschedulable"
    if vmi is not None and phase_of(vmi) not in FINAL:
        return "Starting"
    return "CrashLoopBackOff" if failure else "Stopped"


def _is_unschedulable(vmi: Json) -> bool:
    """By the condition that the VMI first took over: one that was gated then is never called so."""
    scheduled = condition((vmi.get("status") or {}).get("conditions"), "PodScheduled")
    return scheduled is not None and (scheduled["status"], scheduled.get("reason")) == (
        "False",
        "Unschedulable",
    )
