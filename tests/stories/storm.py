"""Three binders under churn while everything is killed: nothing is booked twice, nothing stays stuck.

Judged by the API server's own objects alone. `make storm SECONDS=300` runs it by hand; a short one is a test.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from admission.policies import gate_policy
from binder.core.launchers import pinned_node
from eventlog.adapters.embedded import EmbeddedServer
from kube.adapters.http import HttpClient, connect
from kube.errors import ApiError, NotFound
from kube.port import Json, ObjectKey, Selection, list_all
from model.pods import Pod
from model.resources import (
    GPU_CLAIMS,
    GPU_CLASSES,
    NAMESPACES,
    NODES,
    PODS,
    VIRTUAL_MACHINE_INSTANCES,
    VIRTUAL_MACHINES,
    Resource,
)
from simulator.cluster import kubevirt, playing
from simulator.objects import gpu_node, gpu_vm
from tests.cluster.assets import find
from tests.cluster.control_plane import ControlPlane, start
from tests.stories.mistreated import empty_redis, kill_redis, restart

RESOURCE = "nvidia.com/STORM"
NAMESPACE = "storm"
UNITS_PER_NODE = 4
BINDERS = 3
PAUSE_S = 18.0
"""Longer than the lease: who wakes up after it must do no harm."""
SETTLE_S = 120.0
CHECK_S = 0.5
QUIET_CHECKS = 5
"""In a row, a second apart, before all is at rest."""
HANDS = 8


@dataclass(frozen=True, slots=True)
class Size:
    """How long and how much."""

    seconds: float
    vms: int
    nodes: int
    seed: int = 1


@dataclass(slots=True)
class Tally:
    """What happened, for people."""

    done: Counter[str] = field(default_factory=Counter)
    most_booked: int = 0
    checks: int = 0
    settled_s: float = 0.0
    twice: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Storm:
    """One run."""

    plane: ControlPlane
    redis: EmbeddedServer
    folder: Path
    """Of the Redis' data and the logs."""
    size: Size
    tally: Tally = field(default_factory=Tally)
    binders: list[subprocess.Popen[bytes]] = field(default_factory=list)

    async def run(self) -> Tally:
        """From an empty cluster to a quiet one."""
        async with await connect(str(self.plane.kubeconfig())) as client:
            await self._furnish(client)
            self.binders = [self._start() for _ in range(BINDERS)]
            try:
                async with playing(client, _now_ms, kubevirt()):
                    supervising = asyncio.create_task(self._supervise())
                    await self._blow(client)
                    await self._calm(client)
                    supervising.cancel()
            finally:
                await asyncio.to_thread(self._stop)
        return self.tally

    async def _furnish(self, client: HttpClient) -> None:
        for kind, body in zip(_policies(), gate_policy(), strict=True):
            await client.create(kind, body)
        await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        await client.create(GPU_CLASSES, {"metadata": {"name": "storm"}, "spec": {"resourceName": RESOURCE}})
        for number in range(self.size.nodes):
            await client.create(NODES, gpu_node(f"storm-{number}", {RESOURCE: UNITS_PER_NODE}))
        await asyncio.sleep(1)  # a new policy is in force after the API server's next look

    async def _blow(self, client: HttpClient) -> None:
        over = asyncio.Event()
        names = [f"vm-{number}" for number in range(self.size.vms)]
        hands = [
            asyncio.create_task(self._hand(client, names[hand::HANDS], f"{self.size.seed} {hand}", over))
            for hand in range(HANDS)
        ]  # fmt: skip
        others = [
            asyncio.create_task(self._watch_over(client, over)),
            asyncio.create_task(self._trouble(over)),
        ]
        await asyncio.sleep(self.size.seconds)
        over.set()
        await asyncio.gather(*hands, *others)

    async def _hand(self, client: HttpClient, names: list[str], seed: str, over: asyncio.Event) -> None:
        """A tenant who starts, stops, restarts and deletes VMs."""
        rng = random.Random(seed)
        while not over.is_set():
            name = rng.choice(names)
            key = ObjectKey(VIRTUAL_MACHINES, name, NAMESPACE)
            turns: list[tuple[str, Callable[[], Awaitable[Any]]]] = [
                ("start", partial(client.patch, key, {"spec": {"runStrategy": "Always"}})),
                ("stop", partial(client.patch, key, {"spec": {"runStrategy": "Halted"}})),
                ("restart", partial(client.delete, ObjectKey(VIRTUAL_MACHINE_INSTANCES, name, NAMESPACE))),
                ("delete", partial(client.delete, key)),
            ]
            what, write = rng.choices(turns, (5, 3, 1, 1))[0]
            try:
                await write()
            except NotFound:
                what, body = "create", gpu_vm(name, {RESOURCE: rng.choice((1, 1, 2))}, NAMESPACE)
                with suppress(ApiError):
                    await client.create(VIRTUAL_MACHINES, body)
            except ApiError:
                what = "refused"
            self.tally.done[f"VM {what}"] += 1
            with suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), rng.uniform(0.1, 1.0))

    async def _trouble(self, over: asyncio.Event) -> None:
        rng = random.Random(self.size.seed)
        weights = {"kill a binder": 6, "pause a binder": 3, "empty Redis": 1, "kill Redis": 2,
                   "kill and empty Redis": 1, "kill the API server": 1, "kill etcd": 1}  # fmt: skip
        while not over.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), rng.uniform(2.0, 5.0))
                return
            what = rng.choices(list(weights), list(weights.values()))[0]
            self.tally.done[what] += 1
            await self._strike(what, rng)

    async def _strike(self, what: str, rng: random.Random) -> None:
        number = rng.randrange(BINDERS)
        match what:
            case "kill a binder":
                await asyncio.to_thread(self._kill, number)
            case "pause a binder":
                self.binders[number].send_signal(signal.SIGSTOP)
                await asyncio.sleep(PAUSE_S)
                self.binders[number].send_signal(signal.SIGCONT)
            case "empty Redis":
                await asyncio.to_thread(empty_redis, self.redis.url)
            case "kill Redis" | "kill and empty Redis":
                is_emptied = "empty" in what
                await asyncio.to_thread(kill_redis, self.redis, self.folder / "redis", is_emptied=is_emptied)
            case "kill the API server":
                await asyncio.to_thread(restart, self.plane, "kube-apiserver")
            case "kill etcd":
                await asyncio.to_thread(restart, self.plane, "etcd")

    async def _watch_over(self, client: HttpClient, over: asyncio.Event) -> None:
        """No unit is booked twice, at any moment that can be seen."""
        while not over.is_set():
            with suppress(ApiError):
                await self._check_booked(client)
            await asyncio.sleep(CHECK_S)

    async def _check_booked(self, client: HttpClient) -> dict[str, int]:
        booked: Counter[str] = Counter()
        for claim in await _items(client, GPU_CLAIMS):
            status = claim.get("status") or {}
            if status.get("phase") == "Bound":
                booked[status["nodeName"]] += claim["spec"]["units"]
        self.tally.checks += 1
        self.tally.most_booked = max(self.tally.most_booked, booked.total())
        self.tally.twice += [f"{name}: {units}" for name, units in booked.items() if units > UNITS_PER_NODE]
        return {f"storm-{number}": booked[f"storm-{number}"] for number in range(self.size.nodes)}

    async def _calm(self, client: HttpClient) -> None:
        """Nobody touches anything: everything comes to rest, and whatever could run does."""
        began, quiet = time.monotonic(), 0
        while time.monotonic() - began < SETTLE_S and quiet < QUIET_CHECKS:
            await asyncio.sleep(1)
            try:
                self.tally.stuck = await self._stuck(client)
            except ApiError as error:
                self.tally.stuck = [str(error)]
            quiet = 0 if self.tally.stuck else quiet + 1
        self.tally.settled_s = time.monotonic() - began

    async def _stuck(self, client: HttpClient) -> list[str]:
        booked = await self._check_booked(client)
        most_free = max(UNITS_PER_NODE - units for units in booked.values())
        claims = {}
        for claim in await _items(client, GPU_CLAIMS):
            owner = (claim["metadata"].get("ownerReferences") or [{}])[0]
            claims[owner.get("uid")] = claim
        pods = [pod for pod in await _items(client, PODS) if not pod["metadata"].get("deletionTimestamp")]
        found = [_why_stuck(pod, claims, most_free) for pod in pods]
        uids = {vmi["metadata"]["uid"] for vmi in await _items(client, VIRTUAL_MACHINE_INSTANCES)}
        found += [
            f"claim of no VMI: {claim['metadata']['name']}"
            for uid, claim in claims.items()
            if uid not in uids
        ]
        return [why for why in found if why]

    async def _supervise(self) -> None:
        """As a kubelet does: what has ended by itself, e.g. beside a dead Redis, starts again."""
        while True:
            await asyncio.sleep(1)
            for number, process in enumerate(self.binders):
                if process.poll() not in (None, -signal.SIGKILL):
                    self.tally.done["binder ended by itself"] += 1
                    self.binders[number] = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "gpubinder.cli", "up", "--redis", self.redis.url]
        command += ["--kubeconfig", str(self.plane.kubeconfig()), "--lease-namespace", "default"]
        with (self.folder / "up.log").open("ab") as output:
            return subprocess.Popen(command, stdout=output, stderr=output)

    def _kill(self, number: int) -> None:
        self.binders[number].kill()
        self.binders[number].wait()
        self.binders[number] = self._start()

    def _stop(self) -> None:
        for process in self.binders:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self.binders:
            process.wait(20)


def _why_stuck(pod: Json, claims: dict[str, Json], most_free: int) -> str:
    """What is wrong with a launcher when all is quiet, or the empty string."""
    name, spec = pod["metadata"]["name"], pod["spec"]
    claim = claims.get(pod["metadata"]["ownerReferences"][0]["uid"], {})
    held_on = (claim.get("status") or {}).get("nodeName", "")
    units = int(spec["containers"][0]["resources"]["requests"][RESOURCE])
    if pod.get("status", {}).get("phase") in ("Failed", "Succeeded"):
        return f"{name} has ended and is still there"
    if spec.get("schedulingGates"):
        return f"{name} is gated beside {most_free} free units" if units <= most_free or held_on else ""
    pin = pinned_node(Pod.model_validate({"spec": spec}))
    if pin != held_on:
        return f"{name} is pinned to {pin or 'no node'}, its claim is held on {held_on or 'none'}"
    return "" if spec.get("nodeName") == pin else f"{name} is pinned to {pin} and not bound there"


def _policies() -> tuple[Resource, Resource]:
    group = "admissionregistration.k8s.io"
    policy, binding = "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"
    return (
        Resource(group, "v1", "mutatingadmissionpolicies", policy, is_namespaced=False),
        Resource(group, "v1", "mutatingadmissionpolicybindings", binding, is_namespaced=False),
    )


async def _items(client: HttpClient, resource: Resource) -> list[Json]:
    return (await list_all(client, resource, Selection(NAMESPACE))).items


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def report(tally: Tally, size: Size) -> str:
    """What happened, in lines."""
    lines = [f"{what:24} {count:6}" for what, count in sorted(tally.done.items())]
    units = size.nodes * UNITS_PER_NODE
    lines += [
        f"{'checks of all bookings':24} {tally.checks:6}",
        f"{'most units booked':24} {tally.most_booked:6} of {units}",
        f"{'settled after':24} {tally.settled_s:6.0f} s",
        f"{'booked twice':24} {len(tally.twice):6}",
        f"{'stuck':24} {len(tally.stuck):6}",
    ]
    return "\n".join([*lines, *tally.twice[:10], *tally.stuck[:10]])


def main() -> int:
    """By hand: `make storm SECONDS=300`."""
    parser = argparse.ArgumentParser(description="Three binders, random kills, churn; exit 1 on any fault.")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--vms", type=int, default=200)
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    size = Size(options.seconds, options.vms, options.nodes, options.seed)
    folder = Path(tempfile.mkdtemp(prefix="gpubinder-storm-"))
    plane, redis = start(find()), EmbeddedServer(folder / "redis")
    try:
        redis.start()
        tally = asyncio.run(Storm(plane, redis, folder, size).run())
    finally:
        redis.stop()
        plane.stop()
    print(report(tally, size), f"logs in {folder}", sep="\n")
    return 1 if tally.twice or tally.stuck else 0


if __name__ == "__main__":
    raise SystemExit(main())
