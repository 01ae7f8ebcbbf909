"""Instants: milliseconds since the epoch inside, RFC 3339 with whole seconds in Kubernetes objects.

Only conversions: nothing here knows what time it is.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


@lru_cache(64)
def rfc3339(instant_ms: int) -> str:
    """The instant as Kubernetes writes it, cut to seconds; a pass says the same one often."""
    return datetime.fromtimestamp(instant_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_rfc3339(text: str) -> int | None:
    """Milliseconds since the epoch, or None where the text is no timestamp."""
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (instant - _EPOCH) // _MILLISECOND if instant.tzinfo else None
