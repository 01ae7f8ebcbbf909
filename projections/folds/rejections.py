"""Which nodes have refused a VM, and until when they are left alone (R13, R14).

Keyed by the VM's namespace and uid: the template claims go with a failed VMI, the memory does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

NAME = "rejections"
"""Of the read model in the log."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """One node's refusal. It ends with time, or when the node is another one or has changed."""

    node_uid: str
    look: str
    """Digest of the node's allocatable, taints and readiness when it refused."""
    until_ms: int
    why: str
    pod_uid: str = ""
    """The launcher that was refused."""


Rejections = Mapping[str, Mapping[str, Rejection]]
"""By the VM, as `namespace/uid`, then the node's name."""
