"""Random events of a small cluster: each puts or deletes one object, or lets time pass.

Nothing keeps an event from contradicting the others: a pod on a node that was never heard of, a claim Bound
without a node, a VMI that lists another's pod.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from tests.binder.properties import raw
from tests.binder.properties.life import Life
from tests.binder.properties.raw import H, Raw, T

Event = tuple[str, object]
"""A kind and its raw object; or `delete` and (kind, key); or `wait` or `silence` and seconds."""

NODES = ("n0", "n1", "n2", "n3")
VMS = ("a", "b", "c")
ORDERS = ("a", "o1", "o2")
CLASSES = ("h", "h2", "t")
PHASES = ("", "Pending", "Scheduling", "Scheduled", "Running", "Running", "Failed", "Succeeded")
DATES = (raw.AT, "2026-12-01T04:00:00Z", "2026-12-01T07:00:00Z")

lives = st.sampled_from((0, 0, 0, 1))
rarely = st.sampled_from((False, False, False, True))
namespaces = st.sampled_from(("x", "x", "x", "y"))
nodes = st.sampled_from(NODES)
vm_names = st.sampled_from(VMS)
orders = st.sampled_from(("", "", "a", "o1", "o1,o2", "o2", "o1, o1,,gone"))
pods = st.tuples(vm_names, st.sampled_from(("0", "1"))).map("".join)
gpus = st.sampled_from(({H: "1"}, {H: "2"}, {H: "1", T: "1"}, {T: "1"}, {H: "0"}, {}))
class_statuses = st.sampled_from(
    ({}, {}, {"nodes": 7, "free": 1}, {"conditions": [{"type": "Ready", "status": "True"}]})
)
budget_statuses = st.sampled_from(
    (
        {},
        {},
        {"used": {"classes": {"h": 2, "old": 1}}},
        {"conditions": [{"type": "Theirs", "status": "True"}]},
    )
)


@st.composite
def _node(draw: st.DrawFn) -> Event:
    name = draw(nodes)
    offered = draw(st.sampled_from(({H: "4"}, {H: "2"}, {H: "2", T: "2"}, {T: "1"}, {H: "0"}, {})))
    look = {
        "labels": draw(st.sampled_from(({}, {"zone": "1"}, {"zone": "2"}, {"zone": "1", "pool": "p"}))),
        "taints": draw(st.sampled_from((raw.TAINTS[0], *raw.TAINTS))),
        "ready": draw(st.sampled_from(("True", "True", "True", "Unknown"))),
        "unschedulable": draw(rarely),
        "memory": draw(st.sampled_from(("16Gi", "3Gi"))),
        "deleted": draw(rarely) and draw(rarely),
    }
    return "Node", raw.node(name, draw(lives), offered, **look)


@st.composite
def _class(draw: st.DrawFn) -> Event:
    name = draw(st.sampled_from(CLASSES))
    spec = {
        "default": draw(st.booleans()),
        "tolerations": draw(st.sampled_from((raw.TOLERATIONS[0], *raw.TOLERATIONS))),
        "nodeSelector": draw(st.sampled_from(({}, {}, {"zone": "1"}))),
        "deleted": draw(rarely),
        "kept": draw(st.booleans()),
        "status": draw(class_statuses),
    }
    return "GPUClass", raw.gpu_class(name, T if name == "t" else H, **spec)


@st.composite
def _vm(draw: st.DrawFn) -> Event:
    strategy = draw(st.sampled_from(("Always", "Always", "RerunOnFailure", "Manual", "Halted", "")))
    args = (draw(namespaces), draw(vm_names), draw(lives), strategy, draw(orders))
    return "VirtualMachine", raw.vm(*args, created=draw(st.sampled_from(DATES)))


@st.composite
def _vmi(draw: st.DrawFn) -> Event:
    name = draw(vm_names)
    look = {
        "vm_life": draw(st.sampled_from((0, 0, 0, 1, None))),
        "vm_name": draw(st.sampled_from((name, name, name, "a"))),
        "orders": draw(orders),
        "gpu_class": draw(st.sampled_from(("", "", "", "h2", "gone"))),
        "node": draw(st.sampled_from(("", *NODES))),
        "pods": draw(st.sampled_from(((), (f"{name}0",), (f"{name}0",), (f"{name}0", f"{name}1"), ("a0",)))),
        "ran": draw(rarely),
        "deleted": draw(rarely),
        "disks": draw(st.sampled_from(((), (), ("d1",)))),
    }
    return "VirtualMachineInstance", raw.vmi(
        draw(namespaces), name, draw(lives), draw(st.sampled_from(PHASES)), **look
    )


STAGES: tuple[Raw, ...] = (
    {"gates": raw.GATES[1]},
    {"gates": raw.GATES[1]},
    {"gates": raw.GATES[2]},
    {"gates": raw.GATES[3]},
    {"pin": True},
    {"pin": True, "node": True, "phase": "Pending"},
    {"pin": True, "node": True, "phase": "Running"},
    {"node": True, "phase": "Running"},
    {"pin": True, "node": True, "phase": "Failed", "reason": "OutOfnvidia.com/H100"},
    {"pin": True, "node": True, "phase": "Failed"},
    {"pin": True, "unschedulable": True},
    {"phase": "Succeeded"},
)


@st.composite
def _launcher(draw: st.DrawFn) -> Event:
    pod, node = draw(pods), draw(nodes)
    stage = {key: node if value is True and key in ("pin", "node") else value
             for key, value in draw(st.sampled_from(STAGES)).items()}  # fmt: skip
    look = stage | {
        "gpus": draw(gpus),
        "memory": draw(st.sampled_from(("1Gi", "1Gi", "4Gi"))),
        "migration": draw(rarely),
        "deleted": draw(rarely),
        "priority": draw(st.sampled_from((0, 0, 5))),
        "created": draw(st.sampled_from(DATES)),
        "selector": draw(st.sampled_from(({}, {}, {"zone": "1"}))),
        "terms": draw(
            st.sampled_from(((), (), (_term("NotIn", "2"),), (_term("In", "1"), _term("In", "2"))))
        ),
        "disks": draw(st.sampled_from(((), (), ("d1",), ("d1", "d2")))),
    }
    vmi_name = draw(st.sampled_from((pod[0], pod[0], pod[0], "a")))
    return "Pod", raw.launcher(draw(namespaces), pod, vmi_name, draw(lives), **look)


def _term(operator: str, value: str) -> Raw:
    return {"matchExpressions": [{"key": "zone", "operator": operator, "values": [value]}]}


@st.composite
def _raw_pod(draw: st.DrawFn) -> Event:
    phase = draw(st.sampled_from(("Pending", "Running", "Running", "Succeeded")))
    name = draw(st.sampled_from(("p1", "p2")))
    return "Pod", raw.raw_pod(draw(namespaces), name, draw(st.sampled_from(("", *NODES))), draw(gpus), phase)


@st.composite
def _order(draw: st.DrawFn) -> Event:
    namespace = draw(namespaces)
    users = ("", "", *(raw.uid_of("VM", namespace, name, 0) for name in VMS), raw.vmi_uid(namespace, "a", 0))
    look = _claim_look(draw) | {"vm_uid": draw(st.sampled_from(users)), "life": draw(lives)}
    class_name = draw(st.sampled_from((*CLASSES, "gone")))
    return "GPUClaim", raw.claim(
        namespace, draw(st.sampled_from(ORDERS)), class_name, draw(st.sampled_from((1, 1, 2))), **look
    )


@st.composite
def _template_claim(draw: st.DrawFn) -> Event:
    """Now and then somebody else's claim of that name."""
    namespace, name, life = draw(namespaces), draw(vm_names), draw(lives)
    class_name = draw(st.sampled_from(CLASSES))
    claim_name = f"{name}-{class_name}-{raw.vmi_uid(namespace, name, life)[:8]}"
    look = _claim_look(draw) | {"vm_uid": draw(st.sampled_from(("", raw.uid_of("VM", namespace, name, 0))))}
    look["vmi"] = draw(st.sampled_from(((name, life), (name, life), (name, life), ("a", 0), None)))
    return "GPUClaim", raw.claim(namespace, claim_name, class_name, draw(st.sampled_from((1, 1, 2))), **look)


def _claim_look(draw: st.DrawFn) -> Raw:
    phase = draw(st.sampled_from(("Pending", "Bound", "Bound", "Bound", "Lost")))
    is_odd = draw(rarely) and draw(rarely)
    node = draw(nodes) if (phase == "Bound") != is_odd else ""
    look = {
        "phase": phase,
        "node": node,
        "deleted": draw(rarely) and draw(rarely),
        "kept": draw(st.booleans()),
    }
    return look | {
        "marked": draw(st.sampled_from(("", "", "NoRoom"))),
        "bound_at": draw(st.sampled_from(DATES)),
    }


@st.composite
def _budget(draw: st.DrawFn) -> Event:
    limits = draw(st.sampled_from(({}, {"h": 1}, {"h": 3, "t": 1})))
    labels = draw(st.sampled_from(({}, {"team": "r"})))
    parent = draw(st.sampled_from(("", "", "b1", "b2", "gone")))
    name, status = draw(st.sampled_from(("b1", "b2"))), draw(budget_statuses)
    return "GPUBudget", raw.budget(name, parent, limits, labels, status)


@st.composite
def _deletion(draw: st.DrawFn) -> Event:
    """Of something that may be there."""
    kind, object_ = draw(st.one_of(_CHANGES))
    assert isinstance(object_, dict)
    meta = object_["metadata"]
    return "delete", (kind, (meta["namespace"], meta["name"]))


_CHANGES: tuple[st.SearchStrategy[Event], ...] = (
    _node(), _node(), _class(), _vm(), _vmi(), _vmi(), _launcher(), _launcher(), _raw_pod(), _order(),
    _template_claim(), _budget(),
    st.tuples(namespaces, st.sampled_from(({}, {"team": "r"}))).map(
        lambda one: ("Namespace", raw.namespace(*one))
    ),
    st.tuples(namespaces, st.sampled_from(("d1", "d2")), st.sampled_from(("", "v1", "v2", "gone")),
              st.sampled_from(("", "wait", "now"))).map(
        lambda one: ("PersistentVolumeClaim", raw.volume_claim(*one))
    ),
    st.tuples(st.sampled_from(("v1", "v2")), st.sampled_from(([], ["1"], ["1", "2"]))).map(
        lambda one: ("PersistentVolume", raw.volume(*one))
    ),
    st.sampled_from((("wait", "WaitForFirstConsumer"), ("now", "Immediate"))).map(
        lambda one: ("StorageClass", raw.storage_class(*one))
    ),
)  # fmt: skip
waits = st.sampled_from((("wait", 1), ("wait", 30), ("wait", 200), ("wait", 400), ("silence", 90)))
events: st.SearchStrategy[Event] = st.one_of(*_CHANGES, *_CHANGES, _deletion(), _deletion(), waits)


def happen(life: Life, event: Event) -> None:
    """Carry the event out."""
    what, value = event
    match what:
        case "wait":
            assert isinstance(value, int)
            life.pass_time(value)
        case "silence":
            assert isinstance(value, int)
            life.now_ms += 1000 * value
        case "delete":
            assert isinstance(value, tuple)
            life.delete(*value)
        case kind:
            assert isinstance(value, dict)
            life.put(kind, value)


def start(life: Life) -> None:
    """What most clusters have: two nodes and two classes."""
    begin: Callable[[Raw], None] = lambda one: life.put("Node", one)  # noqa: E731
    begin(raw.node("n0", 0, {H: "2", T: "2"}, labels={"zone": "1"}))
    begin(raw.node("n1", 0, {H: "4"}, labels={"zone": "2"}))
    life.put("GPUClass", raw.gpu_class("h", H, default=True))
    life.put("GPUClass", raw.gpu_class("t", T))
