"""Watchers on a real API server that restarts and forgets: three replicas, killed, and thousands of objects.

At the end the state folded from the log equals a fresh list of every kind, field by field, and no change was
appended twice.
"""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from binder.core.state import ClusterState, fold_entry
from eventlog.adapters.embedded import EmbeddedServer
from eventlog.adapters.redis_streams import RedisLog
from eventlog.adapters.redis_streams import connect as connect_log
from eventlog.entries import CHANGES, StoredEntry
from kube.adapters.http import HttpClient, connect
from kube.port import Client, list_all
from model.kinds import BY_KIND
from model.lean import lean_object
from model.resources import NAMESPACES
from tests.cluster.control_plane import ControlPlane
from tests.contract.conftest import _compact as compact
from tests.stories.churn import churn
from tests.stories.conftest import now_ms
from tests.stories.mistreated import own_plane, own_redis, restart

__all__ = ["own_plane", "own_redis"]

pytestmark = [pytest.mark.envtest, pytest.mark.allow_hosts(["127.0.0.1"]), pytest.mark.timeout(240)]
OBJECTS = 5000
SEED = 4


class Replicas:
    """Three `gpubinder watch`, of which any may be killed, and is then replaced."""

    def __init__(self, plane: ControlPlane, redis: str, log: Path) -> None:
        options = ["watch", "--kubeconfig", str(plane.kubeconfig()), "--redis", redis]
        self._command = [sys.executable, "-m", "gpubinder.cli", *options]
        self._log = log
        self.processes = [self._start() for _ in range(3)]

    def kill(self, number: int) -> None:
        self.processes[number].kill()
        self.processes[number].wait()
        self.processes[number] = self._start()

    def stop(self) -> None:
        for process in self.processes:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self.processes:
            process.wait(20)

    def _start(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as output:
            return subprocess.Popen(self._command, stdout=output, stderr=output)


async def trouble(plane: ControlPlane, replicas: Replicas, until: asyncio.Event) -> None:
    """Kills, pauses, compactions, and one restart of the API server, while the objects churn."""
    rng = random.Random(SEED)
    for turn in range(1000):
        with suppress(TimeoutError):
            await asyncio.wait_for(until.wait(), 2)
            return
        match turn % 4:
            case 0:
                await asyncio.to_thread(replicas.kill, rng.randrange(3))
            case 1:
                paused = replicas.processes[rng.randrange(3)]
                paused.send_signal(signal.SIGSTOP)
                await asyncio.sleep(1)
                paused.send_signal(signal.SIGCONT)
            case 2:
                await asyncio.to_thread(compact, plane)
            case 3 if turn == 3:
                await asyncio.to_thread(restart, plane, "kube-apiserver")


async def fold(log: RedisLog, state: ClusterState, position: str, seen: Counter[tuple[str, str, str]]) -> str:
    while batch := await log.read_range(position, 5000):
        for stored in batch:
            assert isinstance(stored, StoredEntry)
            fold_entry(state, stored.entry)
            if stored.entry.type in CHANGES:
                seen[stored.entry.kind, stored.entry.uid, stored.entry.resource_version] += 1
        position = batch[-1].id
    return position


async def differences(client: Client, state: ClusterState) -> list[str]:
    """Where the folded state and a fresh list of some kind differ."""
    found = []
    for kind, watched in BY_KIND.items():
        listing = await list_all(client, watched.resource)
        listed = {
            (i["metadata"].get("namespace", ""), i["metadata"]["name"]): lean_object(
                watched.model, watched.prune, i
            )
            for i in listing.items
        }
        folded = dict(state.shelves[kind].bodies())
        found += [
            f"{kind} {key}" for key in listed.keys() | folded.keys() if listed.get(key) != folded.get(key)
        ]
    return found


async def test_folded_log_equals_a_fresh_list_after_churn_kills_compaction_and_a_restart(
    own_plane: ControlPlane, own_redis: EmbeddedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R32, R33; nothing lost, nothing twice."""
    replicas = Replicas(own_plane, own_redis.url, tmp_path / "watch.log")
    churned = asyncio.Event()
    began = time.monotonic()
    try:
        async with await connect(str(own_plane.kubeconfig())) as client:
            await client.create(NAMESPACES, {"metadata": {"name": "churn"}})
            troubling = asyncio.create_task(trouble(own_plane, replicas, churned))
            await churn(client, "churn", OBJECTS, SEED)
            churned.set()
            await troubling
            churn_s = time.monotonic() - began
            log = await connect_log(own_redis.url, "default", "test", now_ms)
            counts = await settle(client, log)
            await log.close()
    finally:
        replicas.stop()
    assert max(counts.values()) == 1, "a change was appended twice"
    with capsys.disabled():
        print(f"\n{OBJECTS} objects churned in {churn_s:.0f} s, {len(counts)} changes appended, each once")


async def settle(client: HttpClient, log: RedisLog) -> Counter[tuple[str, str, str]]:
    """Wait, bounded, until the folded log is the cluster."""
    state, position, counts = ClusterState(), "0-0", Counter[tuple[str, str, str]]()
    for _ in range(30):
        position = await fold(log, state, position, counts)
        different = await differences(client, state)
        if not different:
            return counts
        await asyncio.sleep(1)
    raise AssertionError(f"{len(different)} objects differ, e.g. {different[:5]}")
