"""Watch events from a file go the way of live ones."""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson
import pytest

from binder.core.state import ClusterState, fold_entry
from eventlog.adapters.memory import MemoryLog
from eventlog.entries import StoredEntry
from ingest.entries import Origin
from ingest.from_file import Tally, feed
from model.kubevirt import VirtualMachine
from model.nodes import Node

DATA = Path(__file__).parents[1] / "recordings" / "data"


def fed(lines: list[bytes]) -> tuple[Tally, ClusterState]:
    async def main() -> tuple[Tally, ClusterState]:
        log, state = MemoryLog(lambda: 1000), ClusterState()
        tally = await feed(lines, log, Origin("file", 1000))
        for stored in await log.read_range("0-0", 10_000):
            assert isinstance(stored, StoredEntry)
            fold_entry(state, stored.entry)
        return tally, state

    return asyncio.run(main())


@pytest.mark.parametrize("path", sorted(DATA.glob("*.ndjson")), ids=lambda path: path.stem)
def test_recording_is_fed_and_folds_to_its_end(path: Path) -> None:
    lines = path.read_bytes().splitlines()
    tally, state = fed(lines)
    assert tally.unreadable == []
    assert tally.appended + tally.known + tally.passed_over == len(lines)
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
    assert (tally.appended, tally.passed_over) == (1, 1)
    assert len(state.of(Node)) == 1


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
    assert len(tally.unreadable) == 1
    assert tally.unreadable[0].startswith("line 1: ")
