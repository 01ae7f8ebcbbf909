"""What an observer of watch events sees of each object: the sequence of its states, repeats collapsed.

Objects are told apart by what they are, not by random names and uids: `VMI vm1 #2` is the second VMI of vm1,
`Pod vm1 #2` the launcher of it. Real watches of several kinds race, so states are compared per object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby

from kube.port import Json
from tests.recordings.recording import H100, Event

GONE = "gone"
UNPAUSED = "kubevirt.io/virtual-machine-unpaused"


def timelines(events: Iterable[Event]) -> dict[str, list[str]]:
    """The states of each object, by the object's role."""
    seen: dict[str, list[str]] = {}
    roles = Roles()
    for event in events:
        if event.kind in _STATES:
            seen.setdefault(roles.of(event), []).append(state_of(event))
    return {role: [state for state, _ in groupby(states)] for role, states in seen.items()}


def state_of(event: Event) -> str:
    """The object's state in words."""
    return GONE if event.type == "DELETED" else _STATES[event.kind](event.object)


class Roles:
    """Names objects by kind, VM and number, in the order in which they appear."""

    def __init__(self) -> None:
        self._by_uid: dict[str, str] = {}
        self._numbers: dict[str, int] = {}

    def of(self, event: Event) -> str:
        """The object's role, e.g. `Pod vm1 #2`."""
        meta = event.object["metadata"]
        if event.kind in ("Node", "VirtualMachine"):
            return f"{event.kind} {meta['name']}"
        if meta["uid"] not in self._by_uid:
            base = f"{event.kind} {meta['ownerReferences'][0]['name']}"
            self._numbers[base] = self._numbers.get(base, 0) + 1
            self._by_uid[meta["uid"]] = f"{base} #{self._numbers[base]}"
        return self._by_uid[meta["uid"]]


def _vm(obj: Json) -> str:
    status = obj.get("status") or {}
    failures = (status.get("startFailure") or {}).get("consecutiveFailCount", 0)
    parts = [
        status.get("printableStatus") or "new",
        "created" if status.get("created") else "",
        "ready" if status.get("ready") else "",
        f"failures={failures}" if failures else "",
        f"strategy={obj['spec']['runStrategy']}",
        _deleting(obj),
    ]
    return _joined(parts)


def _vmi(obj: Json) -> str:
    status, labels = obj.get("status") or {}, obj["metadata"].get("labels") or {}
    pods = status.get("activePods")
    passed = [entry["phase"] for entry in status.get("phaseTransitionTimestamps") or []]
    parts = [
        status.get("phase") or "new",
        f"node={status['nodeName']}" if status.get("nodeName") else "",
        f"label={labels['kubevirt.io/nodeName']}" if "kubevirt.io/nodeName" in labels else "",
        f"pods={sorted(pods.values())}" if pods else "",
        f"passed={passed}" if passed else "",
        _condition(obj, "Ready"),
        _condition(obj, "PodScheduled"),
        _condition(obj, "LiveMigratable"),
        _deleting(obj),
    ]
    return _joined(parts)


def _pod(obj: Json) -> str:
    spec, status = obj["spec"], obj.get("status") or {}
    gates = [gate["name"] for gate in spec.get("schedulingGates") or []]
    node = obj["metadata"]["labels"].get("kubevirt.io/nodeName")
    parts = [
        status["phase"],
        f"gates={gates}" if gates else "",
        f"node={spec['nodeName']}" if spec.get("nodeName") else "",
        f"label={node}" if node else "",
        status.get("reason", ""),
        _condition(obj, "PodScheduled"),
        _condition(obj, "Ready"),
        _condition(obj, UNPAUSED),
        _deleting(obj),
    ]
    return _joined(parts)


def _node(obj: Json) -> str:
    taints = [f"{t['key'].rpartition('/')[2]}:{t['effect']}" for t in obj["spec"].get("taints") or []]
    units = obj["status"]["allocatable"][H100]
    return _joined([_condition(obj, "Ready"), f"units={units}", f"taints={taints}" if taints else ""])


def _condition(obj: Json, kind: str) -> str:
    found = [c for c in (obj.get("status") or {}).get("conditions") or [] if c["type"] == kind]
    short = kind.rpartition("/")[2]
    return f"{short}={found[0]['status']}/{found[0].get('reason', '')}" if found else ""


def _deleting(obj: Json) -> str:
    return "deleting" if obj["metadata"].get("deletionTimestamp") else ""


def _joined(parts: list[str]) -> str:
    return " ".join(part for part in parts if part)


_STATES: dict[str, Callable[[Json], str]] = {
    "VirtualMachine": _vm,
    "VirtualMachineInstance": _vmi,
    "Pod": _pod,
    "Node": _node,
}
