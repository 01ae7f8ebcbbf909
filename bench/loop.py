"""The loop on a real API server: ungated launchers beside pods that kube-scheduler binds, waits, writes.

Needs the control plane's binaries (`make envtest-assets`). Judged by what the API server tells.
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from admission.policies import gate_policy
from bench.figures import Figure
from binder.live import list_claims
from eventlog.adapters.embedded import EmbeddedServer
from kube.adapters.http import HttpClient, connect
from kube.errors import AlreadyExists, ApiError, OutcomeUnknown
from kube.port import MERGE_STATUS, Json, ObjectKey, Selection
from model.instants import rfc3339
from model.resources import (
    ADMISSION,
    GPU_CLAIMS,
    GPU_CLASSES,
    NAMESPACES,
    NODES,
    PODS,
    VIRTUAL_MACHINE_INSTANCES,
    Resource,
)
from simulator.objects import gpu_node, gpu_vm
from tests.cluster.assets import find
from tests.cluster.control_plane import ControlPlane, start
from tests.stories.recorded import launcher_of

OURS, THEIRS = "nvidia.com/GH100_H100_SXM5_80GB", "example.com/PLAIN"
"""The resource of the launchers, as in the recordings, and that of the pods that nobody gates."""
NAMESPACE = "bench"
NODE_COUNT, UNITS_A_NODE = 60, 16
BURST = 300
STEADY_S = 15.0
QUIET_S = 60.0
CLAIMS = 20_000
HANDS = 12
ATTEMPTS = 10
LIMIT_S = 120.0


def figures() -> list[Figure]:
    """All of them, from one control plane."""
    folder = Path(tempfile.mkdtemp(prefix="gpubinder-bench-"))
    plane, redis = start(find()), EmbeddedServer(folder / "redis")
    try:
        redis.start()
        found = asyncio.run(_measure(plane, redis, folder))
    except BaseException:
        plane.stop(keep_logs=True)
        raise
    finally:
        redis.stop()
    plane.stop()
    return found


@dataclass(slots=True)
class Seen:
    """When each pod was seen to be made, to have no gate of ours, and to be bound; seconds."""

    made: dict[str, float] = field(default_factory=dict)
    ungated: dict[str, float] = field(default_factory=dict)
    bound: dict[str, float] = field(default_factory=dict)

    def note(self, pod: Json) -> None:
        """One version of a pod."""
        name, spec, now = pod["metadata"]["name"], pod["spec"], time.perf_counter()
        self.made.setdefault(name, now)
        if not spec.get("schedulingGates"):
            self.ungated.setdefault(name, now)
        if spec.get("nodeName"):
            self.bound.setdefault(name, now)


async def _measure(plane: ControlPlane, redis: EmbeddedServer, folder: Path) -> list[Figure]:
    async with await connect(str(plane.kubeconfig())) as client:
        await _furnish(plane, client)
        async with _watching(client) as seen:
            theirs = await _scheduler_alone(plane, client, seen)
            async with _binder(plane, redis, folder) as go:
                ours = await _burst(client, seen, go)
                waits = await _steady(client, seen, theirs / 2)
                written = await _writes(plane)
                quiet = await _quiet(plane)
        lists = await _lists(plane, client)
    starts = BURST + len(waits)
    p99 = statistics.quantiles(waits, n=100)[98] * 1000
    return [
        Figure("launchers ungated", ours, "/s", "pods that kube-scheduler binds", theirs, 1.0),
        Figure("gate wait, median at half the scheduler's load", statistics.median(waits) * 1000, "ms"),
        Figure("gate wait, p99 at half the scheduler's load", p99, "ms (1,000 wanted at most)"),
        Figure("writes per VM of one claim", written / starts, "(3 wanted at most)"),
        *quiet,
        *lists,
    ]


async def _furnish(plane: ControlPlane, client: HttpClient) -> None:
    """Nodes that stay Ready, since nobody looks after them any more; the gate and its class."""
    plane.process("kube-controller-manager").stop()
    plane.processes.remove(plane.process("kube-controller-manager"))
    now = rfc3339(time.time_ns() // 1_000_000)
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now,
             "lastTransitionTime": now}  # fmt: skip
    for number in range(NODE_COUNT):
        body = gpu_node(f"bench-{number}", {OURS: UNITS_A_NODE, THEIRS: UNITS_A_NODE})
        await client.create(NODES, body)
        patch = {"status": body["status"] | {"conditions": [ready]}}
        key = ObjectKey(NODES, f"bench-{number}")
        await client.patch(key, patch, MERGE_STATUS)
        await client.patch(key, {"spec": {"taints": None}})  # that of a new node
    await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    await client.create(GPU_CLASSES, {"metadata": {"name": "h100"}, "spec": {"resourceName": OURS}})
    kinds = {kind.kind: kind for kind in ADMISSION}
    for body in gate_policy():
        await client.create(kinds[body["kind"]], body)
    await asyncio.sleep(2)  # a new policy is in force after the API server's next look


@asynccontextmanager
async def _watching(client: HttpClient) -> AsyncIterator[Seen]:
    seen = Seen()

    async def look() -> None:
        while True:
            with suppress(ApiError):
                async for event in client.watch(PODS, Selection(NAMESPACE), resource_version=""):
                    if event.object.get("metadata", {}).get("name"):
                        seen.note(event.object)

    looking = asyncio.create_task(look())
    try:
        yield seen
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)


@asynccontextmanager
async def _binder(
    plane: ControlPlane, redis: EmbeddedServer, folder: Path
) -> AsyncIterator[Callable[[], None]]:
    """`gpubinder up` as a process, started by what is given."""
    command = [sys.executable, "-m", "gpubinder.cli", "up", "--redis", redis.url]
    command += ["--kubeconfig", str(plane.kubeconfig())]
    running: list[subprocess.Popen[bytes]] = []

    def go() -> None:
        with (folder / "up.log").open("ab") as output:
            running.append(subprocess.Popen(command, stdout=output, stderr=output))  # noqa: S603 - ours

    try:
        yield go
    finally:
        for process in running:
            process.terminate()
            process.wait(20)


async def _scheduler_alone(plane: ControlPlane, client: HttpClient, seen: Seen) -> float:
    """Pods a second that kube-scheduler binds, from the first to the last of a burst that waits for it."""
    scheduler = plane.process("kube-scheduler")
    scheduler.signal(signal.SIGSTOP)
    names = [f"plain-{number}" for number in range(BURST)]
    await _spread([_plain(client, name) for name in names])
    scheduler.signal(signal.SIGCONT)
    await _until(lambda: seen.bound.keys() >= set(names), "plain pods bound")
    times = sorted(seen.bound[name] for name in names)
    return (len(names) - 1) / (times[-1] - times[0])


async def _burst(client: HttpClient, seen: Seen, go: Callable[[], None]) -> float:
    """Launchers a second that are ungated, from the first to the last of a burst that waits for a binder."""
    names = [f"burst-{number}" for number in range(BURST)]
    await _spread([_launcher(client, name) for name in names])
    pods = [_pod_name(name) for name in names]
    assert not any(pod in seen.ungated for pod in pods), "the gate is not in force"
    go()
    await _until(lambda: all(pod in seen.ungated for pod in pods), "launchers ungated")
    times = sorted(seen.ungated[pod] for pod in pods)
    return (len(pods) - 1) / (times[-1] - times[0])


async def _steady(client: HttpClient, seen: Seen, rate: float) -> list[float]:
    """Seconds from a launcher's creation to its ungating, while so many come a second."""
    making, pods = [], []
    count = min(int(rate * STEADY_S), NODE_COUNT * UNITS_A_NODE - BURST)
    began = time.perf_counter()
    for number in range(count):
        await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
        making.append(asyncio.create_task(_launcher(client, f"steady-{number}")))
        pods.append(_pod_name(f"steady-{number}"))
    await asyncio.gather(*making)
    await _until(lambda: all(pod in seen.ungated for pod in pods), "steady launchers ungated")
    return [seen.ungated[pod] - seen.made[pod] for pod in pods]


async def _writes(plane: ControlPlane) -> float:
    """Writes on claims and the patches of pods, as the API server has counted them."""
    await asyncio.sleep(2)
    counted = await asyncio.to_thread(_requests, plane)
    claims = sum(n for (verb, what), n in counted.items() if what.startswith("gpuclaims") and verb in _WRITES)
    pins = counted.get(("PATCH", "pods"), 0)
    return claims + pins


async def _quiet(plane: ControlPlane) -> list[Figure]:
    """What a cluster in which nothing happens costs."""
    before = await asyncio.to_thread(_requests, plane)
    await asyncio.sleep(QUIET_S)
    after = await asyncio.to_thread(_requests, plane)
    more = {key: n - before.get(key, 0) for key, n in after.items()}
    writes = sum(n for (verb, what), n in more.items() if verb in _WRITES and what != "leases")
    lists = sum(n for (verb, what), n in more.items() if verb == "LIST" and what == "gpuclaims")
    return [
        Figure("writes in a quiet minute", writes, "(0 wanted; the Lease is not counted)"),
        Figure("lists of claims in a quiet minute", lists, "(1 wanted at most)"),
    ]


async def _lists(plane: ControlPlane, client: HttpClient) -> list[Figure]:
    """The live list of many claims, paged and decoded: the first, and one of which all is known."""
    made = [_order(client, f"order-{number}") for number in range(CLAIMS - BURST)]
    await _spread(made)
    spawning = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawning) as pool:
        listing = asyncio.get_running_loop().run_in_executor(pool, _list_alone, str(plane.kubeconfig()))
        count, first_s, again_s, grown = await listing
    return [
        Figure(f"live list of {count:,} claims, none known", first_s * 1000, "ms"),
        Figure(f"live list of {count:,} claims, all known", again_s * 1000, "ms (1,000 wanted at most)"),
        Figure("memory that the list takes", grown, "MB (200 wanted at most)"),
    ]


def _list_alone(kubeconfig: str) -> tuple[int, float, float, float]:
    """In a process of its own: how many claims, seconds of a first and a second list, MB that they take."""

    async def listing() -> tuple[int, float, float, float]:
        async with await connect(kubeconfig) as client:
            before, began = _memory_mb(), time.perf_counter()
            live = await list_claims(client, lambda *_: None, {})
            gc.freeze()  # as a binder that has begun has it
            first_s, began = time.perf_counter() - began, time.perf_counter()
            await list_claims(client, lambda *_: None, live.claims)
            return len(live.claims), first_s, time.perf_counter() - began, _memory_mb() - before

    return asyncio.run(listing())


_WRITES = ("POST", "PUT", "PATCH", "DELETE")


def _requests(plane: ControlPlane) -> dict[tuple[str, str], float]:
    """The API server's own count of requests by verb and resource."""
    counted: dict[tuple[str, str], float] = {}
    for line in plane.rest().request("GET", "/metrics").decode().splitlines():
        if line.startswith("apiserver_request_total{"):
            labels, _, value = line.removeprefix("apiserver_request_total{").rpartition("} ")
            named = dict(part.split("=", 1) for part in labels.replace('"', "").split(",") if "=" in part)
            key = (
                named.get("verb", ""),
                "/".join(filter(None, (named.get("resource"), named.get("subresource")))),
            )
            counted[key] = counted.get(key, 0.0) + float(value)
    return counted


async def _made(client: HttpClient, kind: Resource, body: Json) -> Json:
    """The object, whatever a busy server did to the answer."""
    meta = body["metadata"]
    for _ in range(ATTEMPTS):
        try:
            return await client.create(kind, body)
        except AlreadyExists:
            return await client.get(ObjectKey(kind, meta["name"], meta["namespace"]))
        except OutcomeUnknown:
            await asyncio.sleep(0.1)
    raise AssertionError("the API server does not keep up")


async def _plain(client: HttpClient, name: str) -> None:
    amounts = {"cpu": "200m", "memory": "256Mi", THEIRS: "1"}
    container = {"name": "c", "image": "x", "resources": {"requests": amounts, "limits": {THEIRS: "1"}}}
    meta = {"name": name, "namespace": NAMESPACE}
    await _made(client, PODS, {"metadata": meta, "spec": {"containers": [container]}})


async def _launcher(client: HttpClient, name: str) -> None:
    """In KubeVirt's order: the VMI, its launcher, the VMI that lists it."""
    body = gpu_vm(name, {OURS: 1}, NAMESPACE)
    spec = body["spec"]["template"]["spec"]
    vmi = await _made(client, VIRTUAL_MACHINE_INSTANCES, body | {"spec": spec})
    pod = launcher_of(vmi)
    pod["spec"].pop("schedulingGates", None)
    pod["metadata"]["name"] = _pod_name(name)
    made = await _made(client, PODS, pod)
    listed = {"status": {"phase": "Scheduling", "activePods": {made["metadata"]["uid"]: ""}}}
    await client.patch(ObjectKey(VIRTUAL_MACHINE_INSTANCES, name, NAMESPACE), listed)


async def _order(client: HttpClient, name: str) -> None:
    meta = {"name": name, "namespace": NAMESPACE}
    await _made(client, GPU_CLAIMS, {"metadata": meta, "spec": {"className": "h100", "units": 1}})


def _pod_name(name: str) -> str:
    return f"virt-launcher-{name}-abcde"


async def _spread(work: list[Coroutine[Any, Any, None]]) -> None:
    """Many hands, a bounded number at once."""
    slots = asyncio.Semaphore(HANDS)

    async def one(job: Coroutine[Any, Any, None]) -> None:
        async with slots:
            await job

    await asyncio.gather(*(one(job) for job in work))


async def _until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < deadline, f"{what}: not within {LIMIT_S:.0f} s"
        await asyncio.sleep(0.02)


def _memory_mb() -> float:
    """The most that this process has held: the kernel's other count goes on from the process before exec."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024
