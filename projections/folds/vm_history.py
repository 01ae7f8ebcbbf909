"""Which VM each VMI was a run of, whether it ran, what it last held and where (R14, R15, R39)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

NAME = "vm_history"
"""Of the read model in the log."""


@dataclass(frozen=True, slots=True)
class Run:
    """One VMI: a run of its VM."""

    namespace: str
    vm_name: str
    vm_uid: str
    has_run: bool = False
    """Whether it was ever Running."""
    told: str = ""
    """The reason that its tenant was last told; empty while it does not wait (R12)."""
    node: str = ""
    """Where its template claims were last held."""
    held: Mapping[str, int] = field(default_factory=dict)
    """Units of its template claims there, by class."""
    ended_ms: int = 0
    """When a pass first saw that it had ended; 0 while it lives."""
    launcher: str = ""
    """The uid of the pod that was last known as its launcher (R28)."""
    refused: str = ""
    """The uid of the launcher whose refusal was last noticed (R13)."""
    has_failed: bool = False
    """Whether it ended as Failed, so that RerunOnFailure restarts its VM."""


VmHistory = Mapping[str, Run]
"""By the VMI's uid."""
