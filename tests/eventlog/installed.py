"""A `redis-server` from the machine's own packages, where there is one, beside the embedded server."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

START_S = 10.0


class InstalledServer:
    """On a Unix socket in a temporary folder, writing a file as the embedded one does."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="redis-"))
        self._socket = self._folder / "redis.sock"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"unix://{self._socket}"

    def start(self) -> None:
        settings = ["--port", "0", "--unixsocket", str(self._socket), "--appendonly", "yes"]
        self._process = subprocess.Popen(
            ["redis-server", *settings, "--dir", str(self._folder)], stdout=subprocess.DEVNULL
        )
        deadline = time.monotonic() + START_S
        while not self._socket.exists():
            assert self._process.poll() is None, "redis-server ended at once"
            assert time.monotonic() < deadline, "redis-server did not start"
            time.sleep(0.02)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(START_S)
        shutil.rmtree(self._folder)
