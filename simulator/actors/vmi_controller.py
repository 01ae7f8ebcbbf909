"""virt-controller's part for one VMI: its launcher, its phases up to Scheduled, its end.

States as in the recordings of a real KubeVirt, and as read in its pkg/virt-controller/watch/vmi: Pending to
Scheduling once a launcher exists, to Scheduled once it runs; a launcher that ends, goes or is being deleted
before the VMI ran makes it Failed; the last phases are virt-handler's.
"""

from __future__ import annotations

from kube.errors import Forbidden
from kube.port import MERGE_STATUS, Json
from model.resources import PODS, VIRTUAL_MACHINE_INSTANCES
from simulator.actors.acting import Stage, condition, controller_uid, with_condition
from simulator.actors.launcher_pod import launcher_pod

FINALIZER = "kubevirt.io/virtualMachineControllerFinalize"
FINAL = ("Succeeded", "Failed")
PENDING_RETRY_S = 5.0
"""Until a launcher that quota or admission refused is tried again."""
_STARTING = ("", "Pending", "Scheduling")
_NODE_NAME = "kubevirt.io/nodeName"
_UNPAUSED = {
    "type": "kubevirt.io/virtual-machine-unpaused",
    "status": "True",
    "reason": "NotPaused",
    "message": "the virtual machine is not paused",
}
_GUEST_NOT_RUNNING = {
    "type": "Ready",
    "status": "False",
    "reason": "GuestNotRunning",
    "message": "Guest VM is not reported as running",
}


async def tend_vmi(stage: Stage, vmi: Json) -> float | None:
    """One look at a VMI, at most one step on its way; returns in how many seconds to look again."""
    pods = pods_of(stage, vmi)
    if vmi["metadata"].get("deletionTimestamp") or phase_of(vmi) in FINAL:
        await _tend_ending(stage, vmi, pods)
        return None
    if not pods and phase_of(vmi) in ("", "Pending"):
        return await _make_launcher(stage, vmi)
    await _write_status(stage, vmi, pods, _next_phase(vmi, pods))
    await _mark_launchers(stage, vmi, pods)
    return None


def pods_of(stage: Stage, vmi: Json) -> list[Json]:
    """The pods that the VMI controls: only the controller reference's uid is looked at, as by KubeVirt."""
    uid = vmi["metadata"]["uid"]
    return [pod for pod in stage.cache.of(PODS) if controller_uid(pod) == uid]


def phase_of(vmi: Json) -> str:
    """The VMI's phase, empty at first."""
    return str((vmi.get("status") or {}).get("phase") or "")


def has_run(vmi: Json) -> bool:
    """Whether it was ever Running: what decides about the VM's start back-off."""
    transitions = (vmi.get("status") or {}).get("phaseTransitionTimestamps") or []
    return any(transition["phase"] == "Running" for transition in transitions)


async def _make_launcher(stage: Stage, vmi: Json) -> float | None:
    """Make the pod, and tell of it before listing it: a real one does not see its own pod yet (R28)."""
    try:
        await stage.create(PODS, launcher_pod(vmi))
    except Forbidden as refusal:  # quota or admission
        await _write_pending(stage, vmi, refusal)
        return PENDING_RETRY_S
    ready = {**_GUEST_NOT_RUNNING, "lastProbeTime": stage.now, "lastTransitionTime": stage.now}
    passed = (vmi.get("status") or {}).get("phaseTransitionTimestamps") or []
    reached = {"phase": "Scheduling", "phaseTransitionTimestamp": stage.now}
    status = {"phase": "Scheduling", "phaseTransitionTimestamps": [*passed, reached], "conditions": [ready]}
    await stage.patch(VIRTUAL_MACHINE_INSTANCES, vmi, {"status": status})
    return None


async def _write_pending(stage: Stage, vmi: Json, refusal: Forbidden) -> None:
    why = {"type": "Synchronized", "status": "False", "reason": "FailedCreate", "message": refusal.message}
    times = {"lastProbeTime": stage.now, "lastTransitionTime": stage.now}
    conditions = with_condition((vmi.get("status") or {}).get("conditions"), {**why, **times})
    change: Json = {"phase": "Pending", "conditions": conditions}
    if phase_of(vmi) != "Pending":
        change["phaseTransitionTimestamps"] = [{"phase": "Pending", "phaseTransitionTimestamp": stage.now}]
    await stage.patch(VIRTUAL_MACHINE_INSTANCES, vmi, {"status": change})


async def _tend_ending(stage: Stage, vmi: Json, pods: list[Json]) -> None:
    """Take the launchers along; when they have gone, let the VMI go."""
    is_deleted = bool(vmi["metadata"].get("deletionTimestamp"))
    for pod in pods if is_deleted else []:
        if not pod["metadata"].get("deletionTimestamp"):
            await stage.delete(PODS, pod)
    handler_ends_it = phase_of(vmi) in ("Scheduled", "Running")
    ends = is_deleted and not pods and phase_of(vmi) not in FINAL
    await _write_status(stage, vmi, pods, "Failed" if ends else phase_of(vmi))
    newest = stage.cache.get(VIRTUAL_MACHINE_INSTANCES, vmi["metadata"]["name"], vmi["metadata"]["namespace"])
    if is_deleted and newest and not pods and (phase_of(newest) in FINAL or not handler_ends_it):
        await stage.patch(VIRTUAL_MACHINE_INSTANCES, newest, {"metadata": {"finalizers": None}})


def _next_phase(vmi: Json, pods: list[Json]) -> str:
    phase = phase_of(vmi)
    pod = pods[-1] if pods else None
    if phase in _STARTING:
        if pod is None or pod["metadata"].get("deletionTimestamp") or _pod_phase(pod) in FINAL:
            return "Failed"
        return "Scheduled" if _is_ready_on_node(pod) else "Scheduling"
    return phase if pod is not None else "Failed"


async def _write_status(stage: Stage, vmi: Json, pods: list[Json], phase: str) -> None:
    old = vmi.get("status") or {}
    status: Json = {"phase": phase} if phase else {}
    status["activePods"] = {p["metadata"]["uid"]: p["spec"].get("nodeName", "") for p in pods} or None
    status["conditions"] = _conditions(stage, vmi, pods, phase)
    labels: Json = {}
    if phase != phase_of(vmi) and phase_of(vmi) in _STARTING:  # later ones are virt-handler's to note
        reached = {"phase": phase, "phaseTransitionTimestamp": stage.now}
        status["phaseTransitionTimestamps"] = [*(old.get("phaseTransitionTimestamps") or []), reached]
    if phase == "Scheduled":
        status["nodeName"] = pods[-1]["spec"]["nodeName"]
        labels = {_NODE_NAME: status["nodeName"]}
    changed = {name: value for name, value in status.items() if old.get(name) != value}
    if changed:
        patch: Json = {"status": changed} | ({"metadata": {"labels": labels}} if labels else {})
        await stage.patch(VIRTUAL_MACHINE_INSTANCES, vmi, patch)


def _conditions(stage: Stage, vmi: Json, pods: list[Json], phase: str) -> list[Json]:
    conditions = list((vmi.get("status") or {}).get("conditions") or [])
    ready = _ready(pods, phase)
    times = {"lastProbeTime": stage.now, "lastTransitionTime": stage.now}
    conditions = with_condition(conditions, {"type": "Ready", **ready, **times})
    scheduled = condition((pods[-1].get("status") or {}).get("conditions"), "PodScheduled") if pods else None
    if scheduled and scheduled["status"] == "True":
        conditions = [c for c in conditions if c["type"] != "PodScheduled"]
    elif scheduled and condition(conditions, "PodScheduled") is None:  # added when absent, never updated
        conditions.append(scheduled)
    return conditions


def _ready(pods: list[Json], phase: str) -> Json:
    if not pods:
        return {
            "status": "False",
            "reason": "PodNotExists",
            "message": "virt-launcher pod has not yet been scheduled",
        }
    if pods[-1]["metadata"].get("deletionTimestamp") or _pod_phase(pods[-1]) in FINAL:
        return {"status": "False", "reason": "PodTerminating", "message": "virt-launcher pod is terminating"}
    if phase != "Running":
        return _GUEST_NOT_RUNNING
    is_ready = condition((pods[-1].get("status") or {}).get("conditions"), "Ready")
    return {"status": is_ready["status"] if is_ready else "False"}


async def _mark_launchers(stage: Stage, vmi: Json, pods: list[Json]) -> None:
    """Open the readiness gate; label the launcher with its node once the VMI is scheduled there."""
    node = (vmi.get("status") or {}).get("nodeName")
    for pod in pods:
        conditions = (pod.get("status") or {}).get("conditions")
        if condition(conditions, _UNPAUSED["type"]) is None:
            unpaused = {**_UNPAUSED, "lastProbeTime": stage.now, "lastTransitionTime": stage.now}
            change = {"status": {"conditions": with_condition(conditions, unpaused)}}
            await stage.patch(PODS, pod, change, MERGE_STATUS)
        elif node and pod["spec"].get("nodeName") == node and _NODE_NAME not in pod["metadata"]["labels"]:
            await stage.patch(PODS, pod, {"metadata": {"labels": {_NODE_NAME: node}}})


def _pod_phase(pod: Json) -> str:
    return str((pod.get("status") or {}).get("phase") or "")


def _is_ready_on_node(pod: Json) -> bool:
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    return _pod_phase(pod) == "Running" and any(s["name"] == "compute" and s.get("ready") for s in statuses)
