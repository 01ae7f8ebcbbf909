"""The process's own HTTP server: /metrics, /healthz, /readyz."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from gpubinder.errors import CommandError


@asynccontextmanager
async def serving(
    host: str, port: int, registry: CollectorRegistry, is_ready: Callable[[], bool]
) -> AsyncIterator[None]:
    """Serve while the context is open; port 0 serves nothing. Raises CommandError for a port in use."""
    if not port:
        yield
        return

    async def metrics(_: web.Request) -> web.Response:
        body = generate_latest(registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n") if is_ready() else web.Response(status=503, text="not ready\n")

    app = web.Application()
    app.add_routes([web.get("/metrics", metrics), web.get("/healthz", healthz), web.get("/readyz", readyz)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        await runner.cleanup()
        raise CommandError(
            f"cannot serve metrics on {host}:{port}: {error.strerror}; "
            "choose another --metrics-port, or 0 for none"
        ) from None
    try:
        yield
    finally:
        await runner.cleanup()
