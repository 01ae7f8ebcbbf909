"""gpubinder beside a simulated cluster in virtual time: the shipped loops, log in memory, no sockets."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from binder.bind import bind
from binder.consumer import KEEP, PassReport, Post
from binder.core.policy import Policy
from binder.leader import Leader, LeaseName
from eventlog.adapters.memory import MemoryLog
from eventlog.port import Retention
from ingest.backoff import Backoff
from ingest.causes import Cause
from ingest.heart import beat
from ingest.watcher import KindWatcher
from kube.port import Client, Json, ObjectKey
from model.kinds import WATCHED, WatchedKind
from model.resources import GPU_CLAIMS, GPU_CLASSES, NODES, PODS, VIRTUAL_MACHINES
from simulator.apiserver.server import ApiServer
from simulator.cluster import api_server, living
from simulator.objects import gpu_node, gpu_vm
from simulator.virtual_time import Clock, run_virtual

H100 = "nvidia.com/GH100_H100_SXM5_80GB"


@dataclass(slots=True)
class Told:
    """An observer that keeps what it is told."""

    passes: list[PassReport] = field(default_factory=list)
    terms: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    restarts: list[str] = field(default_factory=list)

    def pass_done(self, report: PassReport) -> None:
        self.passes.append(report)

    def entry_unreadable(self, entry_id: str, why: str) -> None:
        self.unreadable.append(why)

    def claim_unreadable(self, name: str, why: str) -> None:
        self.unreadable.append(name)

    def term_began(self, epoch: int) -> None:
        self.terms.append(f"began {epoch}")

    def term_ended(self, why: str) -> None:
        self.terms.append(f"ended: {why}")

    def event_seen(self, kind: str, change: str, *, is_appended: bool) -> None:
        pass

    def object_malformed(self, kind: str, raw: Json, why: str) -> None:
        self.unreadable.append(f"{kind} {raw['metadata']['name']}: {why}")

    def watch_restarted(self, kind: str, cause: Cause, why: str, wait_s: float) -> None:
        self.restarts.append(f"{kind}: {why}")

    def heard(self, kind: str) -> None:
        pass

    def listed(self, kind: str) -> None:
        pass


@dataclass(slots=True)
class Life:
    """One run: the cluster, the log, and processes of ours that come and go."""

    server: ApiServer
    log: MemoryLog
    clock: Clock
    told: Told = field(default_factory=Told)
    retention: Retention = KEEP

    @asynccontextmanager
    async def process(self, name: str = "one", client: Client | None = None) -> AsyncIterator[None]:
        """One `gpubinder up`; leaving the context is SIGTERM."""
        tasks = self.start(name, client)
        try:
            yield
        finally:
            await stop(tasks)

    def start(self, name: str, client: Client | None = None) -> list[asyncio.Task[None]]:
        """Start the loops; `client` may fail on purpose."""
        client = client or self.server
        leader = Leader(
            client, LeaseName("kube-system", "gpubinder-binder", name), self.clock, self.told.restarts.append
        )
        post = Post(client, self.log, leader, Policy(), self.clock, self.told, name, self.retention)
        loops = [self._watcher(client, kind, name).run() for kind in WATCHED]
        loops += [beat(self.log, name, self.clock), bind(post, self.told)]
        return [asyncio.create_task(loop) for loop in loops]

    def _watcher(self, client: Client, kind: WatchedKind, name: str) -> KindWatcher:
        backoff = Backoff(random.Random(f"{name} {kind.resource.kind}"))
        return KindWatcher(client, self.log, kind, name, self.clock, self.told, backoff)

    async def add_node(self, name: str, units: int) -> None:
        await self.server.create(NODES, gpu_node(name, {H100: units}))

    async def start_vm(self, name: str, units: int = 1) -> None:
        await self.server.create(VIRTUAL_MACHINES, gpu_vm(name, {H100: units}))

    async def halt_vm(self, name: str) -> None:
        key = ObjectKey(VIRTUAL_MACHINES, name, "default")
        await self.server.patch(key, {"spec": {"runStrategy": "Halted"}})

    async def until(self, holds: Callable[[], bool], limit_s: float = 120.0) -> None:
        """Let virtual time pass until it holds."""
        deadline = asyncio.get_running_loop().time() + limit_s
        while not holds():
            assert asyncio.get_running_loop().time() < deadline, self.describe()
            await asyncio.sleep(0.1)

    def vm_status(self, name: str) -> str:
        vms = {vm["metadata"]["name"]: vm for vm in self.server.store.scan(VIRTUAL_MACHINES)}
        return str((vms[name].get("status") or {}).get("printableStatus"))

    def claims(self) -> dict[str, Json]:
        """By the name of the VMI that owns them, or their own."""
        found = {}
        for claim in self.server.store.scan(GPU_CLAIMS):
            owners = claim["metadata"].get("ownerReferences") or [{"name": claim["metadata"]["name"]}]
            found[owners[0]["name"]] = claim
        return found

    def node_of(self, name: str) -> str:
        claim = self.claims().get(name, {})
        status = claim.get("status") or {}
        return str(status.get("nodeName", "")) if status.get("phase") == "Bound" else ""

    def check(self) -> None:
        """What must always hold: no unit twice, and pin and claim agree."""
        for node in self.server.store.scan(NODES):
            held = [c for c in self.claims().values() if self._is_on(c, node["metadata"]["name"])]
            total = int(node["status"]["allocatable"].get(H100, 0))
            assert sum(c["spec"]["units"] for c in held) <= total, self.describe()
        for pod in self.server.store.scan(PODS):
            vm = pod["metadata"]["labels"].get("vm.kubevirt.io/name")
            if (
                vm
                and not pod["spec"].get("schedulingGates")
                and vm in self.claims()
                and pod["spec"].get("nodeName")
                and pod["status"].get("phase") not in ("Succeeded", "Failed")
            ):
                assert pod["spec"]["nodeName"] == self.node_of(vm), self.describe()

    def describe(self) -> str:
        vms = {vm["metadata"]["name"]: vm.get("status") for vm in self.server.store.scan(VIRTUAL_MACHINES)}
        claims = {name: claim.get("status") for name, claim in self.claims().items()}
        return f"VMs {vms}\nclaims {claims}\ntold {self.told.terms} {self.told.restarts[-5:]}"

    def _is_on(self, claim: Json, node: str) -> bool:
        status = claim.get("status") or {}
        return bool(status.get("phase") == "Bound" and status.get("nodeName") == node)


async def stop(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def live(story: Callable[[Life], Awaitable[Any]], seed: int = 0) -> Any:
    """Run a story in virtual time, with a class on sale and every actor at work."""

    async def main(clock: Clock) -> Any:
        server = await api_server(clock, seed)
        await server.create(GPU_CLASSES, {"metadata": {"name": "h100"}, "spec": {"resourceName": H100}})
        life = Life(server, MemoryLog(clock), clock)
        async with living(server, clock):
            result = await story(life)
            life.check()
            return result

    return run_virtual(main)
