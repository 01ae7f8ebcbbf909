"""The types of the fields that the API server decodes: a text where a list belongs is refused, not stored.

Covers metadata of every kind and, of the built-in kinds, the fields that rules, actors and models read. Other
fields of built-in kinds are kept as they are sent, where a real server drops those that it does not know.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from model.instants import parse_rfc3339
from model.quantity import MalformedQuantity
from simulator.apiserver.quantities import canonical

_MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)")


class Misfit(Exception):
    """A value that has not its field's type."""


class Leaf(StrEnum):
    """Plain values, by the names that the server's messages have for them."""

    TEXT = "string"
    WHOLE = "int64"
    FLAG = "bool"
    QUANTITY = "resource.Quantity"
    TIME = "v1.Time"
    MICRO_TIME = "v1.MicroTime"
    ANY = "anything"


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of one shape."""

    item: Shape


@dataclass(frozen=True, slots=True)
class MapOf:
    """Texts to values of one shape."""

    item: Shape


@dataclass(frozen=True, slots=True)
class Struct:
    """Named fields. Fields that are not named are kept, or dropped from a closed one."""

    fields: dict[str, Shape]
    is_closed: bool = False


Shape = Leaf | ListOf | MapOf | Struct


def decoded(shape: Shape, value: Any, path: str) -> Any:
    """The value as the server holds it: nulls are absent, quantities canonical. Raises Misfit."""
    match shape:
        case Leaf():
            return _plain(shape, value, path)
        case ListOf(item):
            if not isinstance(value, list):
                raise _misfit(value, path, "[]")
            nothing = {} if isinstance(item, Struct) else ""  # Go's zero value
            return [nothing if one is None else decoded(item, one, path) for one in value]
        case MapOf(item):
            if not isinstance(value, dict):
                raise _misfit(value, path, "map[string]")
            return {key: decoded(item, one, path) for key, one in value.items() if one is not None}
        case Struct(fields):
            if not isinstance(value, dict):
                raise _misfit(value, path, "an object")
            return {
                key: decoded(fields[key], one, f"{path}.{key}") if key in fields and one is not None else one
                for key, one in value.items()
                if _is_kept(shape, key, one)
            }


def _is_kept(shape: Struct, key: str, value: Any) -> bool:
    if key not in shape.fields:
        return not shape.is_closed
    return value is not None or shape.fields[key] is Leaf.TIME


def _plain(leaf: Leaf, value: Any, path: str) -> Any:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    fits = {
        Leaf.WHOLE: is_whole and abs(value) < 2**63,
        Leaf.FLAG: isinstance(value, bool),
        Leaf.QUANTITY: is_whole or isinstance(value, str),
        Leaf.ANY: True,
    }
    if not fits.get(leaf, isinstance(value, str)):
        raise _misfit(value, path, leaf)
    if leaf is Leaf.QUANTITY:
        return _quantity(value, path)
    if leaf is Leaf.TIME and parse_rfc3339(value) is None:
        raise _no_time(value, path, "2006-01-02T15:04:05Z07:00")
    if leaf is Leaf.MICRO_TIME and not _MICRO_TIME.fullmatch(value):
        raise _no_time(value, path, "2006-01-02T15:04:05.000000Z07:00")
    return value


def _quantity(value: Any, path: str) -> str:
    try:
        return canonical(value)
    except MalformedQuantity as error:
        raise Misfit(f"quantities must match the regular expression: {path}: {error}") from None


def _no_time(value: str, path: str, layout: str) -> Misfit:
    return Misfit(f'{path}: parsing time "{value:.60}" as "{layout}": cannot parse')


def _misfit(value: Any, path: str, wanted: str) -> Misfit:
    names = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    found = names.get(type(value), "value")
    return Misfit(f"json: cannot unmarshal {found} into Go struct field {path} of type {wanted}")
