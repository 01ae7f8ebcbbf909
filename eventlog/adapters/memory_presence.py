"""Presence in memory, for simulations and tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class MemoryPresence:
    """`now_ms` is the clock of all replicas."""

    now_ms: Callable[[], int]
    _shown: dict[str, int] = field(default_factory=dict)

    async def show(self, name: str) -> None:
        """See Presence."""
        self._shown[name] = self.now_ms()

    async def present(self, within_ms: int) -> list[str]:
        """See Presence."""
        return sorted(name for name, at_ms in self._shown.items() if self.now_ms() - at_ms <= within_ms)
