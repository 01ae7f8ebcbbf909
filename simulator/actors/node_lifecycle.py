"""The node lifecycle controller: a node without heartbeat is Unknown, tainted, and in the end emptied."""

from __future__ import annotations

from dataclasses import dataclass

from kube.port import MERGE_STATUS, Json
from model.instants import parse_rfc3339
from model.resources import NODES, PODS, Resource
from simulator.actors.acting import Stage, condition, with_condition
from simulator.actors.filters import tolerating

_CHECK_S = 1.0
_UNREACHABLE = "node.kubernetes.io/unreachable"
_NOT_READY = "node.kubernetes.io/not-ready"
_OURS = (_UNREACHABLE, _NOT_READY)
_CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


@dataclass(slots=True)
class NodeLifecycle:
    """`grace_s` seconds without a heartbeat make a node Unknown (real default 50 s; 12 s in the lab)."""

    grace_s: float = 40.0
    resources: tuple[Resource, ...] = (NODES, PODS)

    async def act(self, stage: Stage) -> float | None:
        """See Actor."""

        async def tend(node: Json) -> None:
            await self._look_at(stage, node)
            await _evict(stage, node)

        wait_s = await stage.attend(NODES, stage.cache.of(NODES), tend)
        return _CHECK_S if wait_s is None else min(wait_s, _CHECK_S)

    async def _look_at(self, stage: Stage, node: Json) -> None:
        conditions = (node.get("status") or {}).get("conditions")
        ready = condition(conditions, "Ready")
        beaten_ms = parse_rfc3339((ready or {}).get("lastHeartbeatTime", "")) if ready else None
        if ready is None or beaten_ms is None:
            return
        if ready["status"] != "Unknown" and stage.clock() - beaten_ms > self.grace_s * 1000:
            for name in _CONDITIONS:
                unknown = {
                    "type": name,
                    "status": "Unknown",
                    "reason": "NodeStatusUnknown",
                    "message": "Kubelet stopped posting node status.",
                    "lastTransitionTime": stage.now,
                }
                if name == "Ready":
                    unknown["lastHeartbeatTime"] = ready["lastHeartbeatTime"]
                conditions = with_condition(conditions, unknown)
            node = await stage.patch(NODES, node, {"status": {"conditions": conditions}}, MERGE_STATUS)
            await _mark_pods_not_ready(stage, node)
        await _taint(stage, node)


async def _taint(stage: Stage, node: Json) -> None:
    """One patch per effect: NoSchedule and NoExecute are the business of two loops of the real one."""
    ready = condition((node.get("status") or {}).get("conditions"), "Ready")
    key = {"Unknown": _UNREACHABLE, "False": _NOT_READY}.get(ready["status"] if ready else "", "")
    for effect in ("NoSchedule", "NoExecute"):
        old = node["spec"].get("taints") or []
        kept = [t for t in old if t["key"] not in _OURS or t["effect"] != effect or t["key"] == key]
        if key and not any((t["key"], t["effect"]) == (key, effect) for t in kept):
            kept.append({"key": key, "effect": effect, "timeAdded": stage.now})
        if kept != old:
            node = await stage.patch(NODES, node, {"spec": {"taints": kept or None}})


async def _mark_pods_not_ready(stage: Stage, node: Json) -> None:
    for pod in _pods_on(stage, node):
        old = (pod.get("status") or {}).get("conditions")
        not_ready = {
            "type": "Ready",
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": stage.now,
        }
        await stage.patch(PODS, pod, {"status": {"conditions": with_condition(old, not_ready)}}, MERGE_STATUS)


async def _evict(stage: Stage, node: Json) -> None:
    """Delete pods that do not tolerate a NoExecute taint, or not for so long."""
    taints = [t for t in node["spec"].get("taints") or [] if t["effect"] == "NoExecute"]
    for pod in _pods_on(stage, node) if taints else []:
        if any(_has_run_out(taint, pod, stage.clock()) for taint in taints):
            await stage.delete(PODS, pod)


def _has_run_out(taint: Json, pod: Json, now_ms: int) -> bool:
    since_ms = parse_rfc3339(taint.get("timeAdded", "")) or now_ms
    tolerated = tolerating(taint, pod["spec"].get("tolerations") or [])
    if not tolerated:
        return True
    limits = [t["tolerationSeconds"] for t in tolerated if t.get("tolerationSeconds") is not None]
    return bool(limits) and now_ms >= since_ms + 1000 * min(limits)


def _pods_on(stage: Stage, node: Json) -> list[Json]:
    name = node["metadata"]["name"]
    return [
        pod
        for pod in stage.cache.of(PODS)
        if pod["spec"].get("nodeName") == name and not pod["metadata"].get("deletionTimestamp")
    ]
