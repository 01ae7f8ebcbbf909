"""Patches: merge patch (RFC 7386) and JSON patch (RFC 6902), on JSON values. Nothing given is changed."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

_MAX_DIGITS = 9
"""No list is longer; larger texts cost time before they are refused."""


class PatchFailed(Exception):
    """A JSON patch that cannot be applied: a failed test, or a path that is not there."""


def merge_patch(target: Any, patch: Any) -> Any:
    """The target with the patch merged in: null takes a key away, a list replaces."""
    if not isinstance(patch, Mapping):
        return copy.deepcopy(patch)
    merged = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def json_patch(target: Any, operations: Sequence[Mapping[str, Any]]) -> Any:
    """The target after the operations, in order; raises PatchFailed.

    Against RFC 6902, the API server's library takes negative indices, and tests what is not there as null.
    """
    document = copy.deepcopy(target)
    for operation in operations:
        document = _apply(document, operation)
    return document


def _apply(document: Any, operation: Mapping[str, Any]) -> Any:
    path = _tokens(str(operation.get("path", "")))
    match operation.get("op"):
        case "add":
            return _add(document, path, copy.deepcopy(operation.get("value")))
        case "remove":
            _remove(document, path)
        case "replace":
            return _replace(document, path, copy.deepcopy(operation.get("value")))
        case "move":
            value = _find(document, source := _tokens(str(operation.get("from", ""))))
            _remove(document, source)
            return _add(document, path, value)
        case "copy":
            value = copy.deepcopy(_find(document, _tokens(str(operation.get("from", "")))))
            return _add(document, path, value)
        case "test":
            if _found(document, path) != operation.get("value"):
                raise PatchFailed(f"testing value {operation.get('path')} failed")
        case unknown:
            raise PatchFailed(f"unknown operation {unknown!r}")
    return document


def _replace(document: Any, path: Sequence[str], value: Any) -> Any:
    """Against RFC 6902, as the API server does it: a missing member of an object is added."""
    parent = _find(document, path[:-1])
    if path and not isinstance(parent, dict):
        _remove(document, path)
    return _add(document, path, value)


def _tokens(pointer: str) -> list[str]:
    if pointer and not pointer.startswith("/"):
        raise PatchFailed(f"{pointer!r} is no JSON pointer")
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def _find(document: Any, path: Sequence[str]) -> Any:
    for token in path:
        document = _child(document, token)
    return document


def _found(document: Any, path: Sequence[str]) -> Any:
    """What is there, or None where only the last member is missing."""
    parent = _find(document, path[:-1]) if path else document
    return parent.get(path[-1]) if path and isinstance(parent, dict) else _find(document, path)


def _child(parent: Any, token: str) -> Any:
    try:
        return parent[_index(parent, token)] if isinstance(parent, list) else parent[token]
    except (KeyError, TypeError):
        raise PatchFailed(f"path {token!r} does not exist") from None


def _add(document: Any, path: Sequence[str], value: Any) -> Any:
    if not path:
        return value
    parent = _find(document, path[:-1])
    if isinstance(parent, list):
        place = len(parent) if path[-1] == "-" else _index(parent, path[-1], at_end=True)
        parent.insert(place, value)
    elif isinstance(parent, dict):
        parent[path[-1]] = value
    else:
        raise PatchFailed(f"cannot add {path[-1]!r} to a plain value")
    return document


def _remove(document: Any, path: Sequence[str]) -> None:
    if not path:
        raise PatchFailed("cannot remove the whole document")
    parent = _find(document, path[:-1])
    _child(parent, path[-1])
    del parent[_index(parent, path[-1]) if isinstance(parent, list) else path[-1]]


def _index(items: Sequence[Any], token: str, *, at_end: bool = False) -> int:
    digits, count = token.removeprefix("-"), len(items) + at_end
    if not digits.isascii() or not digits.isdigit() or len(digits) > _MAX_DIGITS:
        raise PatchFailed(f"index {token!r} is no number")
    index = int(token)
    if not -count <= index < count:
        raise PatchFailed(f"index {token!r} is out of range")
    return index + count if index < 0 else index
