"""virt-handler of every node: a scheduled VMI runs, and ends with its launcher."""

from __future__ import annotations

from dataclasses import dataclass

from kube.port import Json, Selection, list_all
from model.resources import NODES, PODS, VIRTUAL_MACHINE_INSTANCES, Resource
from simulator.actors.acting import Stage, with_condition
from simulator.actors.kubelet import is_played
from simulator.actors.vmi_controller import phase_of


@dataclass(slots=True)
class VirtHandler:
    """Moves VMIs from Scheduled to Running, and to their final phase when their launcher has gone."""

    resources: tuple[Resource, ...] = (NODES, PODS, VIRTUAL_MACHINE_INSTANCES)

    async def act(self, stage: Stage) -> float | None:
        """See Actor."""
        vmis = stage.cache.of(VIRTUAL_MACHINE_INSTANCES)
        return await stage.attend(VIRTUAL_MACHINE_INSTANCES, vmis, lambda vmi: _tend(stage, vmi))


def _handles(stage: Stage, vmi: Json) -> bool:
    node = stage.cache.get(NODES, vmi["status"].get("nodeName", ""))
    return node is not None and is_played(node)


async def _tend(stage: Stage, vmi: Json) -> None:
    if phase_of(vmi) not in ("Scheduled", "Running") or not _handles(stage, vmi):
        return
    pods = {pod["metadata"]["uid"]: pod for pod in stage.cache.of(PODS)}
    listed = [pods[uid] for uid in vmi["status"].get("activePods") or {} if uid in pods]
    runs = any((pod.get("status") or {}).get("phase") == "Running" for pod in listed)
    if not runs and not await _runs_unseen(stage, vmi):
        await _reach(stage, vmi, "Succeeded" if vmi["metadata"].get("deletionTimestamp") else "Failed")
    elif runs and phase_of(vmi) == "Scheduled" and not vmi["metadata"].get("deletionTimestamp"):
        await _reach(stage, vmi, "Running")


async def _runs_unseen(stage: Stage, vmi: Json) -> bool:
    """Ask the API server before a VMI ends: its news may come before those of its launcher."""
    mine = Selection(vmi["metadata"]["namespace"], f"kubevirt.io/created-by={vmi['metadata']['uid']}")
    pods = (await list_all(stage.client, PODS, mine)).items
    return any((pod.get("status") or {}).get("phase") == "Running" for pod in pods)


async def _reach(stage: Stage, vmi: Json, phase: str) -> None:
    status = vmi["status"]
    reached = {"phase": phase, "phaseTransitionTimestamp": stage.now}
    change: Json = {
        "phase": phase,
        "phaseTransitionTimestamps": [*(status.get("phaseTransitionTimestamps") or []), reached],
    }
    if phase == "Running":
        times = {"lastProbeTime": stage.now, "lastTransitionTime": stage.now}
        conditions = with_condition(status.get("conditions"), {"type": "Ready", "status": "True", **times})
        change["conditions"] = with_condition(
            conditions,
            {
                "type": "LiveMigratable",
                "status": "False",
                "reason": "HostDeviceNotLiveMigratable",
                "message": "VMI uses a PCI host device",
                **times,
            },
        )
    await stage.patch(VIRTUAL_MACHINE_INSTANCES, vmi, {"status": change})
