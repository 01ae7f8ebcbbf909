"""`gpubinder` as a process: what a user types, and what comes back."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

LIMIT_S = 25.0


def gpubinder(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run to the end, within a limit."""
    return subprocess.run(
        [sys.executable, "-m", "gpubinder.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env={**os.environ, **(env or {})},
    )


def start(log: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """Start it; its output goes to `log`."""
    with log.open("ab") as output:
        command = [sys.executable, "-m", "gpubinder.cli", *arguments]
        return subprocess.Popen(command, stdout=output, stderr=output)
