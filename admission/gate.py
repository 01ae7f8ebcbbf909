"""The gate: which pods get it (R6). Pure; the same meaning as the policy in `admission.policies`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from model.names import GATE, LABEL_KUBEVIRT, LABEL_LAUNCHER
from model.quantity import MalformedQuantity, parse_quantity

Json = dict[str, Any]
EVERY_VM_HAS = frozenset(f"devices.kubevirt.io/{name}" for name in ("kvm", "tun", "vhost-net", "vhost-vsock"))
"""Extended resources that KubeVirt's launchers ask for without a GPU."""


def gate_launcher(pod: Mapping[str, Any], resources_sold: Collection[str]) -> Json | None:
    """The pod with our gate, or None where it gets none: no launcher, asks for nothing sold, gated.

    `resources_sold` are the resourceNames of the GPUClasses. Foreign gates stay, before ours. Whatever a
    client sends as a pod is no error: what cannot be read asks for nothing, and the API server refuses it.
    """
    spec = pod.get("spec") if isinstance(pod, Mapping) else None
    if not isinstance(spec, dict) or not _is_launcher(pod) or not _asks_for(spec, resources_sold):
        return None
    gates = _dicts(spec.get("schedulingGates"))
    if any(gate.get("name") == GATE for gate in gates):
        return None
    return {**pod, "spec": {**spec, "schedulingGates": [*gates, {"name": GATE}]}}


def gate_patch(pod: Mapping[str, Any], resources_sold: Collection[str]) -> tuple[Json, ...]:
    """The same as a JSON Patch; empty where there is nothing to add."""
    gated = gate_launcher(pod, resources_sold)
    if gated is None:
        return ()
    return ({"op": "add", "path": "/spec/schedulingGates", "value": gated["spec"]["schedulingGates"]},)


def asks_for_devices(pod: Mapping[str, Any]) -> bool:
    """Whether a launcher asks for extended resources besides those that KubeVirt gives every VM.

    Where it is not known what is sold, only such a launcher may need the gate.
    """
    spec = pod.get("spec")
    if not isinstance(spec, dict) or not _is_launcher(pod):
        return False
    return _asks_for(spec, _extended_names(spec) - EVERY_VM_HAS)


def _extended_names(spec: Json) -> set[str]:
    names: set[str] = set()
    for container in [*_dicts(spec.get("containers")), *_dicts(spec.get("initContainers"))]:
        resources = container.get("resources")
        for part in ("requests", "limits"):
            amounts = resources.get(part) if isinstance(resources, dict) else None
            if isinstance(amounts, dict):
                names |= {key for key in amounts if "/" in key}
    return names


def _is_launcher(pod: Mapping[str, Any]) -> bool:
    metadata = pod.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return isinstance(labels, dict) and labels.get(LABEL_KUBEVIRT) == LABEL_LAUNCHER


def _asks_for(spec: Json, resources_sold: Collection[str]) -> bool:
    containers = [*_dicts(spec.get("containers")), *_dicts(spec.get("initContainers"))]
    return any(_units(container, resource) for container in containers for resource in resources_sold)


def _units(container: Json, resource: str) -> bool:
    resources = container.get("resources")
    for part in ("requests", "limits"):
        amounts = resources.get(part) if isinstance(resources, dict) else None
        try:
            if isinstance(amounts, dict) and resource in amounts and parse_quantity(amounts[resource]) >= 1:
                return True
        except MalformedQuantity:
            continue
    return False


def _dicts(items: Any) -> list[Json]:
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
