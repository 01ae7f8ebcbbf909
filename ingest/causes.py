"""Why a watch loop begins again, as one of few words: a label of a metric must not grow with the messages."""

from __future__ import annotations

from enum import StrEnum

from eventlog.errors import LogError, LogReplaced
from kube.errors import Forbidden, Gone, NotFound, TooManyRequests, Unauthorized, Unreachable


class Cause(StrEnum):
    """What made it."""

    EXPIRED = "expired"
    """410: what the version named is gone; a fresh list follows."""
    REPLACED = "log-replaced"
    """The log is another one; a fresh list follows."""
    LOG = "log"
    """Redis is away, or refuses."""
    THROTTLED = "throttled"
    """429."""
    REFUSED = "refused"
    """401 or 403."""
    UNREACHABLE = "unreachable"
    """The connection was refused, broke or hung."""
    ABSENT = "absent"
    """The kind is not served (yet)."""
    OTHER = "other"
    """Any other answer of the API server."""


_BY_ERROR: tuple[tuple[type[Exception], Cause], ...] = (
    (Gone, Cause.EXPIRED),
    (LogReplaced, Cause.REPLACED),
    (LogError, Cause.LOG),
    (TooManyRequests, Cause.THROTTLED),
    (Unauthorized, Cause.REFUSED),
    (Forbidden, Cause.REFUSED),
    (NotFound, Cause.ABSENT),
    (Unreachable, Cause.UNREACHABLE),
)


def cause_of(error: Exception) -> Cause:
    """The first that the error is one of."""
    return next((cause for kind, cause in _BY_ERROR if isinstance(error, kind)), Cause.OTHER)
