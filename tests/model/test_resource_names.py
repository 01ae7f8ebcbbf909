"""Resource names of the field survive wherever they go (case 046)."""

from __future__ import annotations

import logging
import re
from typing import Any

import orjson
import pytest
from prometheus_client import CollectorRegistry, Counter, generate_latest

from eventlog.entries import Entry, EntryType, StoredEntry, decode_entry, encode_entry
from gpubinder.logs import LOGGER, configure, say
from model.kinds import BY_KIND
from model.kubevirt import VirtualMachineInstance
from model.lean import lean_object
from model.pods import Pod
from model.resource_names import EXTENDED_NAME, MAX_EXTENDED_NAME, MAX_NAME, is_extended, json_pointer
from simulator.apiserver.patches import json_patch
from tests.binder.deciding import decide, placed_on
from tests.builders import gpu_class, state
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


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_names_stand_in_log_lines_as_they_are_written(
    capsys: pytest.CaptureFixture[str], log_format: str
) -> None:
    try:
        configure(log_format)
        for name in NAMES:
            say(logging.INFO, "sold", resource=name, units=1)
    finally:
        LOGGER.handlers.clear()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(NAMES)
    assert all(name in line for name, line in zip(NAMES, lines, strict=True))


def test_launcher_goes_where_all_names_are_exactly_its_own() -> None:
    """Three nodes: one has the name in capitals, one too few of the second resource, one has both."""
    objects = [as_model(raw) for raw in load("046", "objects.yaml")]
    (pod,) = (one for one in objects if isinstance(one, Pod))
    owner = pod.metadata.owner_references[0]
    vmi = {
        "metadata": {"name": owner.name, "namespace": pod.metadata.namespace, "uid": owner.uid},
        "status": {"activePods": {pod.metadata.uid: ""}},
    }
    sold = [claim["resource"] for claim in load("046", "request.yaml")["claims"]]
    classes = [gpu_class(f"class-{number}", resource) for number, resource in enumerate(sold)]
    cluster = state(*objects, *classes, VirtualMachineInstance.model_validate(vmi))
    assert list(placed_on(decide(cluster)).values()) == load("046", "expected.yaml")["eligibleNodes"]


def as_model(raw: dict[str, Any]) -> Any:
    watched = BY_KIND[raw["kind"]]
    return watched.model.model_validate_json(lean_object(watched.model, watched.prune, raw))


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
