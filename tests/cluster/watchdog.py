"""Ends the servers of a test run that could not do so itself, because it was killed.

A process of its own reads the groups to watch from a pipe; the pipe's end means that the run has ended,
however it did. Run as a script it is that process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress


class Watchdog:
    """Watches process groups until told that they were stopped."""

    def __init__(self) -> None:
        # A session of its own: a Ctrl-C in the terminal must not end it before the run.
        self._popen = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, text=True, start_new_session=True
        )

    def add(self, group: int) -> None:
        """Ends this group when the run dies."""
        self._tell(f"+{group}")

    def remove(self, group: int) -> None:
        """Forgets a group that was stopped: its number may come to name another."""
        self._tell(f"-{group}")

    def close(self) -> None:
        """Ends the watchdog, and the groups that are still watched."""
        assert self._popen.stdin
        self._popen.stdin.close()
        self._popen.wait()

    def _tell(self, line: str) -> None:
        assert self._popen.stdin
        print(line, file=self._popen.stdin, flush=True)


def main() -> None:
    """Reads `+GROUP` and `-GROUP` lines to the end of the input, then kills what was not taken back."""
    groups: set[int] = set()
    for line in sys.stdin:
        (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
    for group in groups:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
