"""A proxy that cuts connections: before the server hears of a request, or before its answer arrives."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Cutting:
    """`loses_answers` cuts each connection in place of the next answer.

    `passes` counts down with each request; the one that finds it at zero is cut, and those after it are not.
    Its answer is what gets lost if `loses_answer_of_it`, or else the request itself.
    """

    server: str
    url: str
    loses_answers: bool = False
    passes: int | None = None
    loses_answer_of_it: bool = False
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        up_reader, up_writer = await asyncio.open_unix_connection(self.server)
        link = _Link(self, up_writer, writer)
        asking = asyncio.create_task(link.pass_on(reader))
        try:
            while answer := await up_reader.read(65536):
                if self.loses_answers or link.loses_answer:
                    break
                writer.write(answer)
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            writer.close()
            up_writer.close()

    def cuts_now(self) -> bool:
        if self.passes is None:
            return False
        self.passes -= 1
        return self.passes == -1


@dataclass
class _Link:
    """One connection of a client."""

    proxy: Cutting
    up: asyncio.StreamWriter
    down: asyncio.StreamWriter
    loses_answer: bool = False

    async def pass_on(self, reader: asyncio.StreamReader) -> None:
        while request := await reader.read(1 << 20):
            if self.proxy.cuts_now():
                self.loses_answer = True
                if not self.proxy.loses_answer_of_it:
                    self.up.close()
                    return
            self.up.write(request)


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
