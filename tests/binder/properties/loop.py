"""A closed loop without any I/O: what a pass decides is carried out on raw objects; a tiny cluster answers.

It is KubeVirt, scheduler, kubelet and garbage collector at their simplest: a VM that should run has a VMI
with a gated launcher; a pinned one starts; what has failed is replaced; what is owned goes with its owner.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from binder.core.run_pass import PassResult
from model.decisions import (
    BindClaim,
    CreateClaim,
    Decision,
    DeleteClaim,
    DeletePod,
    DeleteVmi,
    Keep,
    LetGo,
    LoseClaim,
    MarkWaiting,
    ObjectRef,
    PinLauncher,
    UngateLauncher,
    WarnPod,
    WarnVmi,
    WriteBudgetStatus,
    WriteClassStatus,
)
from model.names import FINALIZER, GATE
from tests.binder.properties import raw
from tests.binder.properties.life import Life
from tests.binder.properties.raw import Raw
from tests.binder.reference.cluster import Cluster, owner_uid, terms

Key = tuple[str, str]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(slots=True)
class Wish:
    """What a VM is like."""

    gpus: Raw
    orders: str = ""
    strategy: str = "Always"
    lives: int = 0


@dataclass(slots=True)
class Loop:
    """A life whose decisions have consequences."""

    life: Life = field(default_factory=Life)
    wishes: dict[Key, Wish] = field(default_factory=dict)
    refusing: set[str] = field(default_factory=set)
    """Nodes whose kubelet refuses the next launcher."""
    most: dict[tuple[str, str], int] = field(default_factory=dict)
    """Units that a node ever reported allocatable, by node and resource."""

    def cluster(self) -> Cluster:
        """All objects by kind, as the reference takes them."""
        found: Cluster = {kind: [] for kind in self.life.state.shelves}
        for (kind, _), one in sorted(self.life.objects.items()):
            found[kind].append(one)
        return found

    def get(self, kind: str, namespace: str, name: str) -> Raw | None:
        """A copy to change and put back."""
        found = self.life.objects.get((kind, (namespace, name)))
        return copy.deepcopy(found) if found is not None else None

    def run_pass(self, cut: int | None = None) -> PassResult:
        """Decide, and carry out; with `cut` the binder dies after so many writes."""
        result = self.life.decide()
        for decision in result.decisions[:cut]:
            self.carry_out(decision)
        return result

    def carry_out(self, decision: Decision) -> None:  # noqa: C901 - one branch per decision
        """One write, as the API server would take it."""
        match decision:
            case CreateClaim(claim=ref):
                more = {
                    "ownerReferences": [decision.owner.model_dump(by_alias=True)],
                    "finalizers": [FINALIZER],
                }
                uid = f"claim-{ref.name}"
                self.life.put(
                    "GPUClaim",
                    {
                        "metadata": raw.meta(ref.namespace, ref.name, uid, **more),
                        "spec": {"className": decision.class_name, "units": decision.units},
                        "status": {"phase": "Pending"},
                    },
                )
            case BindClaim():
                status: Raw = {"phase": "Bound", "nodeName": decision.node, "boundAt": decision.bound_at}
                self._write_status(decision.claim, status, decision.vm)
            case LoseClaim():
                status = {"phase": "Lost", "lostFrom": decision.lost_from, "lostAt": decision.lost_at}
                self._write_status(decision.claim, status, decision.vm)
            case MarkWaiting():
                self._mark(decision)
            case PinLauncher() | UngateLauncher():
                self._ungate(decision)
            case DeletePod(pod=ref):
                self.life.delete("Pod", (ref.namespace, ref.name))
            case DeleteVmi(vmi=ref):
                self.end_vmi((ref.namespace, ref.name))
            case DeleteClaim(claim=ref):
                self.life.delete("GPUClaim", (ref.namespace, ref.name))
            case Keep() | LetGo():
                self._change_finalizer(decision)
            case WriteClassStatus() | WriteBudgetStatus():
                self._write_own_status(decision)
            case WarnVmi() | WarnPod():
                pass

    def _write_status(self, ref: ObjectRef, status: Raw, vm: Any) -> None:
        claim = self.get("GPUClaim", ref.namespace, ref.name)
        if claim is not None:
            user = {"vm": {"name": vm.name, "uid": vm.uid}} if vm is not None else {}
            self.life.put("GPUClaim", claim | {"status": status | user})

    def _write_own_status(self, decision: WriteClassStatus | WriteBudgetStatus) -> None:
        kind = "GPUClass" if isinstance(decision, WriteClassStatus) else "GPUBudget"
        found = self.get(kind, "", decision.ref.name)
        if found is not None:
            self.life.put(kind, found | {"status": decision.status.model_dump(by_alias=True)})

    def _mark(self, decision: MarkWaiting) -> None:
        claim = self.get("GPUClaim", decision.claim.namespace, decision.claim.name)
        if claim is not None:
            says = {
                "type": "Placed",
                "status": "False",
                "reason": decision.reason,
                "message": decision.message,
            }
            says |= {"lastTransitionTime": decision.since}
            self.life.put("GPUClaim", claim | {"status": claim["status"] | {"conditions": [says]}})

    def _ungate(self, decision: PinLauncher | UngateLauncher) -> None:
        pod = self.get("Pod", decision.pod.namespace, decision.pod.name)
        if pod is None:
            return
        spec = pod["spec"]
        spec["schedulingGates"] = [gate for gate in spec["schedulingGates"] if gate["name"] != GATE]
        if isinstance(decision, PinLauncher):
            pin = {"key": "metadata.name", "operator": "In", "values": [decision.node]}
            pinned = [one | {"matchFields": [pin]} for one in terms(pod) or [{}]]
            spec["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": pinned}}}
            spec["tolerations"] = [one.model_dump(by_alias=True) for one in decision.tolerations]
        self.life.put("Pod", pod)

    def _change_finalizer(self, decision: Keep | LetGo) -> None:
        one = self.get(str(decision.kind), decision.ref.namespace, decision.ref.name)
        if one is None:
            return
        if isinstance(decision, LetGo):
            self.life.delete(str(decision.kind), (decision.ref.namespace, decision.ref.name))
        else:
            one["metadata"]["finalizers"] = [FINALIZER]
            self.life.put(str(decision.kind), one)

    def end_vmi(self, key: Key) -> None:
        """The VMI is deleted, and with it what it owns."""
        vmi = self.life.objects.get(("VirtualMachineInstance", key))
        if vmi is None:
            return
        self.life.delete("VirtualMachineInstance", key)
        for kind, of in list(self.life.objects):
            one = self.life.objects[kind, of]
            if owner_uid(one, "VirtualMachineInstance") == vmi["metadata"]["uid"]:
                self.life.delete(kind, of)

    def respond(self) -> bool:
        """What the environment does next; whether it did anything."""
        before = self.life.version
        for key, wish in sorted(self.wishes.items()):
            self._run_vm(key, wish)
        for (kind, key), one in sorted(self.life.objects.items()):
            if kind == "Pod" and owner_uid(one, "VirtualMachineInstance"):
                self._run_launcher(key)
        return self.life.version != before

    def _run_vm(self, key: Key, wish: Wish) -> None:
        """A VM that should run has a VMI; one whose launcher failed or went has none for long."""
        vmi = self.life.objects.get(("VirtualMachineInstance", key))
        if vmi is not None:
            pods = [one for (kind, _), one in self.life.objects.items() if kind == "Pod"]
            own = [pod for pod in pods if pod["metadata"]["uid"] in vmi["status"]["activePods"]]
            alive = [pod for pod in own if pod["status"]["phase"] not in ("Failed", "Succeeded")]
            if not alive or wish.strategy == "Halted":
                self.end_vmi(key)
            return
        vm = self.life.objects.get(("VirtualMachine", key))
        if vm is None or wish.strategy != "Always":
            return
        wish.lives += 1
        namespace, name = key
        pod = f"{name}{wish.lives}"
        look = {"vm_life": int(vm["metadata"]["uid"][2:3]), "orders": wish.orders, "pods": (pod,)}
        self.life.put("VirtualMachineInstance", raw.vmi(*key, wish.lives, "Scheduling", **look))
        self.life.put("Pod", raw.launcher(namespace, pod, name, wish.lives, gpus=wish.gpus, gates=[GATE]))

    def _run_launcher(self, key: Key) -> None:
        """The scheduler and the kubelet take a pinned launcher, or the kubelet refuses it."""
        pod = self.get("Pod", *key)
        if pod is None or pod["spec"]["schedulingGates"] or pod["spec"]["nodeName"] or not terms(pod):
            return
        where = terms(pod)[0]["matchFields"][0]["values"][0]  # type: ignore[index]
        node = self.life.objects.get(("Node", ("", where)))
        if node is None:
            return
        pod["spec"]["nodeName"] = where
        is_refused = where in self.refusing
        self.refusing.discard(where)
        pod["status"] = {"phase": "Failed", "reason": "OutOfgpu"} if is_refused else {"phase": "Running"}
        self.life.put("Pod", pod)
        vmi_name = pod["metadata"]["ownerReferences"][0]["name"]
        vmi = self.get("VirtualMachineInstance", key[0], vmi_name)
        if vmi is not None and not is_refused:
            vmi["status"] |= {"phase": "Running", "nodeName": where}
            self.life.put("VirtualMachineInstance", vmi)
