"""Bytes of a file, or of a pipe that may keep silent for long, without holding up the event loop."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO

CHUNK = 256 * 1024
"""Bytes at once."""
AHEAD = 16
"""Chunks that may wait to be taken."""
STDIN = Path("-")


def size_of(path: Path) -> int | None:
    """Bytes of a file, None where nobody knows. Raises OSError."""
    found = os.fstat(sys.stdin.fileno()) if path == STDIN else path.stat()
    return found.st_size if stat.S_ISREG(found.st_mode) else None


async def chunks_of(path: Path) -> AsyncIterator[bytes]:
    """What is there, as soon as it is there; `-` is the standard input. Raises OSError.

    A thread reads: one that hangs in a silent pipe, or in opening it, dies with the process.
    """
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[bytes | OSError]()
    may_read = threading.Semaphore(AHEAD)

    def tell(found: bytes | OSError) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, found)

    def read() -> None:
        try:
            with _opened(path) as source:
                while chunk := os.read(source.fileno(), CHUNK):
                    may_read.acquire()
                    tell(chunk)
            tell(b"")
        except OSError as error:
            tell(error)
        except RuntimeError:
            return  # the loop has ended before us

    threading.Thread(target=read, daemon=True).start()
    while chunk := await queue.get():
        if isinstance(chunk, OSError):
            raise chunk
        yield chunk
        may_read.release()


def _opened(path: Path) -> BinaryIO:
    return open(0, "rb", buffering=0, closefd=False) if path == STDIN else path.open("rb", buffering=0)
