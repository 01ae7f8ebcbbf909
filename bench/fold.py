"""Folding the log against the least that reading it costs: taking the fields out and decoding the JSON."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import orjson

from bench.figures import Figure, best_of
from binder.core.state import ClusterState, fold_entries
from eventlog.entries import Entry, EntryType, Fields, StoredEntry, decode_entry, encode_entry
from kube.port import Json
from model.kinds import BY_KIND
from model.lean import lean_object
from model.pods import Pod
from simulator.actors.launcher_pod import launcher_pod
from simulator.objects import gpu_vm

ENTRIES = 100_000
OBJECTS = 5_000
RUNS = 3


def figures() -> list[Figure]:
    """Folding, with and without the decoding of what has changed that a pass then does."""
    stored = _entries()
    fold_s = best_of(RUNS, lambda: _fold(stored))
    look_s = best_of(RUNS, lambda: _fold(stored).of(Pod))
    json_s = best_of(RUNS, lambda: deque((orjson.loads(fields[b"o"]) for _, fields in stored), maxlen=0))
    lean_s = best_of(RUNS, lambda: [_lean(number) for number in range(2000)])
    per_s = [ENTRIES / seconds for seconds in (fold_s, look_s, json_s)]
    return [
        Figure("fold", per_s[0], "entries/s", "JSON decoding of the same", per_s[2], 0.6),
        Figure("fold and decode for a pass", per_s[1], "entries/s", "JSON decoding of the same", per_s[2]),
        Figure("make a launcher lean", 2000 / lean_s, "objects/s"),
    ]


def _fold(stored: Sequence[tuple[str, Fields]]) -> ClusterState:
    state = ClusterState()
    decoded = (decode_entry(entry_id, fields) for entry_id, fields in stored)
    fold_entries(state, (one.entry for one in decoded if isinstance(one, StoredEntry)))
    return state


def _entries() -> list[tuple[str, Fields]]:
    bodies = [_lean(number) for number in range(OBJECTS)]
    return [
        (
            f"{number}-0",
            encode_entry(
                Entry(
                    EntryType.MODIFIED,
                    "Pod",
                    "default",
                    f"p{number % OBJECTS}",
                    f"uid-{number % OBJECTS}",
                    str(number),
                    "w",
                    number,
                    bodies[number % OBJECTS],
                )
            ),
        )
        for number in range(ENTRIES)
    ]


def pod_body(number: int) -> Json:
    """A launcher as an API server sends it."""
    spec = gpu_vm(f"vm{number}", {"nvidia.com/gpu": 1})["spec"]["template"]["spec"]
    vmi = {
        "metadata": {"name": f"vm{number}", "namespace": "default", "uid": f"vmi-{number}"},
        "spec": spec,
    }
    pod = launcher_pod(vmi)
    pod["metadata"] |= {"name": f"p{number}", "uid": f"uid-{number}", "resourceVersion": str(number + 1)}
    return pod


def _lean(number: int) -> bytes:
    watched = BY_KIND["Pod"]
    return lean_object(watched.model, watched.prune, pod_body(number))
