"""The settings that decisions depend on, as one value: a pass with the same policy decides the same."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """Times are in seconds."""

    stale_after_s: int = 60
    """A log that says nothing for longer allows no decision (R33): six missed heartbeats."""
