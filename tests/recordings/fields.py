"""The fields of an object that the models use, with random names, uids and times taken out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import orjson

from kube.port import Json
from model.kinds import BY_KIND
from simulator.actors.kubelet import KUBELET
from tests.recordings.recording import Event
from tests.recordings.timeline import Roles, state_of

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_VERSIONS = ("resourceVersion", "generation")
_PLAYERS_LABELS = (KUBELET, "fakelet")
"""Which nodes' kubelets are played: by the simulator, by the recording's stand-in."""


def fields_by_state(events: Iterable[Event]) -> dict[str, dict[str, Json]]:
    """Per object and state, what the models read of the first version in that state."""
    roles = Roles()
    found: dict[str, dict[str, str]] = {}
    names: dict[str, str] = {}
    for event in events:
        role, meta = roles.of(event), event.object["metadata"]
        names[meta["uid"]] = f"uid of {role}"
        if event.kind == "Pod":
            names[meta["name"]] = f"name of {role}"
        if event.type != "DELETED":
            lean = _lean(event)
            found.setdefault(role, {}).setdefault(state_of(event), orjson.dumps(lean).decode())
    return {
        role: {state: orjson.loads(_without_chance(text, names)) for state, text in states.items()}
        for role, states in found.items()
    }


def launcher_shape(pod: Json, names: dict[str, str]) -> Json:
    """The launcher as scheduler, kubelet and user see it, whether or not a model reads it today."""
    meta, spec = pod["metadata"], pod["spec"]
    shape = {
        "labels": meta["labels"],
        "annotations": {k: v for k, v in meta["annotations"].items() if k != "kubevirt.io/vm-generation"},
        "ownerReferences": meta["ownerReferences"],
        "generateName": meta["generateName"],
        "spec": {
            k: v for k, v in spec.items() if k not in ("containers", "initContainers", "securityContext")
        },
        "containers": [_container(c) for c in [*spec["initContainers"], *spec["containers"]]],
    }
    shaped: Json = orjson.loads(_without_chance(orjson.dumps(shape).decode(), names))
    return shaped


def _container(container: Json) -> Json:
    return {key: container.get(key) for key in ("name", "restartPolicy", "resources")}


def _lean(event: Event) -> Json:
    kind = BY_KIND[event.kind]
    lean: Any = kind.prune(event.object)
    kind.model.model_validate(lean)
    for name in _VERSIONS:
        lean["metadata"].pop(name, None)
    for label in _PLAYERS_LABELS:
        lean["metadata"].get("labels", {}).pop(label, None)
    conditions = lean.get("status", {}).get("conditions", [])
    conditions.sort(key=lambda condition: condition["type"])
    return _without_empty(lean)


def _without_empty(lean: Json) -> Json:
    """Without fields that say nothing: an empty map is as good as none to a model."""
    metadata = {key: value for key, value in lean["metadata"].items() if value}
    return {key: value for key, value in lean.items() if value} | {"metadata": metadata}


def _without_chance(text: str, names: dict[str, str]) -> str:
    for chance in sorted(names, key=len, reverse=True):
        text = text.replace(f'"{chance}"', f'"{names[chance]}"')
    return _TIME.sub("T", text)
