"""The settings that decisions depend on, as one value: a pass with the same policy decides the same."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """Times are in seconds."""

    is_enabled: bool = True
    """Switched off, gates go without a pin and nothing is placed, moved or lost (R30)."""
    stale_after_s: int = 60
    """A log that says nothing for longer allows no decision (R33): six missed heartbeats."""
    keep_grace_s: int = 300
    """What a node may lack for a while: a device plugin restarts, labels flap (R20, R25)."""
    unschedulable_after_s: int = 120
    """How long the scheduler may fail to place a launcher on its pin before that is a refusal (R13)."""
    rejection_s: int = 600
    """For how long a node that refused a VM is left alone for it (R13)."""
    restart_hold_s: int = 300
    """How long a restarting VM's units wait for it; 0 switches that off (R39)."""
    max_vmi_deletions: int = 5
    """Per minute (R24)."""
