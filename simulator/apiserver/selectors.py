"""Label and field selectors of lists and watches, as the API server reads them from a query."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from kube.errors import BadRequest
from kube.port import Json, Selection
from model import resources as r
from model.resources import Resource
from simulator.apiserver.names import label_value_fault, qualified_fault

Matches = Callable[[Json], bool]

_SET = re.compile(r"\s*([^\s!=,()<>]+)\s+(in|notin)\s*\(([^()]*)\)\s*")
_EQUAL = re.compile(r"\s*([^\s!=,()<>]+)\s*(==|=|!=)\s*([^\s,()=!<>]*)\s*")
_COMPARED = re.compile(r"\s*([^\s!=,()<>]+)\s*([<>])\s*(-?\d+)\s*")
_EXISTS = re.compile(r"\s*(!?)\s*([^\s!=,()<>]+)\s*")
_OF_ANY_KIND = ("metadata.name", "metadata.namespace")
_OF_CLUSTER_SCOPED = ("metadata.name",)
_FIELDS: dict[Resource, tuple[str, ...]] = {
    r.PODS: (
        *("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName"),
        *("spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName"),
    ),
    r.NODES: ("spec.unschedulable",),
    r.NAMESPACES: ("status.phase",),
    r.EVENTS: ("reason", "type", "regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid"),
}
_FALSE_WHEN_ABSENT = ("spec.hostNetwork", "spec.unschedulable")


def matcher(resource: Resource, selection: Selection) -> Matches:
    """Whether an object is in the selection. Raises BadRequest for a selector that cannot be read."""
    labels = _label_tests(selection.label_selector)
    fields = _field_tests(resource, selection.field_selector)
    namespace = selection.namespace

    def matches(obj: Json) -> bool:
        metadata = obj["metadata"]
        if namespace and metadata.get("namespace") != namespace:
            return False
        carried = metadata.get("labels") or {}
        return all(test(carried) for test in labels) and all(test(obj) for test in fields)

    return matches


def in_scope(selection: Selection) -> Selection:
    """The selection that a server reads whole: a namespace, or the one object that is named."""
    named = re.fullmatch(r"metadata\.name==?[^,]*", selection.field_selector)
    return Selection(selection.namespace, "", selection.field_selector if named else "")


def _label_tests(selector: str) -> list[Callable[[Mapping[str, str]], bool]]:
    tests = []
    readers = ((_SET, _set_test), (_EQUAL, _equal_test), (_COMPARED, _compare_test), (_EXISTS, _exists_test))
    rest, is_more = selector, bool(selector.strip())
    while is_more:
        found, read = next(((m, read) for p, read in readers if (m := p.match(rest))), (None, None))
        if found is None or read is None:
            raise _refused(f"unable to parse requirement: {rest.strip() or 'nothing'!r} in {selector!r}")
        tests.append(read(found))
        rest = rest[found.end() :]
        if rest and not rest.startswith(","):
            raise _refused(f"found {rest!r}, expected: ',' or 'end of string'")
        rest, is_more = rest[1:], bool(rest)
    return tests


def _set_test(found: re.Match[str]) -> Callable[[Mapping[str, str]], bool]:
    key, operator = _key(found[1]), found[2]
    values = {_value(value.strip(), key) for value in found[3].split(",")}
    if operator == "in":
        return lambda labels: labels.get(key) in values
    return lambda labels: labels.get(key) not in values


def _equal_test(found: re.Match[str]) -> Callable[[Mapping[str, str]], bool]:
    key = _key(found[1])
    value = _value(found[3], key)
    if found[2] == "!=":
        return lambda labels: labels.get(key) != value
    return lambda labels: labels.get(key) == value


def _compare_test(found: re.Match[str]) -> Callable[[Mapping[str, str]], bool]:
    key, is_greater, bound = _key(found[1]), found[2] == ">", int(found[3])

    def test(labels: Mapping[str, str]) -> bool:
        value = labels.get(key, "")
        if not re.fullmatch(r"-?\d{1,19}", value, re.ASCII):
            return False
        return int(value) > bound if is_greater else int(value) < bound

    return test


def _exists_test(found: re.Match[str]) -> Callable[[Mapping[str, str]], bool]:
    key, absent = _key(found[2]), bool(found[1])
    return lambda labels: (key in labels) is not absent


def _key(key: str) -> str:
    if fault := qualified_fault(key):
        raise _refused(f'unable to parse requirement: <nil>: Invalid value: "{key}": {fault}')
    return key


def _value(value: str, key: str) -> str:
    if fault := label_value_fault(value):
        raise _refused(f'unable to parse requirement: values[0][{key}]: Invalid value: "{value}": {fault}')
    return value


def _field_tests(resource: Resource, selector: str) -> list[Matches]:
    everywhere = _OF_ANY_KIND if resource.is_namespaced else _OF_CLUSTER_SCOPED
    known = (*everywhere, *_FIELDS.get(resource, ()))
    tests: list[Matches] = []
    for part in filter(None, selector.split(",")):
        found = re.fullmatch(r"\s*([^\s!=]+?)\s*(==|=|!=)\s*(.*?)\s*", part)
        if found is None:
            raise _refused(f"invalid selector: '{selector}'; can't understand '{part}'")
        if found[1] not in known:
            raise _refused(f"field label not supported: {found[1]}")
        tests.append(_field_test(found[1], found[3], is_unequal=found[2] == "!="))
    return tests


def _field_test(name: str, wanted: str, *, is_unequal: bool) -> Matches:
    path, absent = name.split("."), "false" if name in _FALSE_WHEN_ABSENT else ""
    return lambda obj: (_field(obj, path, absent) == wanted) is not is_unequal


def _field(obj: Any, path: list[str], absent: str) -> str:
    for part in path:
        obj = obj.get(part) if isinstance(obj, dict) else None
    if isinstance(obj, bool):
        return str(obj).lower()
    return absent if obj is None else str(obj)


def _refused(text: str) -> BadRequest:
    return BadRequest("selector", text, 400, "BadRequest")
