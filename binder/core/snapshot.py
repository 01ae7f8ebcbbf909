"""The folded cluster as bytes and back: what a binder begins from instead of the whole log.

A snapshot is a fold's state and nothing else: folding the rest of the log onto it gives what the whole log
gives. Its version rises with the shape of the models: an older one is not read, the log is.
"""

from __future__ import annotations

import zlib
from typing import Any

import orjson

from binder.core.state import ClusterState, Key

VERSION = 5
"""Raise it when a lean object gains a field: bytes folded before lack it."""


def encode_state(state: ClusterState) -> bytes:
    """The state as compressed JSON, equal states as equal bytes.

    Each object is a text of its bytes: one that cannot be read, or only by us, must not spoil the others.
    """
    shelves = {
        kind: {
            "absent_since_ms": shelf.absent_since_ms,
            "objects": [
                [*key, shelf.uids[key], shelf.versions[key], body.decode("latin-1")]
                for key, body in shelf.bodies()
            ],
        }
        for kind, shelf in state.shelves.items()
    }
    body = {
        "v": VERSION,
        "complete": sorted(state.complete),
        "heard_ms": state.heard_ms,
        "shelves": shelves,
    }
    return zlib.compress(orjson.dumps(body), level=1)


def decode_state(body: bytes) -> ClusterState | None:
    """The state of a snapshot, or None where it is of another version or no snapshot at all."""
    try:
        raw: Any = orjson.loads(zlib.decompress(body))
        if raw["v"] != VERSION:
            return None
        state = ClusterState(complete=set(raw["complete"]), heard_ms=raw["heard_ms"])
        for kind, given in raw["shelves"].items():
            shelf = state.shelves[kind]
            for namespace, name, uid, version, obj in given["objects"]:
                key: Key = (namespace, name)
                shelf.put(key, uid, version, obj.encode("latin-1"))
            shelf.absent_since_ms = given["absent_since_ms"]
    except (zlib.error, KeyError, TypeError, ValueError, AttributeError):
        return None
    return state
