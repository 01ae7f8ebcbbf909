"""What ends a command: one line that names the thing, the cause and the next step."""

from __future__ import annotations


class CommandError(Exception):
    """A command that cannot go on; `str()` is the line for the user, the exit code is 1."""
