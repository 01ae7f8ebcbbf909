"""Writes the status of a class or a budget: read, then patched in the version that was read.

The log does not know an object's newest version (a change of what is not ours to see makes one), so the
precondition is what the decision was made on: the same object and the same generation of its spec.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kube.errors import Conflict, NotFound
from kube.port import MERGE_STATUS, Client, Json, ObjectKey
from model.decisions import WriteBudgetStatus, WriteClassStatus
from model.meta import Lean
from model.resources import GPU_BUDGETS, GPU_CLASSES


async def write_status(client: Client, decision: WriteClassStatus | WriteBudgetStatus) -> None:
    """Write it where it differs; an object that has gone or goes needs none. Raises ApiError.

    Conflict for an object whose spec has changed since the pass looked at it: the next pass sees the new one.
    """
    resource = GPU_CLASSES if isinstance(decision, WriteClassStatus) else GPU_BUDGETS
    key = ObjectKey(resource, decision.ref.name)
    try:
        live = await client.get(key)
        meta = live["metadata"]
        if meta["uid"] != decision.ref.uid or meta.get("deletionTimestamp"):
            return
        if decision.generation and meta.get("generation") != decision.generation:
            raise Conflict(str(key), f"generation {meta.get('generation')} now, the pass saw another")
        patch = status_difference(live.get("status") or {}, decision.status)
        if patch:
            versioned = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
            await client.patch(key, {"metadata": versioned, "status": patch}, MERGE_STATUS)
    except NotFound:
        return


def status_difference(live: Mapping[str, Any], status: Lean) -> Json:
    """The merge patch from one status to the other; what the live one has besides goes from maps only.

    Conditions of types that are not ours stay, before ours.
    """
    wanted: Json = status.model_dump(by_alias=True)
    ours = {one["type"] for one in wanted["conditions"]}
    others = [one for one in live.get("conditions") or [] if one.get("type") not in ours]
    wanted["conditions"] = [*others, *wanted["conditions"]]
    return _difference(live, wanted)


def _difference(live: Mapping[str, Any], wanted: Mapping[str, Any]) -> Json:
    patch: Json = {}
    for name, value in wanted.items():
        known = live.get(name)
        if isinstance(value, dict):
            part = _difference(known or {}, value) | dict.fromkeys((known or {}).keys() - value.keys())
            if part or known is None:
                patch[name] = part
        elif value != known:
            patch[name] = value
    return patch
