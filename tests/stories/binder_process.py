"""`gpubinder` as a process of its own, as an operator runs it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

STOP_S = 10.0


@dataclass(frozen=True, slots=True)
class BinderProcess:
    """A running `gpubinder`; its log lines are in `log`."""

    process: subprocess.Popen[bytes]
    log: Path

    def kill(self) -> None:
        """SIGKILL, as the kernel does when memory runs out."""
        self.process.kill()
        self.process.wait(STOP_S)

    def wait_killed(self, limit_s: float = 60.0) -> None:
        """Wait until it has ended by a signal."""
        assert self.process.wait(limit_s) < 0, self.log.read_text()


@contextmanager
def gpubinder_up(
    kubeconfig: Path,
    redis: str,
    log: Path,
    module: str = "gpubinder.cli",
    options: tuple[str, ...] = (),
    *,
    command: str = "up",
) -> Iterator[BinderProcess]:
    """Run `up`, or another command, while the context is open; ended with SIGTERM, which it must obey."""
    words = [
        sys.executable,
        "-m",
        module,
        command,
        "--kubeconfig",
        str(kubeconfig),
        "--redis",
        redis,
        *options,
    ]
    with log.open("ab") as output:
        process = subprocess.Popen(words, stdout=output, stderr=output, env=dict(os.environ))
    try:
        yield BinderProcess(process, log)
    finally:
        if process.poll() is None:
            process.terminate()
            began = time.monotonic()
            assert process.wait(STOP_S) == 0, log.read_text()
            assert time.monotonic() - began < STOP_S
