"""Live migrations: a second launcher for a running VMI, and the hand-over once that one runs.

As in the facts on KubeVirt: the target pod is made like the first launcher, labelled with its migration; the
VMI's nodeName moves at the end, and the source ends. A target that fails or goes ends the migration alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from kube.port import MERGE_STATUS, Json
from model.resources import PODS, VIRTUAL_MACHINE_INSTANCES, Resource
from simulator.actors.acting import Stage
from simulator.actors.launcher_pod import launcher_pod
from simulator.actors.vmi_controller import FINAL, phase_of, pods_of
from simulator.apiserver.served import MIGRATIONS

JOB_LABEL = "kubevirt.io/migrationJobUID"
JOB_NAME = "kubevirt.io/migrationJobName"


@dataclass(slots=True)
class MigrationController:
    """Tends every migration; of several for one VMI the first goes on."""

    resources: tuple[Resource, ...] = (MIGRATIONS, VIRTUAL_MACHINE_INSTANCES, PODS)

    async def act(self, stage: Stage) -> float | None:
        """See Actor."""
        open_ones = [one for one in stage.cache.of(MIGRATIONS) if phase_of(one) not in FINAL]
        return await stage.attend(MIGRATIONS, open_ones, lambda one: _tend(stage, one))


async def _tend(stage: Stage, migration: Json) -> None:
    meta = migration["metadata"]
    vmi = stage.cache.get(VIRTUAL_MACHINE_INSTANCES, str(migration["spec"]["vmiName"]), meta["namespace"])
    target = next((pod for pod in stage.cache.of(PODS) if _job_of(pod) == meta["uid"]), None)
    if vmi is None or phase_of(vmi) != "Running" or vmi["metadata"].get("deletionTimestamp"):
        await _end(stage, migration, target, "Failed")
    elif target is None and phase_of(migration) == "":
        await _begin(stage, migration, vmi)
    elif target is None or target["metadata"].get("deletionTimestamp") or _phase(target) in FINAL:
        await _end(stage, migration, target, "Failed")
    elif _phase(target) == "Running":
        await _hand_over(stage, migration, vmi, target)


async def _begin(stage: Stage, migration: Json, vmi: Json) -> None:
    if any(_job_of(pod) and _phase(pod) not in FINAL for pod in pods_of(stage, vmi)):
        return await _end(stage, migration, None, "Failed")  # one at a time
    pod = launcher_pod(vmi)
    pod["metadata"]["labels"][JOB_LABEL] = migration["metadata"]["uid"]
    pod["metadata"]["annotations"][JOB_NAME] = migration["metadata"]["name"]
    await stage.create(PODS, pod)
    await stage.patch(MIGRATIONS, migration, {"status": {"phase": "Scheduling"}}, MERGE_STATUS)
    return None


async def _hand_over(stage: Stage, migration: Json, vmi: Json, target: Json) -> None:
    """First the VMI says where it is, then the source ends."""
    node = target["spec"]["nodeName"]
    state = {"completed": True, "targetNode": node, "sourceNode": vmi["status"].get("nodeName", "")}
    label = {"labels": {"kubevirt.io/nodeName": node}}
    change = {"metadata": label, "status": {"nodeName": node, "migrationState": state}}
    await stage.patch(VIRTUAL_MACHINE_INSTANCES, vmi, change)
    for pod in pods_of(stage, vmi):
        if pod["metadata"]["uid"] != target["metadata"]["uid"] and _phase(pod) not in FINAL:
            await stage.patch(PODS, pod, {"status": {"phase": "Succeeded"}}, MERGE_STATUS)
    await stage.patch(MIGRATIONS, migration, {"status": {"phase": "Succeeded"}}, MERGE_STATUS)


async def _end(stage: Stage, migration: Json, target: Json | None, phase: str) -> None:
    if target is not None and not target["metadata"].get("deletionTimestamp"):
        await stage.delete(PODS, target)
    await stage.patch(MIGRATIONS, migration, {"status": {"phase": phase}}, MERGE_STATUS)


def _job_of(pod: Json) -> str:
    return str((pod["metadata"].get("labels") or {}).get(JOB_LABEL, ""))


def _phase(pod: Json) -> str:
    return str((pod.get("status") or {}).get("phase") or "")
