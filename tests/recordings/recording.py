"""The recordings: what a real kube-apiserver sent about a real KubeVirt, one watch event a line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import orjson

from kube.port import Json

H100 = "nvidia.com/GH100_H100_SXM5_80GB"
"""The resource that every recorded VM asks for."""
DATA = Path(__file__).parent / "data"
NAMES = tuple(sorted(path.stem for path in DATA.glob("*.ndjson")))
_NEWS = ("LIST", "ADDED", "MODIFIED", "DELETED")


@dataclass(frozen=True, slots=True)
class Event:
    """One watch event; LIST is an object of the first list. `at_s` counts from the recording's start."""

    at_s: float
    kind: str
    type: str
    object: Json


def recorded(name: str) -> list[Event]:
    """All events about objects, as they came in; bookmarks and the ends of lists are left out."""
    lines = _lines(name)
    begin_s = lines[0]["ts"]
    return [
        Event(line["ts"] - begin_s, line["kind"], line["type"], line["object"])
        for line in lines
        if line["type"] in _NEWS
    ]


def begin_ms(name: str) -> int:
    """When the recording began, in milliseconds since the epoch."""
    return int(_lines(name)[0]["ts"] * 1000)


def _lines(name: str) -> list[Json]:
    return [orjson.loads(line) for line in (DATA / f"{name}.ndjson").read_bytes().splitlines()]
