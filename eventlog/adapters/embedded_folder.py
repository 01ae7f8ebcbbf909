"""The folder of an embedded server: one server at a time, and none that a killed process left behind."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import IO

from eventlog.errors import LogRefused

STOP_S = 10.0
"""How long a server left behind may take to write its file and end."""
PREFIX = "gpubinder-"
"""Of temporary folders."""
LOG_NAME = "valkey.log"


def make_temporary() -> Path:
    """A folder that goes with the process; those of processes that were killed go now, with their servers."""
    for log in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{LOG_NAME}"):
        _remove_leftover(log.parent)
    return Path(tempfile.mkdtemp(prefix=PREFIX))


def lock_folder(folder: Path) -> IO[str]:
    """The lock of a folder, ours until closed. Raises LogRefused when another process has it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "gpubinder.lock").open("w", encoding="ascii")
    except OSError as error:
        raise LogRefused(
            f"the embedded Redis cannot use {folder}: {error.strerror}; choose another --data"
        ) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise LogRefused(
            f"{folder} is in use by another gpubinder; stop it or choose another --data folder"
        ) from None
    return lock


def pid_file_of(folder: Path) -> Path:
    """Where the server writes its process number."""
    return folder.resolve() / "valkey.pid"


def end_leftover(folder: Path) -> None:
    """End a server whose owner was killed: it still writes to the folder whose lock we hold.

    Raises LogRefused when it does not end: two servers would write into one file.
    """
    try:
        pid = int(pid_file_of(folder).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return
    deadline = time.monotonic() + STOP_S
    if _serves(pid, folder):
        os.kill(pid, signal.SIGTERM)
    while _serves(pid, folder):
        if time.monotonic() > deadline:
            raise LogRefused(f"process {pid} still writes there and does not end; end it, then start again")
        time.sleep(0.02)


def _serves(pid: int, folder: Path) -> bool:
    """Whether that process works in the folder: another one may have its number by now."""
    try:
        return Path(f"/proc/{pid}/cwd").readlink() == folder.resolve()
    except OSError:
        return False


def _remove_leftover(folder: Path) -> None:
    try:
        lock = lock_folder(folder)
    except LogRefused:  # someone works there, or it is another user's
        return
    with lock:
        end_leftover(folder)
        shutil.rmtree(folder, ignore_errors=True)
