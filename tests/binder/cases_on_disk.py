"""The handed cases about placement: their objects, with the VMs, VMIs and classes that they imply."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from binder.core.claims import is_template_claim
from binder.core.state import ClusterState
from model.claims import GPUClaim
from model.kinds import BY_KIND
from model.meta import Lean
from model.nodes import Node
from model.pods import Pod
from tests.binder.deciding import decide, placed_on
from tests.builders import gpu_class, state, template_claim, vm, vmi

FOLDERS = (Path(__file__).parent / "cases", Path(__file__).parents[1] / "model" / "cases")


def load(case: str, name: str) -> Any:
    """One file of a case; several documents as a list."""
    (folder,) = (found for root in FOLDERS for found in root.glob(f"{case}-*"))
    documents = list(yaml.safe_load_all((folder / name).read_text(encoding="utf-8")))
    return documents[0] if len(documents) == 1 else documents


def read(raw: dict[str, Any]) -> Lean:
    """An object as the log carries it."""
    kind = BY_KIND[raw["kind"]]
    return kind.model.model_validate(kind.prune(raw))


def objects_of(case: str) -> list[Lean]:
    """The objects of a case."""
    documents = load(case, "objects.yaml")
    return [read(raw) for raw in (documents if isinstance(documents, list) else [documents])]


def moved(one: Lean, namespace: str) -> Any:
    """The object in another namespace."""
    meta = one.metadata.model_copy(update={"namespace": namespace})  # type: ignore[attr-defined]
    return one.model_copy(update={"metadata": meta})


def vms_of(pods: Iterable[Lean]) -> list[Lean]:
    """The VMs and VMIs that launchers imply; a VMI lists all of its pods."""
    by_vmi: dict[tuple[str, str, str], list[Pod]] = {}
    for pod in pods:
        if isinstance(pod, Pod) and pod.metadata.owner_references:
            owner = pod.metadata.owner_references[0]
            by_vmi.setdefault((pod.metadata.namespace, owner.name, owner.uid), []).append(pod)
    found: list[Lean] = []
    for (namespace, name, uid), own in by_vmi.items():
        running = [pod.spec.node_name for pod in own if pod.status.phase == "Running"]
        run = vmi(
            name,
            uid=uid,
            phase="Running" if running else "Scheduling",
            node=running[0] if running else "",
            pods=[pod.metadata.uid for pod in own],
        )
        found += [moved(vm(name), namespace), moved(run, namespace)]
    return found


def claim_of(pod: Lean, node: str, resource: str) -> GPUClaim:
    """The template claim that covers what a launcher asks for of the resource, held on the node."""
    assert isinstance(pod, Pod)
    owner = pod.metadata.owner_references[0]
    units = sum(int(one.resources.requests.get(resource, "0")) for one in pod.spec.containers)
    claim = template_claim(
        owner.name, units, class_name="a", node=node, namespace=pod.metadata.namespace, vmi_uid=owner.uid
    )
    assert is_template_claim(claim)
    return claim


def cluster_of(objects: Iterable[Lean], resources: Iterable[str], **spec: object) -> ClusterState:
    """A cluster of the objects and what they imply, with one class per resource: a, b, c..."""
    here = list(objects)
    classes = [gpu_class(name, resource, **spec) for name, resource in zip("abc", resources, strict=False)]
    return state(*here, *vms_of(here), *classes)


def resources_of(case: str) -> list[str]:
    """What is asked for in the case, as resources."""
    request = load(case, "request.yaml")
    first = request[0] if isinstance(request, list) else request
    return [claim["resource"] for claim in first["claims"]]


def eligible(objects: Iterable[Lean], resources: Iterable[str], *live: GPUClaim, **spec: object) -> list[str]:
    """The nodes that each alone would be chosen for the one gated launcher."""
    here, names = list(objects), list(resources)
    nodes = [one for one in here if isinstance(one, Node)]
    rest = [one for one in here if not isinstance(one, Node)]
    found: list[str] = []
    for node in nodes:
        result = decide(cluster_of([node, *rest], names, **spec), *live)
        found += placed_on(result).values()
    return sorted(found)


def case_nodes(case: str, **spec: object) -> list[str]:
    """The eligible nodes of a case as it is handed."""
    return eligible(objects_of(case), resources_of(case), **spec)


def with_terms(objects: Iterable[Lean], terms: object, selector: dict[str, str] | None = None) -> list[Lean]:
    """The objects with other required terms (and another nodeSelector) on their gated launcher."""
    found: list[Lean] = []
    for one in objects:
        if isinstance(one, Pod):
            raw = one.model_dump(by_alias=True)
            required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
            raw["spec"]["affinity"] = {"nodeAffinity": required}
            raw["spec"]["nodeSelector"] = selector or raw["spec"]["nodeSelector"]
            found.append(Pod.model_validate(raw))
        else:
            found.append(one)
    return found
