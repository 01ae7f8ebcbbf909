"""A loopback HTTP server that answers as a test says, as no healthy API server would on demand."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import yaml
from aiohttp import web

from kube.adapters.http import HttpClient, connect

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[str]:
    """The URL of a server that gives every request to `handler`."""
    app = web.Application(client_max_size=0)
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def client_of(
    server: str, folder: Path, *, silence_s: float = 5.0, **user: str
) -> AsyncIterator[HttpClient]:
    """A client of `server` as the kubeconfig's `user` fields say."""
    path = write_kubeconfig(folder, server=server, **user)
    async with await connect(str(path), silence_s=silence_s) as client:
        yield client


def write_kubeconfig(folder: Path, *, server: str = "http://127.0.0.1:1", **user: str) -> Path:
    """A kubeconfig with one context."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path
