"""Watch events from a file go the way of live ones."""

from __future__ import annotations

import asyncio
import bz2
import gzip
import json
import lzma
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from binder.core.state import ClusterState, fold_entry
from eventlog.adapters.memory import MemoryLog
from eventlog.entries import StoredEntry
from ingest.entries import Origin
from ingest.from_file import NAMED, Tally, Unusable, feed
from model.kubevirt import VirtualMachine
from model.nodes import Node

NODE = {"kind": "Node", "metadata": {"name": "n", "uid": "u", "resourceVersion": "5"}}
DATA = Path(__file__).parents[1] / "recordings" / "data"


async def chunks(lines: list[bytes]) -> AsyncIterator[bytes]:
    for line in lines:
        yield line + b"\n"


def fed(lines: list[bytes]) -> tuple[Tally, ClusterState]:
    async def main() -> tuple[Tally, ClusterState]:
        log, state = MemoryLog(lambda: 1000), ClusterState()
        tally = await feed(chunks(lines), log, Origin("file", 1000))
        for stored in await log.read_range("0-0", 10_000):
            assert isinstance(stored, StoredEntry)
            fold_entry(state, stored.entry)
        return tally, state

    return asyncio.run(main())


@pytest.mark.parametrize("path", sorted(DATA.glob("*.ndjson")), ids=lambda path: path.stem)
def test_recording_is_fed_and_folds_to_its_end(path: Path) -> None:
    lines = path.read_bytes().splitlines()
    tally, state = fed(lines)
    assert tally.unreadable == 0
    assert tally.read == len(lines)
    assert len(state.of(Node)) == 3
    last = {}
    for line in lines:
        event = orjson.loads(line)
        if event["kind"] == "VirtualMachine" and "name" in event["object"]["metadata"]:
            last[event["object"]["metadata"]["name"]] = event
    living = {name: event for name, event in last.items() if event["type"] != "DELETED"}
    found = {vm.metadata.name: vm.status.printable_status for vm in state.of(VirtualMachine).values()}
    assert found == {n: e["object"].get("status", {}).get("printableStatus", "") for n, e in living.items()}


def test_part_of_a_recording_is_suppressed_as_it_changes_nothing_of_ours() -> None:
    """Quiet: heartbeats and conditions that nobody reads."""
    tallies = [fed(path.read_bytes().splitlines())[0] for path in sorted(DATA.glob("*.ndjson"))]
    known, appended = sum(t.known for t in tallies), sum(t.appended for t in tallies)
    assert known / (known + appended) > 0.25


def test_kubectl_output_is_taken_too() -> None:
    node = {"kind": "Node", "metadata": {"name": "n", "uid": "u", "resourceVersion": "5"}}
    tally, state = fed([orjson.dumps({"type": "ADDED", "object": node}), b""])
    assert (tally.appended, tally.passed_over, tally.unreadable) == (1, 0, 0)
    assert len(state.of(Node)) == 1
    gone = node | {"apiVersion": "v1", "metadata": {"name": "n", "uid": "u", "resourceVersion": "6"}}
    printed = json.dumps({"type": "DELETED", "object": gone}, indent=4).encode()
    tally, state = fed([orjson.dumps({"type": "ADDED", "object": node}), *printed.splitlines()])
    assert (tally.appended, tally.unreadable) == (2, 0)
    assert len(state.of(Node)) == 0


def test_bookmarks_and_kinds_of_others_are_passed_over() -> None:
    bookmark = {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}}
    stranger = {"kind": "Node", "apiVersion": "example.org/v1", "metadata": {"name": "n", "uid": "u"}}
    events = [
        ("BOOKMARK", bookmark),
        ("ADDED", stranger),
        ("ADDED", {"kind": "Weird"}),
        ("ADDED", {"kind": []}),
    ]
    tally, _ = fed([orjson.dumps({"type": each, "object": obj}) for each, obj in events])
    assert (tally.appended, tally.passed_over, tally.unreadable) == (0, 4, 0)


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[]",
        b"7",
        b'{"type": "ADDED"}',
        b'{"type": "ADDED", "object": []}',
        b'{"type": [], "object": {"kind": "Node"}}',
        b'{"ts": 1e400, "kind": "Node", "type": "ADDED", "object": {}}',
        b'{"kind": "Node", "type": "ADDED", "object": {"metadata": {"name": "n"}}}',
    ],
)
def test_line_that_is_no_watch_event_is_named_and_passed_over(line: bytes) -> None:
    tally, _ = fed([line])
    assert tally.unreadable == 1
    assert tally.named[0].startswith("line 1: ")


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (
            {"kind": "Pod", "metadata": {"name": "a"}},
            "bare object: kubectl tells events with --output-watch-",
        ),
        ({"kind": "PodList", "items": []}, "a list: kubectl tells events with -w --output-watch-events"),
        ({"type": "HELLO", "object": {}}, "its type is not ADDED, LIST, MODIFIED, DELETED, SYNC or BOOKMARK"),
        ({"type": "ERROR", "object": {"message": "too old"}}, "what came after it is missing: too old"),
        ({"type": "ADDED", "object": {}, "kind": "Node", "ts": "now"}, "`ts` is no time in seconds"),
    ],
)
def test_what_is_no_event_is_told_with_what_would_be_one(event: dict[str, Any], why: str) -> None:
    tally, _ = fed([orjson.dumps(event)])
    assert why in tally.named[0]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "a\x1fb"),
        ("name", "x" * 254),
        ("name", "a\x1b[31m"),
        ("namespace", "a b"),
        ("uid", ""),
        ("resourceVersion", ""),
        ("resourceVersion", "-7"),
        ("resourceVersion", "abc"),
        ("resourceVersion", "007"),
        ("resourceVersion", "9" * 101),
        ("resourceVersion", "\u0663"),
    ],
)
def test_object_with_an_identity_that_no_api_server_gives_is_in_quarantine(field: str, value: str) -> None:
    """One whose version is no number would be the newest for ever; a separator would hide it from lists."""
    meta = {"name": "n", "namespace": "d", "uid": "u", "resourceVersion": "5"} | {field: value}
    log = MemoryLog(lambda: 1000)
    line = orjson.dumps({"type": "ADDED", "object": {"kind": "Pod", "metadata": meta}})
    tally = asyncio.run(feed(chunks([line]), log, Origin("file", 1000)))
    assert (tally.appended, tally.unreadable) == (0, 1)
    (kept,) = asyncio.run(log.quarantined(10))
    assert kept.what.startswith("Pod ")
    assert f"metadata.{field} is no " in kept.why
    assert kept.body == b""


def test_unreadable_values_are_all_counted_and_few_are_named() -> None:
    tally, state = fed([b"junk"] * 10_000 + [orjson.dumps({"type": "ADDED", "object": NODE})])
    assert tally.unreadable == 10_000
    assert len(tally.named) == NAMED
    assert len(state.of(Node)) == 1


def test_event_is_in_the_log_before_the_next_one_comes() -> None:
    """A pipe from kubectl may be silent for hours."""

    async def main() -> list[int]:
        log, lengths = MemoryLog(lambda: 1000), list[int]()

        async def slowly() -> AsyncIterator[bytes]:
            for name in ("a", "b", "c"):
                meta = {"name": name, "uid": name, "resourceVersion": "5"}
                yield json.dumps(
                    {"type": "ADDED", "object": {"kind": "Node", "metadata": meta}}, indent=4
                ).encode()
                yield b"\n"
                lengths.append((await log.info()).entries)

        await feed(slowly(), log, Origin("file", 1000))
        return lengths

    assert asyncio.run(main()) == [1, 2, 3]


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_input_is_refused_with_the_command_that_unpacks_it(
    compress: Callable[[bytes], bytes],
) -> None:
    with pytest.raises(
        Unusable, match=r"compressed \(\w+\); unpack it: \w+ -dc FILE \| gpubinder watch --from -"
    ):
        fed([compress(b"x" * 1000)])


def test_utf_16_is_refused_with_the_command_that_converts_it() -> None:
    with pytest.raises(Unusable, match="iconv -f UTF-16"):
        fed(["{}".encode("utf-16")])
