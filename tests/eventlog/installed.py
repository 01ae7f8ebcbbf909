"""A `redis-server` from the machine's own packages, where there is one, beside the embedded server."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

START_S = 10.0


class InstalledServer:
    """On a Unix socket in a temporary folder, or in one given, writing a file as the embedded one does.

    `more` are further settings, as on its command line.
    """

    def __init__(self, folder: Path | None = None, fsync: str = "everysec", more: Sequence[str] = ()) -> None:
        self._is_temporary = folder is None
        self._folder = Path(tempfile.mkdtemp(prefix="redis-")) if folder is None else folder
        self._socket = self._folder / "redis.sock"
        self._settings = ["--unixsocket", str(self._socket), "--dir", str(self._folder), "--save", ""]
        self._settings += ["--appendonly", "yes", "--appendfsync", fsync, "--shutdown-timeout", "0", *more]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"unix://{self._socket}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        self._socket.unlink(missing_ok=True)  # a killed one leaves it
        command = ["redis-server", "--port", "0", *self._settings]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + START_S
        while not self._socket.exists():
            assert self._process.poll() is None, "redis-server ended at once"
            assert time.monotonic() < deadline, "redis-server did not start"
            time.sleep(0.02)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(START_S)
            self._process = None
        if self._is_temporary:
            shutil.rmtree(self._folder, ignore_errors=True)
