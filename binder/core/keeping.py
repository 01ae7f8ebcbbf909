"""What keeps a node from keeping the sets that it holds, and from when on (R20, R25).

A device plugin restarts, a label flaps, a kubelet is away for a minute: such troubles count only after
`keep_grace`. A node that is gone and a NoExecute taint count at once. The taints `not-ready` and
`unreachable` are the readiness of the node in other words, so they have its grace. Must not know: what is
done about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from binder.core.nodes import has_labels, tolerates
from binder.core.policy import Policy
from binder.core.room import NodeRoom
from binder.core.sets import ClaimSet
from model.claims import GPUClass
from model.instants import parse_rfc3339
from model.nodes import Node
from model.taints import Taint

READINESS_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class Kind(StrEnum):
    """What is wrong, in the words of messages."""

    GONE = "is gone"
    DELETING = "is being deleted"
    NOT_READY = "is not Ready"
    NO_EXECUTE = "has a NoExecute taint"
    SELECTOR = "lacks labels of the class"
    SHORT = "offers less than is held there"
    CORDONED = "is cordoned"
    NO_SCHEDULE = "has a NoSchedule taint"


IDLE_ONLY = frozenset({Kind.CORDONED, Kind.NO_SCHEDULE})
"""Troubles that move only sets that nothing runs with (R25)."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """One thing wrong with a node, for all its sets or for those of one class or resource."""

    kind: Kind
    of: str = ""
    """The class, or for SHORT the resource; empty: every set."""
    detail: str = ""
    tolerated_until_ms: int | None = None
    """For a taint that is tolerated for a while."""
    is_immediate: bool = False

    def name(self, node: str) -> str:
        """Under which its beginning is remembered."""
        return " ".join(filter(None, ("node", node, self.kind.name.lower(), self.of, self.detail)))

    def concerns(self, claim_set: ClaimSet) -> bool:
        """Whether the set is one of those that the trouble is for; SHORT is for as many as must leave."""
        if not self.of:
            return True
        return any(member.gpu_class.metadata.name == self.of for member in claim_set.members)


def troubles_of(
    node: Node | None, classes: Iterable[GPUClass], room: NodeRoom, held: Mapping[str, int]
) -> tuple[Trouble, ...]:
    """All that is wrong with a node for the classes whose claims it holds; `held` are their units."""
    if node is None:
        return (Trouble(Kind.GONE, is_immediate=True),)
    if node.metadata.deletion_timestamp is not None:
        return (Trouble(Kind.DELETING, is_immediate=True),)
    found = [] if node.is_ready else [Trouble(Kind.NOT_READY)]
    if node.spec.unschedulable:
        found.append(Trouble(Kind.CORDONED))
    for gpu_class in classes:
        name = gpu_class.metadata.name
        if not has_labels(node, gpu_class.spec.node_selector):
            found.append(Trouble(Kind.SELECTOR, name))
        found += [trouble for taint in node.spec.taints for trouble in _of_taint(taint, gpu_class)]
    for resource, units in held.items():
        if room.allocatable.get(resource, 0) < units:
            found.append(Trouble(Kind.SHORT, resource))
    return tuple(dict.fromkeys(found))


def _of_taint(taint: Taint, gpu_class: GPUClass) -> Iterable[Trouble]:
    name, detail = gpu_class.metadata.name, f"{taint.key}={taint.value}"
    matching = [t for t in gpu_class.spec.tolerations if tolerates(t, taint)]
    if taint.effect == "NoSchedule" and not matching:
        yield Trouble(Kind.NO_SCHEDULE, name, detail)
    if taint.effect != "NoExecute":
        return
    if not matching:
        if taint.key in READINESS_TAINTS:
            yield Trouble(Kind.NOT_READY)
        else:
            yield Trouble(Kind.NO_EXECUTE, name, detail, is_immediate=True)
        return
    seconds = [t.toleration_seconds for t in matching if t.toleration_seconds is not None]
    added_ms = parse_rfc3339(taint.time_added or "")
    if seconds:
        until = None if added_ms is None else added_ms + 1000 * max(0, min(seconds))
        yield Trouble(Kind.NO_EXECUTE, name, f"{detail} {min(seconds)}", until)


def counts_from_ms(trouble: Trouble, since_ms: int, policy: Policy) -> int:
    """When the trouble begins to count."""
    if trouble.is_immediate:
        return since_ms
    if trouble.kind is Kind.NO_EXECUTE:
        if trouble.tolerated_until_ms is not None:
            return trouble.tolerated_until_ms
        return since_ms + 1000 * max(0, int(trouble.detail.rpartition(" ")[2]))
    return since_ms + 1000 * policy.keep_grace_s
