"""No secret enters the log: which strings of a real object do, each named, and a grep of all of Redis.

A secret is planted into every string of every recorded object, one after the other. What comes out on the
other side must be a path of this list: names, selectors, taints, amounts, phases, times. Nothing that a
tenant would put a secret into: no env, command, argument, image, message, annotation, volume, cloud-init.
"""

from __future__ import annotations

import asyncio
import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from eventlog.adapters.embedded import EmbeddedServer
from eventlog.adapters.redis_streams import connect
from eventlog.entries import EntryType
from ingest.entries import Origin, change_entry
from model.kinds import BY_KIND
from model.lean import Malformed, lean_object

SECRET = "s3cr3t-planted"
DATA = Path(__file__).parents[1] / "recordings" / "data"
MAY_ENTER = {
    r"metadata\.(name|namespace|uid|resourceVersion|creationTimestamp|deletionTimestamp)",
    r"metadata\.(labels\.\*|finalizers\[\])",
    r"metadata\.annotations\.gpu\.cozystack\.io/(claims|class)",
    r"metadata\.ownerReferences\[\]\.(apiVersion|kind|name|uid)",
    r"spec\.template\.metadata\.labels\.\*",
    # Node
    r"spec\.taints\[\]\.(key|value|effect|timeAdded)",
    r"status\.allocatable\.\*",
    r"status\.conditions\[\]\.(type|status|reason|lastTransitionTime)",
    # Pod
    r"spec\.(nodeName|schedulerName|nodeSelector\.\*|schedulingGates\[\]\.name)",
    r"spec\.affinity\.nodeAffinity\.\w+\.nodeSelectorTerms\[\]\.match(Expressions|Fields)\[\]\.(key|operator|values\[\])",
    r"spec\.tolerations\[\]\.(key|operator|value|effect)",
    r"spec\.(containers|initContainers)\[\]\.(name|restartPolicy|resources\.requests\.\*)",
    r"spec\.volumes\[\]\.(name|persistentVolumeClaim\.claimName)",
    r"status\.(phase|reason)",
    r"status\.(containerStatuses|initContainerStatuses)\[\]\.(name|state\.(running|terminated)\.startedAt)",
    # VirtualMachine, VirtualMachineInstance
    r"spec\.runStrategy",
    r"spec\.domain\.devices\.gpus\[\]\.(name|deviceName)",
    r"status\.(printableStatus|nodeName|activePods\.\*)",
    r"status\.phaseTransitionTimestamps\[\]\.(phase|phaseTransitionTimestamp)",
}
ALLOWED = re.compile("|".join(MAY_ENTER))
MAPS = ("labels", "annotations", "allocatable", "nodeSelector", "requests", "activePods")


def recorded_objects() -> Iterator[tuple[str, Any]]:
    """The last version of each object, with all that KubeVirt, scheduler and kubelet wrote."""
    for path in sorted(DATA.glob("*.ndjson")):
        last: dict[tuple[str, str], Any] = {}
        for line in path.read_text(encoding="utf-8").splitlines():
            event = json.loads(line)
            if event["kind"] in BY_KIND and "name" in event["object"].get("metadata", {}):
                last[event["kind"], event["object"]["metadata"]["name"]] = event["object"]
        for (kind, _), obj in last.items():
            yield kind, obj


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all strings."""
    if isinstance(value, str):
        yield path
    elif isinstance(value, dict):
        for key, child in value.items():
            yield from leaves(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from leaves(child, (*path, index))


def planted(obj: Any, path: tuple[Any, ...]) -> Any:
    """A copy with the secret at one place."""
    changed = copy.deepcopy(obj)
    parent = changed
    for step in path[:-1]:
        parent = parent[step]
    parent[path[-1]] = SECRET
    return changed


def pattern(path: tuple[Any, ...]) -> str:
    """The path without indices, and without the keys of free maps: `metadata.labels.*`."""
    text, in_map = "", False
    for step in path:
        if isinstance(step, int):
            text += "[]"
        elif in_map and "gpu.cozystack.io" not in step:
            text += ".*"
        else:
            text += f".{step}"
        in_map = step in MAPS
    return text.lstrip(".")


def test_only_named_strings_of_real_objects_enter_the_log() -> None:
    entered, tried = set(), 0
    for kind, obj in recorded_objects():
        watched = BY_KIND[kind]
        for path in leaves(obj):
            tried += 1
            try:
                body = lean_object(watched.model, watched.prune, planted(obj, path))
            except Malformed:
                continue
            if SECRET.encode() in body:
                entered.add(pattern(path))
    assert tried > 2000
    assert {path for path in entered if not ALLOWED.fullmatch(path)} == set()


@pytest.mark.enable_socket
async def test_secrets_in_every_other_string_are_nowhere_in_redis() -> None:
    server = EmbeddedServer()
    await asyncio.to_thread(server.start)
    log = await connect(server.url, "default", "w", lambda: 1)
    redis = Redis.from_url(server.url)
    try:
        identity, count = await log.identity(), 0
        for kind, obj in recorded_objects():
            changed = copy.deepcopy(obj)
            for path in leaves(obj):
                if not ALLOWED.fullmatch(pattern(path)):
                    changed = planted(changed, path)
            entry = change_entry(BY_KIND[kind], EntryType.ADDED, changed, Origin("w", 1))
            count += sum(await log.append_once([entry], identity))
        assert count > 10
        assert [key async for key in redis.scan_iter() if SECRET.encode() in await redis.dump(key)] == []
        stream = await redis.xrange("{gpubinder:default}:events")
        assert SECRET not in str(stream)
    finally:
        await redis.aclose()
        await log.close()
        await asyncio.to_thread(server.stop)
