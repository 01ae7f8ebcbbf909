"""Which reason each waiting VMI was last told, so that it is told once per change of reason (R12)."""

from __future__ import annotations

from collections.abc import Mapping

from model.reasons import Reason

Told = Mapping[str, Reason]
"""The last reason by VMI uid; a VMI that no longer waits is not in it."""
