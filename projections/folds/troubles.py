"""Since when something has been wrong that is allowed to be wrong for a while (R13, R20, R25).

Kubernetes does not say since when a label is missing or a number too small: the first pass that sees it does.
"""

from __future__ import annotations

from collections.abc import Mapping

NAME = "troubles"
"""Of the read model in the log."""

Troubles = Mapping[str, int]
"""Milliseconds since the epoch, by what is wrong with what, e.g. `node gpu-1 not-ready`."""
