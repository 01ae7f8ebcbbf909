"""Objects of the recordings, made anew on another API server, as KubeVirt would make them there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kube.port import Json

RECORDING = Path(__file__).parents[1] / "recordings" / "data" / "gated-pinned-restart-stop.ndjson"


def first(kind: str) -> Json:
    """The first version of the first object of a kind."""
    for line in RECORDING.read_text(encoding="utf-8").splitlines():
        event: Any = json.loads(line)
        if event["kind"] == kind and "spec" in event["object"]:
            obj: Json = event["object"]
            return obj
    raise AssertionError(f"no {kind} in {RECORDING}")


def fresh(obj: Json, name: str, namespace: str = "") -> Json:
    """A copy to be created under a new name, without what an API server gives."""
    copy: Json = json.loads(json.dumps(obj))
    given = copy["metadata"]
    kept = {key: given[key] for key in ("labels", "annotations", "finalizers") if key in given}
    copy["metadata"] = {"name": name, **kept} | ({"namespace": namespace} if namespace else {})
    return copy


def owned_by(obj: Json, owner: Json) -> Json:
    """The copy with the recorded controller reference turned to a new owner."""
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    obj["metadata"]["ownerReferences"] = [reference]
    return obj


def launcher_of(vmi: Json) -> Json:
    """The recorded launcher, still gated, as the launcher of another VMI."""
    meta = vmi["metadata"]
    pod = owned_by(fresh(first("Pod"), f"virt-launcher-{meta['name']}-abcde", meta["namespace"]), vmi)
    pod["metadata"]["labels"]["kubevirt.io/created-by"] = meta["uid"]
    pod.pop("status", None)
    return pod
