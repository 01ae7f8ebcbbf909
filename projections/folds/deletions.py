"""Which VMIs were deleted lately, so that no more go in a minute than are allowed (R24)."""

from __future__ import annotations

from collections.abc import Mapping

NAME = "deletions"
"""Of the read model in the log."""

Deletions = Mapping[str, int]
"""When the deletion was decided, in ms, by the VMI's uid."""
