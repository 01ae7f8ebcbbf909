"""What the stories do with VMs, and what they read of them."""

from __future__ import annotations

from collections.abc import Mapping

from kube.errors import NotFound
from kube.port import Json, ObjectKey, Selection, list_all
from model.names import GATE
from model.resources import NODES, PODS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES
from simulator.objects import gpu_vm
from tests.kubevirt.judge import pins_of
from tests.recordings.test_real_cluster import is_in_use
from tests.stories.conftest import Stage
from tests.stories.test_placing import runs

UNTIL_QUIET_S = 8.0
"""Many times what a move or a restart takes once something causes it."""


async def add_node(stage: Stage, name: str, units: int) -> str:
    """A node that may be used: a real API server taints a new one until its first heartbeat."""
    node = await stage.add_node(name, units)

    async def may_be_used() -> bool:
        return is_in_use(await stage.client.get(ObjectKey(NODES, node)))

    await stage.until(f"{node} is in use", may_be_used)
    return node


async def start_vm(
    stage: Stage, name: str, units: int = 1, *, spec: Mapping[str, object] | None = None, claims: str = ""
) -> None:
    """A VM of so many units; `spec` goes over its VMI's, except `runStrategy`, which is the VM's."""
    vm = gpu_vm(name, {stage.resource: units}, stage.namespace)
    given = dict(spec or {})
    vm["spec"]["runStrategy"] = given.pop("runStrategy", "Always")
    vm["spec"]["template"]["spec"] |= given
    if claims:
        vm["spec"]["template"]["metadata"]["annotations"] = {"gpu.cozystack.io/claims": claims}
    await stage.client.create(VIRTUAL_MACHINES, vm)


async def start_running(stage: Stage, name: str, units: int = 1, **more: object) -> Json:
    """The VM's VMI, once the VM runs."""
    await start_vm(stage, name, units, **more)  # type: ignore[arg-type]
    await stage.until(f"{name} runs", lambda: runs(stage, name))
    return await vmi_of(stage, name)


async def vm_of(stage: Stage, name: str) -> Json:
    """The VM."""
    return await stage.client.get(stage.key(VIRTUAL_MACHINES, name))


async def vmi_of(stage: Stage, name: str) -> Json:
    """The VMI, or an empty object."""
    try:
        return await stage.client.get(stage.key(VIRTUAL_MACHINE_INSTANCES, name))
    except NotFound:
        return {}


async def says(stage: Stage, name: str, status: str) -> bool:
    """Whether the VM calls itself so."""
    return bool(((await vm_of(stage, name)).get("status") or {}).get("printableStatus") == status)


async def launchers_of(stage: Stage, name: str) -> list[Json]:
    """The VM's launchers, of its present VMI and of earlier ones."""
    pods = (await list_all(stage.client, PODS, Selection(stage.namespace))).items
    return [pod for pod in pods if _owner_of(pod) == name]


async def held_by(stage: Stage, vm: str) -> list[tuple[str, int]]:
    """Node and units of each claim that the VM has Bound."""
    claims = [claim for claim in await stage.claims() if (claim.get("status") or {}).get("vm")]
    return sorted(
        (claim["status"]["nodeName"], claim["spec"]["units"])
        for claim in claims
        if claim["status"]["vm"]["name"] == vm and claim["status"]["phase"] == "Bound"
    )


async def runs_on(stage: Stage, vm: str, node: str, units: int = 1) -> None:
    """Claims, pin, pod and VMI agree on where the VM runs."""
    (pod,) = await launchers_of(stage, vm)
    vmi = await vmi_of(stage, vm)
    assert await held_by(stage, vm) == [(node, units)]
    assert pins_of(pod) == {node}
    assert pod["spec"]["nodeName"] == node
    assert (vmi["status"]["nodeName"], vmi["status"]["phase"]) == (node, "Running")
    assert list(vmi["status"]["activePods"]) == [pod["metadata"]["uid"]]


async def runs_anew(stage: Stage, vm: str, vmi: Json) -> bool:
    """Whether the VM runs with another VMI than this."""
    new = await vmi_of(stage, vm)
    return bool(new) and new["metadata"]["uid"] != vmi["metadata"]["uid"] and await runs(stage, vm)


async def is_still(stage: Stage, vm: str, vmi: Json) -> None:
    """The VM runs as it did: the same VMI, on the same node, with no failed start behind it."""
    now = await vmi_of(stage, vm)
    assert now["metadata"]["uid"] == vmi["metadata"]["uid"]
    assert now["status"]["phase"] == "Running"
    assert not now["metadata"].get("deletionTimestamp")
    await runs_on(stage, vm, vmi["status"]["nodeName"])


async def is_gated(stage: Stage, vm: str) -> bool:
    """Whether the VM has one launcher, and that waits behind our gate alone."""
    gates = [
        [g["name"] for g in pod["spec"].get("schedulingGates", [])] for pod in await launchers_of(stage, vm)
    ]
    return gates == [[GATE]]


async def halt(stage: Stage, vm: str) -> None:
    """Stop the VM on purpose."""
    await stage.client.patch(stage.key(VIRTUAL_MACHINES, vm), {"spec": {"runStrategy": "Halted"}})


def _owner_of(pod: Json) -> str:
    return str((pod["metadata"].get("ownerReferences") or [{"name": ""}])[0]["name"])


async def change_node(stage: Stage, node: str, change: Json) -> None:
    """A merge patch on a node."""
    await stage.client.patch(ObjectKey(NODES, node), change)
