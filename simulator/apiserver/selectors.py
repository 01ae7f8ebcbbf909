"""Label and field selectors of lists and watches, as the API server reads them from a query."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from kube.errors import BadRequest
from kube.port import Json, Selection

Matches = Callable[[Json], bool]

_SET = re.compile(r"\s*([^\s!=,()]+)\s+(in|notin)\s+\(([^)]*)\)\s*")
_EQUAL = re.compile(r"\s*([^\s!=,()]+)\s*(==|=|!=)\s*([^\s,()]*)\s*")
_EXISTS = re.compile(r"\s*(!?)\s*([^\s!=,()]+)\s*")
_FIELDS = ("metadata.name", "metadata.namespace", "spec.nodeName", "status.phase")


def matcher(selection: Selection) -> Matches:
    """Whether an object is in the selection. Raises BadRequest for a selector that cannot be read."""
    labels = _label_tests(selection.label_selector)
    fields = _field_tests(selection.field_selector)
    namespace = selection.namespace

    def matches(obj: Json) -> bool:
        metadata = obj["metadata"]
        if namespace and metadata.get("namespace") != namespace:
            return False
        carried = metadata.get("labels") or {}
        return all(test(carried) for test in labels) and all(test(obj) for test in fields)

    return matches


def _label_tests(selector: str) -> list[Callable[[Mapping[str, str]], bool]]:
    tests = []
    rest = selector
    while rest.strip():
        for pattern, read in ((_SET, _set_test), (_EQUAL, _equal_test), (_EXISTS, _exists_test)):
            found = pattern.match(rest)
            if found:
                tests.append(read(found))
                rest = rest[found.end() :]
                break
        else:
            raise BadRequest("list", f"unable to parse label selector {selector!r}", 400, "BadRequest")
        if rest and not rest.startswith(","):
            raise BadRequest("list", f"unable to parse label selector {selector!r}", 400, "BadRequest")
        rest = rest[1:]
    return tests


def _set_test(found: re.Match[str]) -> Callable[[Mapping[str, str]], bool]:
    key, operator = found[1], found[2]
    values = {value.strip() for value in found[3].split(",")}
    if operator == "in":
        return lambda labels: labels.get(key) in values
    return lambda labels: labels.get(key) not in values


def _equal_test(found: re.Match[str]) -> Callable[[Mapping[str, str]], bool]:
    key, value = found[1], found[3]
    if found[2] == "!=":
        return lambda labels: labels.get(key) != value
    return lambda labels: labels.get(key) == value


def _exists_test(found: re.Match[str]) -> Callable[[Mapping[str, str]], bool]:
    key, absent = found[2], bool(found[1])
    return lambda labels: (key in labels) is not absent


def _field_tests(selector: str) -> list[Matches]:
    tests: list[Matches] = []
    for part in filter(None, selector.split(",")):
        found = _EQUAL.fullmatch(part)
        if found is None or found[1] not in _FIELDS:
            raise BadRequest("list", f"field label not supported: {part}", 400, "BadRequest")
        path, value, unequal = found[1].split("."), found[3], found[2] == "!="
        tests.append(lambda obj, p=path, v=value, u=unequal: (_field(obj, p) == v) is not u)  # type: ignore[misc]
    return tests


def _field(obj: Any, path: list[str]) -> str:
    for part in path:
        obj = obj.get(part) if isinstance(obj, dict) else None
    return str(obj or "")
