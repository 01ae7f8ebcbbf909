"""When the status of a class or a budget was last decided on, while it may not say yet what it should.

So none is written more often than allowed, also by the next leader, and none that was put off is forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping

NAME = "statuses"
"""Of the read model in the log."""

Statuses = Mapping[str, int]
"""Milliseconds since the epoch, 0 for never, by the object's field in the ledger."""
