"""The running system: watchers, heartbeat and binder over one client and one log, in one process."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from binder.bind import bind
from binder.consumer import Post
from binder.leader import Leader, LeaseName
from eventlog.errors import LogError
from gpubinder.admission_metrics import AdmissionObserver
from gpubinder.errors import CommandError
from gpubinder.metrics import Metrics, Observer
from gpubinder.settings import Settings
from gpubinder.stores import LogStore, OtherLog, check_cluster_of_log, now_ms, open_cluster, open_log
from gpubinder.web import serving
from gpubinder.webhooks import admission_loops
from ingest.heart import beat
from ingest.replica import Replica
from ingest.watcher import KindWatcher
from kube.adapters.http import HttpClient
from model.kinds import BY_KIND

LEASE = "gpubinder-binder"
WATCH_S = 5.0
"""How often a process looks whether its log is still its own."""


class Role(StrEnum):
    """What a process does; `gpubinder up` does everything."""

    WATCH = "watch"
    BIND = "bind"
    ADMIT = "admit"
    """Where a port is given for it."""


EVERYTHING = frozenset(Role)


@dataclass(frozen=True, slots=True)
class System:
    """What runs: its client for whoever looks on, and its tasks."""

    client: HttpClient
    tasks: tuple[asyncio.Task[None], ...]
    embedded_log: str = ""
    """Where our own Redis listens, if it is ours."""

    async def wait(self) -> None:
        """Until a task ends, which only a fault of ours makes it do: raised here."""
        done, _ = await asyncio.wait(self.tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()


async def _keep_watch(store: LogStore, client: HttpClient, settings: Settings) -> None:
    """End the process when what it was started on is no more: its embedded server, or a log that is its own.

    After an emptied Redis the first process to look claims the log again. Raises CommandError.
    """
    while True:
        await asyncio.sleep(WATCH_S)
        store.check_embedded()
        try:
            await check_cluster_of_log(store.log, client, settings, is_running=True)
        except OtherLog:
            raise
        except CommandError:
            continue  # a store is away: the loops say so, and wait


async def _ask_log(store: LogStore, observer: Observer) -> None:
    """How far behind its reader the log is, for metrics and readiness."""
    while True:
        try:
            observer.log_asked(await store.log.info())
        except LogError:
            observer.log_asked(None)
        await asyncio.sleep(WATCH_S)


@asynccontextmanager
async def running(settings: Settings, roles: frozenset[Role] = EVERYTHING) -> AsyncIterator[System]:
    """Start what the roles need, and stop it in order. Raises CommandError."""
    instance = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
    metrics = Metrics()
    observer = Observer(metrics)

    admission = AdmissionObserver(metrics.registry)
    admits = Role.ADMIT in roles and settings.admission.port > 0

    leader: Leader | None = None

    def is_ready() -> bool:
        if admits and not admission.is_serving:
            return False
        stands_by = leader is not None and leader.stands_by
        binds = Role.BIND not in roles or stands_by or observer.is_ready
        return binds and (Role.WATCH not in roles or observer.is_watching)

    async with (
        open_log(settings.log_choice, settings.cluster, instance) as store,
        open_cluster(settings.cluster_choice) as client,
        serving("0.0.0.0", settings.metrics_port, metrics.registry, is_ready),  # noqa: S104
    ):
        await check_cluster_of_log(store.log, client, settings)
        loops: list[Coroutine[Any, Any, None]] = []
        if admits:
            loops += admission_loops(client, store.log, settings.admission, admission)
        if Role.WATCH in roles:

            async def watch(kind: str) -> None:
                observer.kind_taken(kind)
                try:
                    await KindWatcher(client, store.log, BY_KIND[kind], instance, now_ms, observer).run()
                finally:
                    observer.kind_given_up(kind)

            loops += [Replica(store.presence, instance, BY_KIND, watch, observer.log_failed).run()]
            loops += [beat(store.log, instance, now_ms, observer.beat_ended)]
        if Role.BIND in roles:
            leader = Leader(
                client,
                LeaseName(settings.lease_namespace, LEASE, instance),
                now_ms,
                observer.lease_unreachable,
            )
            loops += [
                bind(Post(client, store.log, leader, settings.policy, now_ms, observer, instance), observer)
            ]
        loops += [_keep_watch(store, client, settings), _ask_log(store, observer)]
        tasks = tuple(asyncio.create_task(loop) for loop in loops)
        try:
            yield System(client, tasks, store.url if store.embedded else "")
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
