"""Which node the target of a live migration was given, until the log shows its pin (R3).

No claim says so: the VM's claims stay where it runs. A pass that has not seen the pin yet would sell the
units again.
"""

from __future__ import annotations

from collections.abc import Mapping

NAME = "targets"
"""Of the read model in the log."""

Targets = Mapping[str, str]
"""The node, by the pod's uid."""
