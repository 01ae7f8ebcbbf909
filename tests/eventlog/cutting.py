"""A proxy that loses answers: the server has done what was asked, and nobody hears of it."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Cutting:
    """`loses_answers` cuts each connection in place of the next answer."""

    server: str
    url: str
    loses_answers: bool = False
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        up_reader, up_writer = await asyncio.open_unix_connection(self.server)
        asking = asyncio.create_task(_pass_on(reader, up_writer))
        try:
            while answer := await up_reader.read(65536):
                if self.loses_answers:
                    break
                writer.write(answer)
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            writer.close()
            up_writer.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while request := await reader.read(65536):
        writer.write(request)


@asynccontextmanager
async def cutting(server_url: str) -> AsyncIterator[Cutting]:
    """Listens on a socket of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "cut.sock")
        proxy = Cutting(server_url.removeprefix("unix://"), f"unix://{path}")
        listening = await asyncio.start_unix_server(proxy.serve, path)
        try:
            yield proxy
        finally:
            listening.close()
            for task in proxy.tasks:
                task.cancel()
            await asyncio.gather(*proxy.tasks, return_exceptions=True)
