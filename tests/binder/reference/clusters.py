"""Random small clusters for the reference: launchers that wait, and what others already have.

What a first pass does before and after the gated launchers is kept out: nothing has ended, nothing that runs
is split, no node has a trouble that counts at once.
"""

from __future__ import annotations

from hypothesis import strategies as st

from tests.binder.properties import raw
from tests.binder.properties.raw import H, Raw, T
from tests.binder.reference.cluster import Cluster

NODES = ("n0", "n1", "n2", "n3", "n4")
AGES = (raw.AT, "2026-12-01T04:00:00Z", "2026-12-01T07:00:00Z")
KINDS = (
    "Node", "GPUClass", "VirtualMachine", "VirtualMachineInstance", "Pod", "GPUClaim",
    "PersistentVolumeClaim", "PersistentVolume", "StorageClass",
)  # fmt: skip

nodes = st.sampled_from(NODES)
rarely = st.sampled_from((*[False] * 9, True))
gpus = st.sampled_from(({H: "1"}, {H: "1"}, {H: "2"}, {H: "2"}, {H: "3"}, {H: "1", T: "1"}, {T: "2"}, {}))


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Two to five nodes, one to three classes of two resources, up to five VMs that wait and two that run."""
    cluster: Cluster = {kind: [] for kind in KINDS}
    cluster["Node"] = [_node(draw, name) for name in NODES[: draw(st.integers(2, 5))]]
    cluster["GPUClass"] = _classes(draw)
    cluster["StorageClass"] = [
        raw.storage_class("late", "WaitForFirstConsumer"),
        raw.storage_class("now", "Immediate"),
    ]
    cluster["PersistentVolume"] = [
        raw.volume("v1", ["1"]),
        raw.volume("v2", ["2", "3"]),
        raw.volume("v3", []),
    ]
    for disk in draw(st.sampled_from((("d1", "d2"), ("d1", "d2"), ("d1", "d2"), ("d1",), ()))):
        bound = draw(st.sampled_from(("v1", "v1", "v2", "v2", "v3", "", "gone")))
        storage = draw(st.sampled_from(("late", "late", "late", "now")))
        cluster["PersistentVolumeClaim"].append(raw.volume_claim("x", disk, bound, storage))
    for name in ("a", "b", "c", "d", "e")[: draw(st.integers(1, 5))]:
        _add_waiting(draw, cluster, name)
    for name in ("r", "s")[: draw(st.integers(0, 2))]:
        _add_running(draw, cluster, name)
    for name in ("p1", "p2")[: draw(st.integers(0, 2))]:
        phase = draw(st.sampled_from(("Running", "Succeeded")))
        cluster["Pod"].append(raw.raw_pod("x", name, draw(nodes), draw(gpus), phase))
    if draw(rarely):  # a pod that looks like the VMI's own, and is not listed
        cluster["Pod"].append(
            raw.launcher("x", "forged", "a", 0, gpus={H: "1"}, node=draw(nodes), phase="Running")
        )
    return cluster


def refusals(cluster: Cluster) -> st.SearchStrategy[dict[str, set[str]]]:
    """Nodes by the namespace and uid of the VM that they refused."""
    names = st.sets(st.sampled_from([one["metadata"]["name"] for one in cluster["Node"]]), max_size=2)
    return st.fixed_dictionaries({f"x/{raw.uid_of('VM', 'x', name, 0)}": names for name in "ab"})


def _node(draw: st.DrawFn, name: str) -> Raw:
    offered = draw(
        st.sampled_from(({H: "4"}, {H: "2"}, {H: "3", T: "2"}, {H: "1", T: "4"}, {T: "2"}, {H: "0"}, {}))
    )
    look = {
        "labels": draw(st.sampled_from(({"zone": "1"}, {"zone": "1"}, {"zone": "2"}, {"zone": "3"}, {}))),
        "taints": draw(st.sampled_from((*[raw.TAINTS[0]] * 6, raw.TAINTS[1]))),
        "ready": draw(st.sampled_from((*["True"] * 9, "False"))),
        "unschedulable": draw(rarely),
        "memory": draw(st.sampled_from(("16Gi", "4Gi", "2Gi"))),
    }
    return raw.node(name, 0, offered, **look)


def _classes(draw: st.DrawFn) -> list[Raw]:
    found = []
    for name, resource in (("h", H), ("t", T), ("h2", H))[: draw(st.sampled_from((2, 2, 2, 3, 3, 1)))]:
        spec = {
            "default": draw(st.sampled_from((name == "h", name == "h", True, False))),
            "tolerations": draw(st.sampled_from(raw.TOLERATIONS[:2])),
            "nodeSelector": draw(st.sampled_from(({}, {}, {}, {}, {"zone": "1"}))),
        }
        found.append(raw.gpu_class(name, resource, **spec))
    return found


def _add_waiting(draw: st.DrawFn, cluster: Cluster, name: str) -> None:
    """A VM, its VMI and gated launcher; orders that it names, some held; a template claim now and then."""
    names = draw(st.sampled_from((*[""] * 20, "o1", "o1", "o2", "o2", "o1,o2", "gone", "r-o")))
    cluster["VirtualMachine"].append(
        raw.vm("x", name, 0, "Always", names, created=draw(st.sampled_from(AGES)))
    )
    vmi = raw.vmi(
        "x", name, 0, "Scheduling", vm_life=0, orders=names, pods=(f"{name}0",),
        gpu_class=draw(st.sampled_from((*[""] * 30, "h2", "h2", "t", "none"))),
        disks=draw(st.sampled_from(((), (), (), (), (), (), ("d2",)))),
    )  # fmt: skip
    terms = st.sampled_from(
        ((), (), (), (), (), (_term("NotIn", "1"),), (_term("In", "2"), _term("In", "1", "3")))
    )
    pod = raw.launcher(
        "x", f"{name}0", name, 0, gpus=draw(gpus), terms=draw(terms),
        memory=draw(st.sampled_from(("1Gi", "3Gi"))),
        disks=draw(st.sampled_from(((), (), (), (), (), ("d1",)))),
        selector=draw(st.sampled_from(({}, {}, {}, {}, {}, {"zone": "1"}))),
        gates=draw(st.sampled_from(raw.GATES[1:3])), priority=draw(st.sampled_from((0, 0, 7))),
        created=draw(st.sampled_from(AGES)),
    )  # fmt: skip
    cluster["VirtualMachineInstance"].append(vmi)
    cluster["Pod"].append(pod)
    for order in filter(None, names.split(",")):
        if order in ("o1", "o2") and order not in [one["metadata"]["name"] for one in cluster["GPUClaim"]]:
            users = (
                "",
                "",
                raw.uid_of("VM", "x", name, 0),
                raw.uid_of("VM", "x", name, 0),
                raw.uid_of("VM", "x", "a", 0),
                "gone",
            )
            cluster["GPUClaim"].append(
                _claim(draw, order, draw(st.sampled_from(("h", "h", "h", "t", "t", "none"))), users)
            )
    if draw(rarely):
        life = draw(st.sampled_from((0, 0, 0, None)))
        owned = {"vmi": (name, life)} if life is not None else {}
        claim_name = f"{name}-h-{raw.vmi_uid('x', name, 0)[:8]}"
        cluster["GPUClaim"].append(_claim(draw, claim_name, "h", ("",), **owned))


def _claim(draw: st.DrawFn, name: str, class_name: str, users: tuple[str, ...], **look: object) -> Raw:
    phase = draw(st.sampled_from(("Pending", "Bound", "Bound", "Lost")))
    look |= {
        "phase": phase,
        "vm_uid": draw(st.sampled_from(users)),
        "node": draw(nodes) if phase == "Bound" else "",
    }
    return raw.claim("x", name, class_name, draw(st.sampled_from((1, 1, 2))), **look)


def _add_running(draw: st.DrawFn, cluster: Cluster, name: str) -> None:
    """A VM that runs on a node, with its template claim there and an order that nobody else may use.

    The node is there: what is on one that has gone moves before anybody is told why he waits.
    """
    where = draw(st.sampled_from([one["metadata"]["name"] for one in cluster["Node"]]))
    user = raw.uid_of("VM", "x", name, 0)
    cluster["VirtualMachine"].append(raw.vm("x", name, 0, "Always", f"{name}-o"))
    cluster["VirtualMachineInstance"].append(
        raw.vmi("x", name, 0, "Running", vm_life=0, orders=f"{name}-o", pods=(f"{name}0",), node=where)
    )
    asked = draw(st.sampled_from(({H: "2"}, {H: "1"}, {H: "3", T: "1"})))
    is_on = draw(st.sampled_from(({"node": where, "phase": "Running"}, {"pin": where})))
    cluster["Pod"].append(raw.launcher("x", f"{name}0", name, 0, gpus=asked, **is_on))
    bound = {"phase": "Bound", "node": where, "vm_uid": user}
    cluster["GPUClaim"].append(raw.claim("x", f"{name}-o", "h", 1, **bound))
    if draw(st.booleans()):
        cluster["GPUClaim"].append(
            raw.claim("x", f"{name}-h-{raw.vmi_uid('x', name, 0)[:8]}", "h", 1, vmi=(name, 0), **bound)
        )


def _term(operator: str, *values: str) -> Raw:
    return {"matchExpressions": [{"key": "zone", "operator": operator, "values": list(values)}]}
