"""What must always hold, looked at from outside: on raw objects and decisions, not on the core's index."""

from __future__ import annotations

from binder.core.run_pass import PassResult
from model.decisions import BindClaim, DeleteVmi, PinLauncher
from tests.binder.properties.loop import Loop
from tests.binder.reference.choice import Reference
from tests.binder.reference.cluster import (
    Cluster,
    Raw,
    free_of,
    full_name,
    gates,
    name,
    named_by,
    namespace,
    owner_uid,
    place_of,
    request,
    resource_of,
    serving,
    uid,
    units_on,
)

MINUTE_MS = 60_000


def no_unit_is_booked_twice(loop: Loop, result: PassResult) -> None:
    """Laws 1 and 2: never more than a node ever offered; what is new on a node has room there by R26."""
    cluster = loop.cluster()
    resources = sorted({one["spec"]["resourceName"] for one in cluster["GPUClass"]})
    for node in {one["status"].get("nodeName", "") for one in cluster["GPUClaim"]} - {""}:
        for resource in resources:
            held = units_on(node, cluster["GPUClaim"], resource, cluster)
            assert held <= loop.most.get((node, resource), 0), (
                f"law 1: {node} has {held} of {resource} booked"
            )
    pinned = {one.pod.uid: one.node for one in result.decisions if isinstance(one, PinLauncher)}
    for pod in (one for one in cluster["Pod"] if uid(one) in pinned):
        (node,) = [one for one in cluster["Node"] if name(one) == pinned[uid(pod)]]
        free = free_of(node, cluster)
        short = [resource for resource in (*request(pod), "pods") if free.get(resource, 0) < 0]
        assert not short, f"law 2: {name(node)} has not had the {short} that {full_name(pod)} was given"


def sets_are_whole(loop: Loop) -> None:
    """Laws 3 and 4: no set partly Lost, or elsewhere than its launcher once that is ungated."""
    cluster = loop.cluster()
    for vmi in cluster["VirtualMachineInstance"]:
        vm = [one for one in cluster["VirtualMachine"] if full_name(one) == full_name(vmi)]
        orders = named_by(vm[0], cluster) if vm else []
        mine = [
            c for c in serving(vmi, cluster) if owner_uid(c, "VirtualMachineInstance") or name(c) in orders
        ]
        mine = [claim for claim in mine if resource_of(claim, cluster) and not is_leaving(claim)]
        phases = {claim["status"]["phase"] for claim in mine}
        assert not {"Lost", "Bound"} <= phases, f"law 3: the set of {full_name(vmi)} is partly Lost"
        nodes = {claim["status"].get("nodeName", "") for claim in mine} - {""}
        pods = [pod for pod in cluster["Pod"] if uid(pod) in vmi["status"]["activePods"] and not gates(pod)]
        alive = [pod for pod in pods if pod["status"]["phase"] not in ("Failed", "Succeeded")]
        for pod in alive:
            at = place_of(pod, cluster)
            assert nodes in (set(), {at}), f"laws 3, 4: {full_name(pod)} is on {at}, its claims on {nodes}"


def is_leaving(one: Raw) -> bool:
    return one["metadata"].get("deletionTimestamp") is not None


def deletions_are_allowed(loop: Loop, result: PassResult, before: Cluster, recent: list[int]) -> None:
    """Law 5: R21 and R24. `recent` are the times of deletions so far, which this adds to."""
    for decision in result.decisions:
        if not isinstance(decision, DeleteVmi):
            continue
        (vmi,) = [one for one in before["VirtualMachineInstance"] if uid(one) == decision.vmi.uid]
        vm = [one for one in before["VirtualMachine"] if full_name(one) == full_name(vmi)]
        assert [one["spec"]["runStrategy"] for one in vm] == ["Always"], "law 5: it would not come back"
        assert vmi["status"]["phase"] == "Running", "law 5: it does not run"
        recent.append(loop.life.now_ms)
    lately = [at for at in recent if loop.life.now_ms - at < MINUTE_MS]
    assert len(lately) <= loop.life.policy.max_vmi_deletions, "law 5: too many in a minute"


def budgets_hold(loop: Loop, result: PassResult, before: Cluster) -> None:
    """Law 7: where a claim was bound that had never been, every budget over it has room still."""
    cluster = loop.cluster()
    held = {full_name(one) for one in before["GPUClaim"] if one["status"]["phase"] != "Pending"}
    bound = {f"{one.claim}" for one in result.decisions if isinstance(one, BindClaim)} - held
    for claim in (one for one in cluster["GPUClaim"] if full_name(one) in bound):
        wanted = claim["spec"]["className"]
        for budget in over(namespace(claim), cluster):
            limit = budget["spec"]["classes"].get(wanted)
            under = [
                one
                for one in cluster["GPUClaim"]
                if one["spec"]["className"] == wanted
                and one["status"]["phase"] != "Pending"
                and budget in over(namespace(one), cluster)
            ]
            used = sum(one["spec"]["units"] for one in under)
            assert limit is None or used <= limit, f"law 7: budget {name(budget)} has {used} of {limit}"


def over(where: str, cluster: Cluster) -> list[Raw]:
    """The budgets that select a namespace, and those above them; the loops make no cycles."""
    labels = next((n["metadata"].get("labels", {}) for n in cluster["Namespace"] if name(n) == where), None)
    if labels is None:
        return []
    by_name = {name(one): one for one in cluster["GPUBudget"]}
    found = {
        key
        for key, one in by_name.items()
        if all(labels.get(k) == v for k, v in one["spec"]["namespaceSelector"]["matchLabels"].items())
    }
    for _ in by_name:
        found |= {by_name[key]["spec"]["parent"] for key in found} & by_name.keys()
    return [by_name[key] for key in sorted(found)]


def nobody_waits_for_nothing(loop: Loop, result: PassResult) -> None:
    """Law 6, once nothing more happens: no node would take a set that waits; the reason is that of R12."""
    now = loop.life.now_ms
    refused = {
        vm: {node for node, one in by_node.items() if one.until_ms > now}
        for vm, by_node in loop.life.memory.rejections.items()
    }
    told = {one.set: f"!{one.reason}" for one in result.waiting}
    for key, answer in Reference(loop.cluster(), refused).place_all().items():
        if told.get(key) != "!BudgetExceeded":
            assert told.get(key) == answer, f"law 6: {key} waits for {told.get(key)}, the rules say {answer}"
