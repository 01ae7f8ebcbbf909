"""What can go wrong with the log.

LogError
├── LogUnavailable   it cannot be reached or answers with a passing fault: try again
├── LogRefused       it must not be used as it is set up: wrong version, password, eviction, rights
├── EntriesMissed    entries were handed out that this reader has not seen: begin again from a known place
├── LogReplaced      it is not the log that was listed or read for: list again, start cold
└── Fenced           a later leader has committed: stop
"""

from __future__ import annotations


class LogError(Exception):
    """Anything that keeps an operation on the log from succeeding."""


class LogUnavailable(LogError):
    """The store cannot be reached, or is loading, full or read-only at present."""


class LogRefused(LogError):
    """The store is set up in a way that would lose the log, or does not let us in."""


class LogReplaced(LogError):
    """The log was emptied or exchanged since it was last looked at."""

    def __init__(self) -> None:
        super().__init__("the log was emptied or replaced")


class EntriesMissed(LogError):
    """Entries were handed out and did not reach this reader: an answer got lost, or another one reads."""

    def __init__(self, ours: str, theirs: str) -> None:
        super().__init__(f"entries after {ours} up to {theirs} were handed out and did not arrive")
        self.ours = ours
        self.theirs = theirs


class Fenced(LogError):
    """A binder of a later epoch has committed."""

    def __init__(self, ours: int, theirs: int) -> None:
        super().__init__(f"epoch {ours} is fenced: epoch {theirs} has committed")
        self.ours = ours
        self.theirs = theirs
