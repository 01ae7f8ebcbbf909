"""Which replica watches which kind: rendezvous hashing, two watchers a kind. Pure.

Each kind goes to the replicas that score highest for it; when one comes or goes, only the kinds it scores
highest for change hands. Everyone who knows the same replicas decides the same without a word.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection

WATCHERS_PER_KIND = 2
"""One may die without a gap; append-once takes the second report of each change."""


def kinds_of(replica: str, replicas: Collection[str], kinds: Collection[str]) -> frozenset[str]:
    """The kinds that one of the replicas watches; it counts itself whether it is listed or not."""
    everyone = {replica, *replicas}
    return frozenset(kind for kind in kinds if replica in watchers_of(kind, everyone))


def watchers_of(kind: str, replicas: Collection[str]) -> tuple[str, ...]:
    """The replicas that watch a kind, best score first."""
    ranked = sorted(set(replicas), key=lambda replica: (_score(kind, replica), replica), reverse=True)
    return tuple(ranked[:WATCHERS_PER_KIND])


def _score(kind: str, replica: str) -> bytes:
    return hashlib.sha256(f"{kind}\0{replica}".encode()).digest()
