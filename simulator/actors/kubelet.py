"""The kubelets of all simulated nodes: heartbeats, admission, running and ending pods, the device plugin.

A node takes part when it carries the label `KUBELET`. Two annotations of it are knobs: `REFUSE` refuses each
new pod that asks for an extended resource with that reason, `DEAD` stops the kubelet. One of a pod: with
`LINGER` it takes the whole of its grace to end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from kube.errors import ApiError, NotFound
from kube.port import MERGE_STATUS, DeleteOptions, Json, ObjectKey
from model.instants import parse_rfc3339
from model.resource_names import is_extended
from model.resources import LEASES, NODES, PODS, Resource
from simulator.actors.acting import Stage, condition, with_condition
from simulator.actors.quantities import allocatable, requests

KUBELET = "kubelet.simulator/plays"
REFUSE = "kubelet.simulator/refuse"
DEAD = "kubelet.simulator/dead"
LINGER = "kubelet.simulator/lingers"
HEARTBEAT_S = 8.0
"""Enough for a node monitor with a grace of 12 s; real kubelets beat every 10 s against 40 s."""
_VIRTUAL = "devices.kubevirt.io/"
_ENDED = ("Succeeded", "Failed")


@dataclass(slots=True)
class Kubelet:
    """Plays the kubelet of every node that carries the label."""

    resources: tuple[Resource, ...] = (NODES, PODS)
    _beaten_ms: dict[str, int] = field(default_factory=dict)

    async def act(self, stage: Stage) -> float | None:
        """See Actor."""
        pods = sorted(stage.cache.of(PODS), key=_age)
        nodes = [node for node in stage.cache.of(NODES) if is_played(node)]
        names = {node["metadata"]["name"] for node in nodes}
        self._beaten_ms = {name: at_ms for name, at_ms in self._beaten_ms.items() if name in names}

        async def tend(node: Json) -> float:
            wait_s = await self._beat(stage, node)
            later_s = await _tend_pods(stage, node, [p for p in pods if _is_on(p, node)])
            return wait_s if later_s is None else min(wait_s, later_s)

        return await stage.attend(NODES, nodes, tend)

    async def _beat(self, stage: Stage, node: Json) -> float:
        """Renew the Ready condition and the Lease when due; returns in how many seconds it is due again."""
        name = node["metadata"]["name"]
        since_s = (stage.clock() - self._beaten_ms.get(name, -(10**9))) / 1000
        if since_s < HEARTBEAT_S:
            return HEARTBEAT_S - since_s
        self._beaten_ms[name] = stage.clock()
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "kubelet is posting ready status",
            "lastTransitionTime": stage.now,
        }
        listed = (node.get("status") or {}).get("conditions") or []
        # What the node's lifecycle had to call Unknown is known again: this kubelet reports Ready alone.
        old = [c for c in listed if c["type"] == "Ready" or c["status"] != "Unknown"]
        beat = [
            {**c, "lastHeartbeatTime": stage.now} if c["type"] == "Ready" else c
            for c in with_condition(old, ready)
        ]
        await stage.patch(NODES, node, {"status": {"conditions": beat}}, MERGE_STATUS)
        await _renew_lease(stage, name)
        return HEARTBEAT_S


def knob(obj: Json, name: str) -> str:
    """The value of an annotation, or the empty string."""
    return str((obj["metadata"].get("annotations") or {}).get(name, ""))


async def _renew_lease(stage: Stage, name: str) -> None:
    key = ObjectKey(LEASES, name, "kube-node-lease")
    renewed = stage.now.removesuffix("Z") + ".000000Z"
    spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": renewed}
    try:
        await stage.client.patch(key, {"spec": spec})
    except NotFound:
        lease = {"metadata": {"name": name, "namespace": "kube-node-lease"}, "spec": spec}
        try:
            await stage.client.create(LEASES, lease)
        except ApiError:
            return  # the namespace is not there yet; the next beat tries again


async def _tend_pods(stage: Stage, node: Json, pods: list[Json]) -> float | None:
    """In the order of their creation: the first ones have the room."""
    free = allocatable(node)

    async def tend(pod: Json) -> float | None:
        if pod["metadata"].get("deletionTimestamp"):
            return await _end(stage, pod, free)
        phase = (pod.get("status") or {}).get("phase")
        if phase in _ENDED:
            return None
        wanted = requests(pod)
        reason = "" if phase == "Running" else _why_refused(node, free, wanted)
        if reason:
            await _refuse(stage, pod, reason)
            return None
        for name, amount in wanted.items():
            free[name] = free.get(name, Fraction(0)) - amount
        if phase != "Running":
            await _run(stage, pod)
        elif _is_called_unready(pod):
            await _report_ready(stage, pod)
        return None

    return await stage.attend(PODS, pods, tend)


async def _end(stage: Stage, pod: Json, free: dict[str, Fraction]) -> float | None:
    """At once, or when its grace is over; until then it has what it has."""
    at_ms = parse_rfc3339(pod["metadata"]["deletionTimestamp"]) or 0
    left_s = (at_ms - stage.clock()) / 1000
    if knob(pod, LINGER) and left_s > 0 and (pod.get("status") or {}).get("phase") == "Running":
        for name, amount in requests(pod).items():
            free[name] = free.get(name, Fraction(0)) - amount
        return left_s
    await stage.delete(PODS, pod, DeleteOptions(grace_s=0))
    return None


def _why_refused(node: Json, free: dict[str, Fraction], wanted: dict[str, Fraction]) -> str:
    """The first shortage, or the knob; a resource that the node does not name at all is not checked."""
    if knob(node, REFUSE) and any(is_extended(name) and not name.startswith(_VIRTUAL) for name in wanted):
        return knob(node, REFUSE)
    order = sorted(wanted, key=lambda name: (is_extended(name), name))
    short = [name for name in order if name in free and free[name] < wanted[name]]
    return f"OutOf{short[0]}" if short else ""


async def _refuse(stage: Stage, pod: Json, reason: str) -> None:
    if reason.startswith("OutOf"):
        text = f"Node didn't have enough resource: {reason.removeprefix('OutOf')}"
    else:
        text = "Allocate failed due to no healthy devices present, which is unexpected"
    status = {"phase": "Failed", "reason": reason, "message": f"Pod was rejected: {text}"}
    await stage.patch(PODS, pod, {"status": status | {"startTime": stage.now}}, MERGE_STATUS)


def _is_called_unready(pod: Json) -> bool:
    """Others say so of all pods of a node that they do not hear from."""
    ready = condition(pod["status"].get("conditions"), "Ready")
    return ready is not None and ready["status"] != "True"


async def _report_ready(stage: Stage, pod: Json) -> None:
    conditions = _with_true(stage, pod, ("Ready",))
    await stage.patch(PODS, pod, {"status": {"conditions": conditions}}, MERGE_STATUS)


def _with_true(stage: Stage, pod: Json, names: tuple[str, ...]) -> list[Json]:
    """The pod's conditions with some of them true since now."""
    conditions: list[Json] = (pod.get("status") or {}).get("conditions") or []
    for name in names:
        true = {"type": name, "status": "True", "lastProbeTime": None, "lastTransitionTime": stage.now}
        conditions = with_condition(conditions, true)
    return conditions


async def _run(stage: Stage, pod: Json) -> None:
    now = stage.now
    names = ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready", "PodScheduled")
    status = {
        "phase": "Running",
        "startTime": now,
        "hostIP": "10.0.0.1",
        "podIP": "10.1.0.7",
        "podIPs": [{"ip": "10.1.0.7"}],
        "conditions": _with_true(stage, pod, names),
        "containerStatuses": [_started(c, now) for c in pod["spec"]["containers"]],
        "initContainerStatuses": [_started(c, now) for c in pod["spec"].get("initContainers") or []],
    }
    await stage.patch(PODS, pod, {"status": status}, MERGE_STATUS)


def _started(container: Json, now: str) -> Json:
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "simulated",
        "containerID": f"simulated://{container['name']}",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": now}},
    }


def is_played(node: Json) -> bool:
    """Whether a kubelet of ours lives there now."""
    return KUBELET in (node["metadata"].get("labels") or {}) and not knob(node, DEAD)


def _is_on(pod: Json, node: Json) -> bool:
    return bool(pod["spec"].get("nodeName") == node["metadata"]["name"])


def _age(pod: Json) -> tuple[str, str]:
    return (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"])
