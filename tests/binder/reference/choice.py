"""The choice of a node for each gated launcher, from the text of R7 to R12 alone, over plain dicts."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.binder.reference.cluster import (
    CLASS,
    GATE,
    Cluster,
    Raw,
    amount,
    free_of,
    full_name,
    gates,
    name,
    named_by,
    namespace,
    owner_uid,
    request,
    resource_of,
    terms,
    uid,
    user_of,
    vm_uid,
    vmi_of,
)

STAGES = (
    "ClassConstraints",
    "PodConstraints",
    "VolumeUnreachable",
    "NodesRefused",
    "NoRoom",
    "OtherResources",
)
KEPT_AWAY = ("NoSchedule", "NoExecute")


class Waits(Exception):
    """A set that no node could be asked for; its text is the reason."""


@dataclass
class Wanted:
    """One claim of a set, that exists (and may be held) or is still to be created."""

    gpu_class: str
    resource: str
    units: int
    node: str = ""


@dataclass
class Reference:
    """The launchers of a cluster, placed one after the other."""

    cluster: Cluster
    refused: dict[str, set[str]]
    """Nodes by the namespace and uid of the VM that they refused."""
    free: dict[str, dict[str, int]] = field(default_factory=dict)
    unplaced: dict[str, tuple[Raw, list[Wanted]]] = field(default_factory=dict)

    def place_all(self) -> dict[str, str]:
        """The node of each gated launcher by its VMI, or `!` and the reason once all are placed (R12)."""
        self.free = {name(node): free_of(node, self.cluster) for node in self.cluster["Node"]}
        found = {}
        for pod in sorted(filter(self.is_waiting, self.cluster["Pod"]), key=self.turn):
            vmi = vmi_of(pod, self.cluster)
            assert vmi is not None
            try:
                found[full_name(vmi)] = self.place(pod, vmi)
            except Waits as reason:
                found[full_name(vmi)] = f"!{reason}"
        return found | {key: "!" + self.reason(*one) for key, one in self.unplaced.items()}

    def is_waiting(self, pod: Raw) -> bool:
        """Gated by us, a VMI's own, and neither of the two goes away."""
        vmi = vmi_of(pod, self.cluster)
        dying = [one for one in (pod, vmi) if one and one["metadata"].get("deletionTimestamp")]
        return GATE in gates(pod) and vmi is not None and not dying

    def turn(self, pod: Raw) -> tuple[int, str, str]:
        """R11: priority, then age, then the name."""
        vmi = vmi_of(pod, self.cluster)
        assert vmi is not None
        return (-pod["spec"].get("priority", 0), pod["metadata"]["creationTimestamp"], full_name(vmi))

    def place(self, pod: Raw, vmi: Raw) -> str:
        """The best of the nodes that take it, which then has less to give."""
        wanted = [*self.orders(pod, vmi)]
        wanted += self.template_claims(pod, vmi, wanted)
        self.volumes(pod, vmi)
        takers = [node for node in self.cluster["Node"] if self.stop(node, pod, wanted) is None]
        if not takers:
            self.unplaced[full_name(vmi)] = (pod, wanted)
            return ""
        node = name(min(takers, key=lambda one: self.preference(one, wanted)))
        for one in wanted:
            if one.node in self.free:
                self.free[one.node][one.resource] += one.units
            self.free[node][one.resource] -= one.units
        for resource, units in self.others(pod, wanted).items():
            self.free[node][resource] -= units
        return node

    def orders(self, pod: Raw, vmi: Raw) -> list[Wanted]:
        """R7, R18: the named ones must all be there, be nobody else's and have a class."""
        vm = next(vm for vm in self.cluster["VirtualMachine"] if uid(vm) == vm_uid(vmi))
        found = []
        for wanted in named_by(vm, self.cluster):
            claims = [
                c for c in self.cluster["GPUClaim"] if (namespace(c), name(c)) == (namespace(vmi), wanted)
            ]
            is_order = claims and not owner_uid(claims[0], "VirtualMachineInstance")
            if not is_order or claims[0]["metadata"].get("deletionTimestamp"):
                raise Waits("ClaimNotFound")
            if user_of(claims[0], self.cluster) != uid(vm):
                raise Waits("ClaimInUse")
            if not resource_of(claims[0], self.cluster):
                raise Waits("ClassNotFound")
            found.append(self.as_wanted(claims[0]))
        return found

    def template_claims(self, pod: Raw, vmi: Raw, orders: list[Wanted]) -> list[Wanted]:
        """R7: those that exist, then one for what is missing of each resource that is sold."""
        own = [c for c in self.cluster["GPUClaim"] if owner_uid(c, "VirtualMachineInstance") == uid(vmi)]
        found = [self.as_wanted(claim) for claim in sorted(own, key=name) if resource_of(claim, self.cluster)]
        sold = {c["spec"]["resourceName"] for c in self.cluster["GPUClass"]}
        asked = {resource: units for resource, units in request(pod).items() if resource in sold and units}
        if not asked and not orders:
            raise Waits("ClassNotFound")
        for resource, units in sorted(asked.items()):
            covered = sum(one.units for one in (*orders, *found) if one.resource == resource)
            if covered >= units:
                continue
            gpu_class = self.class_for(resource, vmi)
            taken = f"{name(vmi)}-{gpu_class}-{uid(vmi)[:8]}"
            if any((namespace(c), name(c)) == (namespace(vmi), taken) for c in self.cluster["GPUClaim"]):
                raise Waits("NameTaken")
            found.append(Wanted(gpu_class, resource, units - covered))
        return found

    def class_for(self, resource: str, vmi: Raw) -> str:
        """R7: the one that the VMI asks for, else the only one, else the default."""
        selling = [c for c in self.cluster["GPUClass"] if c["spec"]["resourceName"] == resource]
        wish = vmi["metadata"].get("annotations", {}).get(CLASS, "")
        if wish and wish not in {name(c) for c in self.cluster["GPUClass"]}:
            raise Waits("ClassNotFound")
        for choice in (
            [c for c in selling if name(c) == wish],
            selling,
            [c for c in selling if c["spec"].get("default")],
        ):
            if len(choice) == 1:
                return name(choice[0])
        raise Waits("ClassAmbiguous")

    def as_wanted(self, claim: Raw) -> Wanted:
        node = claim["status"]["nodeName"] if claim["status"]["phase"] == "Bound" else ""
        return Wanted(
            claim["spec"]["className"], resource_of(claim, self.cluster), claim["spec"]["units"], node
        )

    def volumes(self, pod: Raw, vmi: Raw) -> list[Raw]:
        """R8c: the volumes that are bound to nodes, also those plugged in later."""
        disks = [one["persistentVolumeClaim"]["claimName"] for one in pod["spec"]["volumes"]]
        disks += [one["persistentVolumeClaim"]["claimName"] for one in vmi["spec"]["volumes"]]
        found = []
        for disk in disks:
            bound = [
                c for c in self.cluster["PersistentVolumeClaim"] if full_name(c) == f"{namespace(pod)}/{disk}"
            ]
            if not bound:
                raise Waits("VolumePending")
            spec = bound[0]["spec"]
            volumes = [v for v in self.cluster["PersistentVolume"] if name(v) == spec["volumeName"]]
            late = [
                c for c in self.cluster["StorageClass"] if c["volumeBindingMode"] == "WaitForFirstConsumer"
            ]
            if not volumes and (spec["volumeName"] or spec["storageClassName"] not in map(name, late)):
                raise Waits("VolumePending")
            found += volumes
        return found

    def stop(self, node: Raw, pod: Raw, wanted: list[Wanted]) -> str | None:
        """The first stage of R8 that the node does not pass."""
        vmi = vmi_of(pod, self.cluster)
        assert vmi is not None
        labels, free = node["metadata"]["labels"], self.free[name(node)]
        classes = [c for c in self.cluster["GPUClass"] if name(c) in {one.gpu_class for one in wanted}]
        if not all(self.accepts(one, node) for one in classes):
            return "ClassConstraints"
        selected = all(labels.get(key) == value for key, value in pod["spec"]["nodeSelector"].items())
        if not selected or not self.matches(terms(pod), node):
            return "PodConstraints"
        for volume in self.volumes(pod, vmi):
            required = volume["spec"].get("nodeAffinity", {}).get("required")
            if required and not self.matches(required["nodeSelectorTerms"], node):
                return "VolumeUnreachable"
        if name(node) in self.refused.get(f"{namespace(vmi)}/{vm_uid(vmi)}", ()):
            return "NodesRefused"
        for resource in {one.resource for one in wanted}:
            needed = sum(one.units for one in wanted if one.resource == resource)
            held = sum(one.units for one in wanted if one.resource == resource and one.node == name(node))
            if free.get(resource, 0) + held < needed:
                return "NoRoom"
        short = any(free.get(resource, 0) < units for resource, units in self.others(pod, wanted).items())
        return "OtherResources" if short else None

    def accepts(self, gpu_class: Raw, node: Raw) -> bool:
        """R8a."""
        spec, labels = gpu_class["spec"], node["metadata"]["labels"]
        ready = any((c["type"], c["status"]) == ("Ready", "True") for c in node["status"]["conditions"])
        if not ready or node["spec"]["unschedulable"] or "deletionTimestamp" in node["metadata"]:
            return False
        if not all(labels.get(key) == value for key, value in spec.get("nodeSelector", {}).items()):
            return False
        against = [taint for taint in node["spec"]["taints"] if taint["effect"] in KEPT_AWAY]
        return all(
            any(self.tolerates(one, taint) for one in spec.get("tolerations", [])) for taint in against
        )

    def tolerates(self, toleration: Raw, taint: Raw) -> bool:
        same_key = toleration.get("key", "") in ("", taint["key"])
        same_effect = toleration.get("effect", "") in ("", taint["effect"])
        is_any = toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get(
            "value", ""
        )
        return same_key and same_effect and is_any

    def matches(self, wanted: list[Raw] | None, node: Raw) -> bool:
        """Some term, all of it; only what these clusters use: In, NotIn and Exists on labels."""
        labels = node["metadata"]["labels"]
        holds = {
            "In": lambda one: labels.get(one["key"]) in one["values"],
            "NotIn": lambda one: labels.get(one["key"]) not in one["values"],
            "Exists": lambda one: one["key"] in labels,
        }
        return wanted is None or any(
            term.get("matchExpressions")
            and all(holds[one["operator"]](one) for one in term["matchExpressions"])
            for term in wanted
        )

    def others(self, pod: Raw, wanted: list[Wanted]) -> dict[str, int]:
        """What the pod asks for besides the set's GPUs, and its place as a pod."""
        gpus = {one.resource for one in wanted}
        return {"pods": 1} | {r: units for r, units in request(pod).items() if r not in gpus and units}

    def preference(self, node: Raw, wanted: list[Wanted]) -> tuple[int, int, str]:
        """R9: holds most of the set, then is the fullest when it has the set, then the name."""
        held = sum(one.units for one in wanted if one.node == name(node))
        left = sum(self.free[name(node)].get(resource, 0) for resource in {one.resource for one in wanted})
        return (-held, left + held - sum(one.units for one in wanted), name(node))

    def reason(self, pod: Raw, wanted: list[Wanted]) -> str:
        """R12: the last stage that some node reached; of the nodes that offer any of what is wanted."""
        needs = {one.resource: sum(o.units for o in wanted if o.resource == one.resource) for one in wanted}
        offers = {name(node): node["status"]["allocatable"] for node in self.cluster["Node"]}
        if not any(
            all(amount(r, offered.get(r, "0")) >= units for r, units in needs.items())
            for offered in offers.values()
        ):
            return "TooLarge"
        asked = [node for node in self.cluster["Node"] if not needs.keys().isdisjoint(offers[name(node)])]
        stops = [self.stop(node, pod, wanted) for node in asked]
        return "free now" if None in stops else max((one for one in stops if one), key=STAGES.index)
