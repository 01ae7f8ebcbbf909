"""`gpubinder admit`: the webhooks as a process of its own, which needs the log only for its checks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from prometheus_client import CollectorRegistry

from gpubinder.admission_metrics import AdmissionObserver
from gpubinder.settings import Settings
from gpubinder.stores import open_cluster
from gpubinder.system import System
from gpubinder.web import serving
from gpubinder.webhooks import LedgerConnection, admission_loops


@asynccontextmanager
async def admitting(settings: Settings) -> AsyncIterator[System]:
    """Serve the webhooks while the context is open. Raises CommandError."""
    registry = CollectorRegistry()
    observer = AdmissionObserver(registry)
    async with (
        open_cluster(settings.cluster_choice) as client,
        serving("0.0.0.0", settings.metrics_port, registry, lambda: observer.is_serving),  # noqa: S104
    ):
        log = LedgerConnection(settings, client)
        await log.check_url()
        loops = admission_loops(client, log, settings.admission, observer)
        tasks = tuple(asyncio.create_task(loop) for loop in loops)
        try:
            yield System(client, tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await log.close()
