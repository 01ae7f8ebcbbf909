"""Pods that a kubelet refused, as they were last, whether they are still there or not (R13).

A launcher fails, its VMI ends and both go within milliseconds, in any order: who was a launcher, memory says.
Must not know: what is decided of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from pydantic import ValidationError

from binder.core.launchers import refused_by_kubelet
from binder.core.state import Shelf
from model.pods import Pod


def departed_pods(shelf: Shelf[Pod]) -> tuple[Pod, ...]:
    """Failed pods that have gone since the shelf's changes were last taken."""
    found = []
    for _, body in sorted(shelf.departed.items()):
        if b'"Failed"' in body:
            with suppress(ValidationError):
                found.append(shelf.decoder.validate_json(body))
    return tuple(found)


def refused_of(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """Those of the pods that a kubelet refused."""
    return tuple(filter(refused_by_kubelet, pods))
