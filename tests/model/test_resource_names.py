"""Resource names of the field survive wherever they go (case 046)."""

from __future__ import annotations

import re

import orjson
import pytest
from prometheus_client import CollectorRegistry, Counter, generate_latest

from eventlog.entries import Entry, EntryType, StoredEntry, decode_entry, encode_entry
from model.resource_names import EXTENDED_NAME, MAX_EXTENDED_NAME, MAX_NAME, is_extended, json_pointer
from simulator.apiserver.patches import json_patch
from tests.model.cases_on_disk import load

NAMES: list[str] = load("046", "names.yaml")


@pytest.mark.parametrize("name", NAMES)
def test_name_survives_as_it_is_written(name: str) -> None:
    assert is_extended(name)
    assert re.fullmatch(EXTENDED_NAME, name)
    body = orjson.dumps({name: "1"})
    stored = decode_entry("1-0", encode_entry(Entry(EntryType.ADDED, "Node", "", name, object=body)))
    assert isinstance(stored, StoredEntry)
    assert (stored.entry.name, orjson.loads(stored.entry.object)) == (name, {name: "1"})
    changed = json_patch(
        {"a": {name: "1"}}, [{"op": "replace", "path": json_pointer("a", name), "value": "2"}]
    )
    assert changed == {"a": {name: "2"}}
    registry = CollectorRegistry()
    Counter("units", "Units", ["resource"], registry=registry).labels(name).inc()
    assert f'resource="{name}"'.encode() in generate_latest(registry)


def test_names_that_differ_by_case_alone_are_two() -> None:
    assert len({name.lower() for name in NAMES}) < len(set(NAMES)) == len(NAMES)


def test_json_pointer_escapes_the_slash() -> None:
    """RFC 6901."""
    for name, escaped in load("046", "expected.yaml")["jsonPointer"].items():
        assert json_pointer(name) == f"/{escaped}"


@pytest.mark.parametrize(
    "name", ["cpu", "memory", "hugepages-2Mi", "pods", "kubernetes.io/x", "x.kubernetes.io/y", "requests.a/b"]
)
def test_native_names_are_not_extended(name: str) -> None:
    assert not is_extended(name)


@pytest.mark.parametrize(
    "name",
    [
        "gpu",
        "nvidia.com/",
        "/gpu",
        "Nvidia.com/gpu",
        "nvidia.com/g pu",
        "a/b/c",
        "a/b\n",
        "a/-",
        "a/" + "x" * 64,
    ],
)
def test_what_is_no_qualified_name_is_refused(name: str) -> None:
    assert not re.fullmatch(EXTENDED_NAME, name)
    assert not is_extended(name)


def test_longest_name_is_the_one_that_quota_can_still_prefix() -> None:
    """`requests.` and the domain are 253 characters at most."""
    domain = "a." * 121 + "bc"
    longest = f"{domain}/{'x' * MAX_NAME}"
    assert len(longest) == MAX_EXTENDED_NAME
    assert is_extended(longest)
    assert not is_extended(f"d{longest}")
