"""The servers' processes: each is its own group, is watched while it runs, and is stopped by its pid.

Must not know what the servers are.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

POLL_S = 0.05
STOP_S = 5.0
LOG_TAIL_LINES = 5


class ProcessDied(Exception):
    """A server ended while it should run; the text holds the end of its log."""


class NotReady(Exception):
    """A server lives and does not become ready in time."""


class Process:
    """One running server, its output in a log file."""

    def __init__(self, command: list[str], log: Path, cwd: Path) -> None:
        self.name = Path(command[0]).name
        self._log = log
        with log.open("wb") as out:
            self._popen = subprocess.Popen(
                command,
                stdout=out,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd=cwd,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process id, which is its group's id as well."""
        return self._popen.pid

    def check(self) -> None:
        """Raises ProcessDied when it has ended."""
        code = self._popen.poll()
        if code is not None:
            tail = "\n".join(self._log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:])
            raise ProcessDied(f"{self.name} ended with exit code {code}; the end of {self._log}:\n{tail}")

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the whole group, e.g. SIGSTOP to play a hanging server."""
        if self._popen.poll() is None:
            os.killpg(self.pid, number)

    def stop(self) -> None:
        """Ends it: SIGTERM, and SIGKILL after `STOP_S` seconds."""
        self.signal(signal.SIGTERM)
        self.signal(signal.SIGCONT)
        try:
            self._popen.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
            self._popen.wait(STOP_S)


def wait_for(
    what: str, is_ready: Callable[[], bool], processes: list[Process], limit_s: float = 60.0
) -> None:
    """Polls until `is_ready`; raises ProcessDied once one of `processes` ends, NotReady after `limit_s`."""
    deadline = time.monotonic() + limit_s
    while True:
        for process in processes:
            process.check()
        if is_ready():
            return
        if time.monotonic() > deadline:
            raise NotReady(f"{what} did not become ready within {limit_s:.0f} s")
        time.sleep(POLL_S)


def free_ports(count: int) -> list[int]:
    """Loopback ports that were free a moment ago; another process may still take one first."""
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_STREAM) for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()
