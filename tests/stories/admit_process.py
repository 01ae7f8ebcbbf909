"""`gpubinder admit` as processes of their own, and what a Service does in front of them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from admission.webhooks import Address, check_webhooks, gate_webhook
from eventlog.adapters.redis_streams import connect
from eventlog.entries import Entry, EntryType
from kube.errors import NotFound
from kube.port import Client, ObjectKey
from model.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from projections.folds.ledger import NAME
from tests.admission.ledgers import fields_of
from tests.cluster.processes import free_ports

STOP_S = 10.0
START_S = 30.0
NAMESPACE = "kube-system"
EPOCH = 1_000_000
"""Later than any binder's: the test plays the last one."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class AdmitProcess:
    """A running `gpubinder admit`."""

    process: subprocess.Popen[bytes]
    log: Path
    port: int
    metrics_port: int

    def metric(self, kind: str, result: str) -> float:
        """How many requests of a kind were answered so."""
        wanted = f'gpubinder_admission_requests_total{{kind="{kind}",result="{result}"}} '
        for line in self._get("/metrics").splitlines():
            if line.startswith(wanted):
                return float(line.removeprefix(wanted))
        return 0.0

    def is_ready(self) -> bool:
        with suppress(OSError):
            return self._get("/readyz") == "ok\n"
        return False

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait(STOP_S)

    def _get(self, path: str) -> str:
        url = f"http://127.0.0.1:{self.metrics_port}{path}"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(url, timeout=2) as answer:
            return str(answer.read().decode())


@contextmanager
def gpubinder_admit(kubeconfig: Path, redis: str, log: Path, *options: str) -> Iterator[AdmitProcess]:
    """Run it until it is ready and while the context is open; ended with SIGTERM, which it must obey."""
    port, metrics_port = free_ports(2)
    if "--cert-dir" not in options:
        options += ("--cert-name", "127.0.0.1")
    command = [
        *(sys.executable, "-m", "gpubinder.cli", "admit", "--kubeconfig", str(kubeconfig), "--redis", redis),
        *("--admission-port", str(port), "--metrics-port", str(metrics_port)),
        *("--admission-namespace", NAMESPACE, *options),
    ]
    with log.open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=dict(os.environ))
    running = AdmitProcess(process, log, port, metrics_port)
    try:
        deadline = time.monotonic() + START_S
        while not running.is_ready():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        yield running
    finally:
        if process.poll() is None:
            process.terminate()
            assert process.wait(STOP_S) == 0, log.read_text()
        assert "Traceback" not in log.read_text()


@asynccontextmanager
async def called_at(client: Client, url: str) -> AsyncIterator[None]:
    """Have the API server call the webhooks at a URL."""
    address = Address(NAMESPACE, url=url)
    made = ((MUTATING_WEBHOOKS, gate_webhook(address)), (VALIDATING_WEBHOOKS, check_webhooks(address)))
    for resource, body in made:
        await client.create(resource, body)
    try:
        yield
    finally:
        for resource, body in made:
            with suppress(NotFound):
                await client.delete(ObjectKey(resource, body["metadata"]["name"]))


async def count(redis: str, **parts: Any) -> None:
    """Write the ledger as a binder does, up to a heartbeat that is written first."""
    log = await connect(redis, "default", "test", now_ms)
    try:
        beat = Entry(EntryType.HEARTBEAT, watcher="test", ts_ms=now_ms())
        await log.append_once([beat], await log.identity())
        position = (await log.info()).last_id
        await log.commit(EPOCH, b"{}", {NAME: fields_of(**parts, position=position)})
    finally:
        await log.close()


@dataclass
class Balancer:
    """What kube-proxy does with a Service: each connection goes to a replica that takes it."""

    ports: list[int]
    port: int = 0
    _turn: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        """Forward while the context is open; gives the URL."""
        server = await asyncio.start_server(self._forward, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield f"https://127.0.0.1:{self.port}"
        finally:
            server.close()
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            for _ in self.ports:
                self._turn += 1
                with suppress(OSError):
                    there = await asyncio.open_connection(
                        "127.0.0.1", self.ports[self._turn % len(self.ports)]
                    )
                    await _both_ways((reader, writer), there)
                    return
        except asyncio.CancelledError:
            return  # the balancer closes
        finally:
            writer.close()
            self._tasks.discard(task)


Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _both_ways(here: Stream, there: Stream) -> None:
    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except OSError:
            return
        finally:
            writer.close()

    await asyncio.gather(copy(here[0], there[1]), copy(there[0], here[1]))
