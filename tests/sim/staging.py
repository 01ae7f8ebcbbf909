"""Carries the acts of a script out on the simulated cluster, as tenants, operators and hardware do."""

from __future__ import annotations

import asyncio
import inspect
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kube.errors import ApiError
from kube.port import MERGE_STATUS, DeleteOptions, Json, ObjectKey
from model import resources as r
from model.resources import Resource
from simulator.actors.kubelet import DEAD, LINGER, REFUSE
from simulator.apiserver.served import KUBEVIRT, MIGRATIONS
from simulator.apiserver.server import ApiServer
from simulator.objects import gpu_node, gpu_vm
from tests.sim import forging
from tests.sim.script import Act
from tests.sim.view import CLASS, ORDERS, controller, is_forged, name

MEANT = {
    " vm": r.VIRTUAL_MACHINES,
    " node": r.NODES,
    "cordon": r.NODES,
    "taint": r.NODES,
    "refuse": r.NODES,
    "plugin down": r.NODES,
    "launcher": r.VIRTUAL_MACHINE_INSTANCES,
    "forge claim": r.VIRTUAL_MACHINE_INSTANCES,
    " order": r.GPU_CLAIMS,
}
"""What acts that end so are done to."""
SQUAT_LOOKS = 2000
"""Ten seconds."""
TAINT = "maintenance"


@dataclass(slots=True)
class Stage:
    """The cluster, and what is known of it that the API server does not say."""

    server: ApiServer
    offered: dict[str, dict[str, str]] = field(default_factory=dict)
    """What each node's device plugin offers when it is up."""
    counts: Counter[str] = field(default_factory=Counter)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def do(self, act: Act) -> None:
        """Carry it out; what the API server refuses, or what is not there, is no act."""
        method: Callable[..., Any] = getattr(self, "_" + act.do.replace(" ", "_"))
        to = {"gpu_class" if key == "class" else key: value for key, value in act.to.items()}
        to |= self._instead(act.do, to)
        try:
            result = method(**to)
            if inspect.isawaitable(result):
                await result
        except ApiError:
            self.counts["acts refused"] += 1
        else:
            self.counts[act.do] += 1

    def _instead(self, do: str, to: dict[str, Any]) -> dict[str, Any]:
        """Another one where nobody has the name, so that few acts are for nothing."""
        of = next((kind for word, kind in MEANT.items() if do.endswith(word)), None)
        if do.startswith("create") or of is None or not self.server.kinds.by_name.get(of.full_name):
            return {}
        there = [(one["metadata"].get("namespace", ""), name(one)) for one in self.server.store.scan(of)]
        if not there or (to.get("ns", ""), to["name"]) in there:
            return {}
        ns, found = there[zlib.crc32(to["name"].encode()) % len(there)]
        return {"name": found} | ({"ns": ns} if ns else {})

    def knows(self, act: Act) -> bool:
        return hasattr(self, "_" + act.do.replace(" ", "_"))

    async def calm_down(self) -> None:
        """The hardware is well again, what tenants run besides VMs is over, KubeVirt is there."""
        self._kubevirt_arrives()
        for node in list(self.server.store.scan(r.NODES)):
            await self._revive_node(name(node))
            await self._accept(name(node))
            await self._uncordon(name(node))
            await self._untaint(name(node))
            await self._plugin_up(name(node))
        for pod in list(self.server.store.scan(r.PODS)):
            if not controller(pod, "VirtualMachineInstance") or is_forged(pod):
                with suppress(ApiError):
                    key = ObjectKey(r.PODS, name(pod), pod["metadata"]["namespace"])
                    await self.server.delete(key, DeleteOptions(grace_s=0))

    # The operator's side.

    async def _create_namespace(self, name: str, team: str) -> None:
        await self.server.create(r.NAMESPACES, {"metadata": {"name": name, "labels": {"team": team}}})

    async def _label_namespace(self, name: str, team: str) -> None:
        await self._patch(r.NAMESPACES, name, {"metadata": {"labels": {"team": team}}})

    async def _delete_namespace(self, name: str) -> None:
        """And make it again later, as tenants do."""
        await self.server.delete(ObjectKey(r.NAMESPACES, name))
        self._later(40.0, self._create_namespace, name, "r")

    async def _create_class(self, name: str, resource: str, *, default: bool) -> None:
        spec: Json = {"resourceName": resource, "default": default}
        if name == "h2":
            spec["nodeSelector"] = {"zone": "b"}
        if name == "t":
            spec["tolerations"] = [{"key": TAINT, "operator": "Exists", "effect": "NoSchedule"}]
        await self.server.create(r.GPU_CLASSES, {"metadata": {"name": name}, "spec": spec})

    async def _delete_class(self, name: str) -> None:
        """And sell again under its name, once it has gone."""
        resource = str((await self.server.get(ObjectKey(r.GPU_CLASSES, name)))["spec"]["resourceName"])
        await self.server.delete(ObjectKey(r.GPU_CLASSES, name))
        self._later(30.0, partial(self._create_class, name, resource, default=name == "h"))

    async def _set_default(self, name: str, *, default: bool) -> None:
        await self._patch(r.GPU_CLASSES, name, {"spec": {"default": default}})

    async def _set_budget(self, name: str, team: str, classes: dict[str, int], parent: str) -> None:
        labels = {"matchLabels": {"team": team}} if team else {}
        spec = {"classes": classes, "parent": parent, "namespaceSelector": labels}
        if self.server.store.read(r.GPU_BUDGETS, ("", name)) is None:
            await self.server.create(r.GPU_BUDGETS, {"metadata": {"name": name}, "spec": spec})
        else:
            await self._patch(r.GPU_BUDGETS, name, {"spec": spec | {"namespaceSelector": labels or None}})

    async def _delete_budget(self, name: str) -> None:
        await self.server.delete(ObjectKey(r.GPU_BUDGETS, name))

    # Hardware.

    async def _create_node(self, name: str, gpus: dict[str, int], zone: str) -> None:
        await self.server.create(r.NODES, gpu_node(name, gpus, {"zone": zone}))
        self.offered[name] = {resource: str(units) for resource, units in gpus.items()}

    async def _delete_node(self, name: str) -> None:
        await self.server.delete(ObjectKey(r.NODES, name))

    async def _replace_node(self, name: str) -> None:
        """Other hardware under the same name, one unit smaller."""
        await self.server.delete(ObjectKey(r.NODES, name))
        gpus = {resource: max(1, int(units) - 1) for resource, units in self.offered.get(name, {}).items()}
        self._later(20.0, self._create_node, name, gpus, "a")

    async def _kill_node(self, name: str) -> None:
        await self._annotate(name, DEAD, "yes")

    async def _revive_node(self, name: str) -> None:
        await self._annotate(name, DEAD, None)

    async def _cordon(self, name: str) -> None:
        await self._patch(r.NODES, name, {"spec": {"unschedulable": True}})

    async def _uncordon(self, name: str) -> None:
        await self._patch(r.NODES, name, {"spec": {"unschedulable": None}})

    async def _taint(self, name: str, effect: str) -> None:
        await self._set_taint(name, [{"key": TAINT, "value": "yes", "effect": effect}])

    async def _untaint(self, name: str) -> None:
        await self._set_taint(name, [])

    async def _plugin_down(self, name: str) -> None:
        gone = dict.fromkeys(self.offered.get(name, {}), "0")
        await self._patch(r.NODES, name, {"status": {"allocatable": gone}}, MERGE_STATUS)

    async def _plugin_up(self, name: str) -> None:
        offered = dict(self.offered.get(name, {}))
        await self._patch(r.NODES, name, {"status": {"allocatable": offered}}, MERGE_STATUS)

    async def _refuse(self, name: str) -> None:
        await self._annotate(name, REFUSE, "UnexpectedAdmissionError")

    async def _accept(self, name: str) -> None:
        await self._annotate(name, REFUSE, None)

    async def _relabel_node(self, name: str, zone: str) -> None:
        await self._patch(r.NODES, name, {"metadata": {"labels": {"zone": zone}}})

    # Tenants.

    async def _create_vm(self, **to: Any) -> None:
        vm = gpu_vm(to["name"], to["gpus"], to["ns"])
        vm["spec"]["runStrategy"] = to["strategy"]
        notes = {ORDERS: to["orders"], CLASS: to["gpu_class"]}
        template = vm["spec"]["template"]
        template["metadata"]["annotations"] = {key: value for key, value in notes.items() if value}
        template["spec"]["terminationGracePeriodSeconds"] = 10
        template["spec"]["nodeSelector"] = {"zone": to["zone"]} if to.get("zone") else {}
        template["spec"]["domain"]["cpu"]["cores"] = to.get("cores", 2)
        if to.get("lingers"):
            template["metadata"]["annotations"][LINGER] = "yes"
        if to.get("disk"):
            disk = f"disk-{to['disk']}"
            template["spec"]["volumes"] = [{"name": "d", "persistentVolumeClaim": {"claimName": disk}}]
            await self._create_disk(to["ns"], disk, to["disk"])
        await self.server.create(r.VIRTUAL_MACHINES, vm)
        if to.get("squatted"):
            self._later(0.0, self._squat, to["ns"], to["name"], to["squatted"])

    async def _create_disk(self, ns: str, disk: str, node: str) -> None:
        """A volume that only one node reaches, bound; one on no node stays missing."""
        if node == "missing" or self.server.store.read(r.PERSISTENT_VOLUME_CLAIMS, (ns, disk)):
            return
        volume, claim = forging.local_volume(ns, disk, node)
        if self.server.store.read(r.PERSISTENT_VOLUMES, ("", volume["metadata"]["name"])) is None:
            await self.server.create(r.PERSISTENT_VOLUMES, volume)
        await self.server.create(r.PERSISTENT_VOLUME_CLAIMS, claim)
        bound = {"status": {"phase": "Bound"}}
        await self._patch(r.PERSISTENT_VOLUME_CLAIMS, disk, bound, MERGE_STATUS, ns=ns)

    async def _halt_vm(self, ns: str, name: str) -> None:
        await self._patch(r.VIRTUAL_MACHINES, name, {"spec": {"runStrategy": "Halted"}}, ns=ns)

    async def _run_vm(self, ns: str, name: str) -> None:
        await self._patch(r.VIRTUAL_MACHINES, name, {"spec": {"runStrategy": "Always"}}, ns=ns)

    async def _restart_vm(self, ns: str, name: str) -> None:
        await self.server.delete(ObjectKey(r.VIRTUAL_MACHINE_INSTANCES, name, ns))

    async def _delete_vm(self, ns: str, name: str) -> None:
        await self.server.delete(ObjectKey(r.VIRTUAL_MACHINES, name, ns))

    async def _migrate_vm(self, ns: str, name: str) -> None:
        meta = {"generateName": f"{name}-", "namespace": ns}
        await self.server.create(MIGRATIONS, {"metadata": meta, "spec": {"vmiName": name}})

    async def _crash_vm(self, ns: str, name: str) -> None:
        await self._end_launcher(ns, name, "Failed")

    async def _shut_down_vm(self, ns: str, name: str) -> None:
        await self._end_launcher(ns, name, "Succeeded")

    async def _name_orders(self, ns: str, name: str, orders: str) -> None:
        change = {"spec": {"template": {"metadata": {"annotations": {ORDERS: orders or None}}}}}
        await self._patch(r.VIRTUAL_MACHINES, name, change, ns=ns)

    async def _create_order(self, ns: str, name: str, gpu_class: str, units: int) -> None:
        meta = {"name": name, "namespace": ns}
        await self.server.create(
            r.GPU_CLAIMS, {"metadata": meta, "spec": {"className": gpu_class, "units": units}}
        )

    async def _delete_order(self, ns: str, name: str) -> None:
        await self.server.delete(ObjectKey(r.GPU_CLAIMS, name, ns))

    async def _create_pod(self, ns: str, name: str, for_s: float, **to: Any) -> None:
        await self.server.create(r.PODS, forging.raw_pod(ns, name, to["gpus"], to["node"]))
        if for_s:
            self._later(for_s, self._delete_pod, ns, name)

    async def _delete_pod(self, ns: str, name: str) -> None:
        await self.server.delete(ObjectKey(r.PODS, name, ns))

    async def _forge_launcher(self, ns: str, name: str, gpus: dict[str, int]) -> None:
        vmi = self.server.store.read(r.VIRTUAL_MACHINE_INSTANCES, (ns, name))
        if vmi is not None:
            await self.server.create(r.PODS, forging.launcher(vmi, gpus))

    async def _forge_claim(self, ns: str, name: str, gpu_class: str) -> None:
        vmi = self.server.store.read(r.VIRTUAL_MACHINE_INSTANCES, (ns, name))
        if vmi is not None:
            await self.server.create(r.GPU_CLAIMS, forging.claim(vmi, gpu_class))

    async def _squat(self, ns: str, name: str, gpu_class: str) -> None:
        """Whoever reads the VMI first knows what its claim will be called."""
        for _ in range(SQUAT_LOOKS):
            if self.server.store.read(r.VIRTUAL_MACHINE_INSTANCES, (ns, name)) is not None:
                await self._forge_claim(ns, name, gpu_class)
                return
            await asyncio.sleep(0.005)

    async def _forge_owner(self, ns: str, name: str, vm: str) -> None:
        vmi = self.server.store.read(r.VIRTUAL_MACHINE_INSTANCES, (ns, vm))
        if vmi is not None:
            await self._patch(
                r.GPU_CLAIMS, name, {"metadata": {"ownerReferences": [forging.owner(vmi)]}}, ns=ns
            )

    # KubeVirt and the API server.

    def _kubevirt_arrives(self) -> None:
        self.server.kinds.add(*(one for one in KUBEVIRT if one.full_name not in self.server.kinds.by_name))

    def _kubevirt_away(self, for_s: float) -> None:
        """Its kinds are not served for a while; their objects stay (a CRD is never deleted by an upgrade)."""
        for one in KUBEVIRT:
            self.server.kinds.by_name.pop(one.full_name, None)
        self._later(for_s, _nothing_but, self._kubevirt_arrives)

    def _compact(self) -> None:
        self.server.store.compact()

    def _later(self, seconds: float, do: Callable[..., Any], *args: Any) -> None:
        async def wait_and_do() -> None:
            await asyncio.sleep(seconds)
            with suppress(ApiError):
                await do(*args)

        task = asyncio.ensure_future(wait_and_do())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _end_launcher(self, ns: str, name: str, phase: str) -> None:
        vmi = self.server.store.read(r.VIRTUAL_MACHINE_INSTANCES, (ns, name))
        for pod in list(self.server.store.scan(r.PODS)):
            is_its = vmi and controller(pod, "VirtualMachineInstance") == vmi["metadata"]["uid"]
            if is_its and (pod.get("status") or {}).get("phase") == "Running":
                meta = pod["metadata"]
                await self._patch(
                    r.PODS, meta["name"], {"status": {"phase": phase}}, MERGE_STATUS, ns=meta["namespace"]
                )

    async def _annotate(self, node: str, key: str, value: str | None) -> None:
        await self._patch(r.NODES, node, {"metadata": {"annotations": {key: value}}})

    async def _set_taint(self, node: str, taints: list[Json]) -> None:
        live = await self.server.get(ObjectKey(r.NODES, node))
        others = [one for one in live["spec"].get("taints") or [] if one["key"] != TAINT]
        await self._patch(r.NODES, node, {"spec": {"taints": [*others, *taints] or None}})

    async def _patch(
        self, resource: Resource, name: str, change: Json, options: Any = None, ns: str = ""
    ) -> None:
        key = ObjectKey(resource, name, ns)
        if options is None:
            await self.server.patch(key, change)
        else:
            await self.server.patch(key, change, options)


async def _nothing_but(do: Callable[[], None]) -> None:
    do()
