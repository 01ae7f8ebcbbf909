"""What a CRD's structural schema makes of an object: unknown fields pruned, defaults set, wrong values named.

Knows the keywords and CEL rules that our own CRDs use, and refuses a CRD with any other: nothing goes
unchecked unnoticed.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from typing import Any

import orjson

Schema = dict[str, Any]
_NOTHING = object()

RULES: dict[str, Callable[[Any, Any], bool]] = {
    "self == oldSelf": lambda new, old: old is _NOTHING or new == old,
    "!self.contains('kubernetes.io/')": lambda new, _: "kubernetes.io/" not in new,
}


_KEYWORDS = (
    *("type", "description", "title", "example", "default", "nullable", "enum", "pattern", "format"),
    *("required", "properties", "items", "additionalProperties", "minimum", "maximum"),
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
    *("x-kubernetes-validations", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"),
)
_FORMATS = ("int32", "int64", "")


def unknown_parts(schema: Schema) -> list[str]:
    """Keywords, formats and CEL rules of the schema that are not known here."""
    own = [f"the keyword {name!r}" for name in schema if name not in _KEYWORDS]
    if schema.get("format", "") not in _FORMATS:
        own.append(f"the format {schema['format']!r}")
    rules = [one["rule"] for one in schema.get("x-kubernetes-validations", [])]
    own += [f"the CEL rule {rule!r}" for rule in rules if rule not in RULES]
    return own + [part for child in _children(schema) for part in unknown_parts(child)]


def shaped(schema: Schema, value: Any) -> Any:
    """The value as it is stored: unknown fields and forbidden nulls dropped, defaults set, 3.0 made 3."""
    if isinstance(value, float) and schema.get("type") == "integer" and value.is_integer():
        return int(value)
    if isinstance(value, list) and "items" in schema:
        return [shaped(schema["items"], item) for item in value]
    if not isinstance(value, dict) or schema.get("x-kubernetes-preserve-unknown-fields"):
        return value
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict):
        kept = {key: item for key, item in value.items() if item is not None or extra.get("nullable")}
        return {key: shaped(extra, item) for key, item in kept.items()}
    properties = schema.get("properties")
    if properties is None:
        return {} if schema.get("type") == "object" else value
    kept = {
        key: item
        for key, item in value.items()
        if key in properties and (item is not None or properties[key].get("nullable"))
    }
    absent = {
        name: copy.deepcopy(child["default"])
        for name, child in properties.items()
        if "default" in child and name not in kept
    }
    return {key: shaped(properties[key], item) for key, item in (kept | absent).items()}


def faults(schema: Schema, value: Any, old: Any = _NOTHING, path: str = "") -> Iterator[str]:
    """What is wrong with the value, one line each; what has not changed passes (ratcheting)."""
    if (value is None and schema.get("nullable")) or (old is not _NOTHING and value == old):
        return
    wrong = _type_fault(schema, value)
    if wrong:
        yield f'{path}: Invalid value: "{_type_name(value)}": {path} in body {wrong}'
        return
    if "enum" in schema and value not in schema["enum"]:
        supported = ", ".join(_show(word) for word in schema["enum"])
        yield f"{path}: Unsupported value: {_show(value)}: supported values: {supported}"
    for text in _bound_faults(schema, value):
        yield f"{path}: Invalid value: {_show(value)}: {path} in body {text}"
    for rule in schema.get("x-kubernetes-validations", []):
        if not RULES[rule["rule"]](value, old):
            yield f"{path}: Invalid value: {_show(value)}: {rule.get('message', rule['rule'])}"
    if isinstance(value, dict):
        yield from _field_faults(schema, value, old if isinstance(old, dict) else {}, path)
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from faults(schema["items"], item, path=f"{path}[{index}]")


def _field_faults(schema: Schema, value: Schema, old: Schema, path: str) -> Iterator[str]:
    for name in schema.get("required", []):
        if name not in value:
            yield f"{path}.{name}: Required value".lstrip(".")
    extra = schema.get("additionalProperties")
    for name, item in value.items():
        child = schema.get("properties", {}).get(name) or (extra if isinstance(extra, dict) else None)
        if child is not None:
            yield from faults(child, item, old.get(name, _NOTHING), f"{path}.{name}".lstrip("."))


def _type_fault(schema: Schema, value: Any) -> str:
    expected = schema.get("type")
    if expected is None or schema.get("x-kubernetes-int-or-string"):
        return ""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    fits = {
        "object": isinstance(value, dict),
        "array": isinstance(value, list),
        "string": isinstance(value, str),
        "boolean": isinstance(value, bool),
        "integer": is_number and float(value).is_integer() and abs(value) < 2**63,
        "number": is_number,
    }
    return "" if fits[expected] else f'must be of type {expected}: "{_type_name(value)}"'


def _bound_faults(schema: Schema, value: Any) -> Iterator[str]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        if "minimum" in schema and value < schema["minimum"]:
            yield f"should be greater than or equal to {schema['minimum']}"
        if "maximum" in schema and value > schema["maximum"]:
            yield f"should be less than or equal to {schema['maximum']}"
    for counted, kind in (("Length", str), ("Items", list), ("Properties", dict)):
        if isinstance(value, kind):
            if len(value) > schema.get(f"max{counted}", len(value)):
                yield f"may not be longer than {schema[f'max{counted}']}"
            if len(value) < schema.get(f"min{counted}", 0):
                yield f"should be at least {schema[f'min{counted}']} long"
    if isinstance(value, str) and "pattern" in schema and not _matches(schema["pattern"], value):
        yield f"should match {schema['pattern']!r}"


def _matches(pattern: str, value: str) -> bool:
    """As Go does: `$` is the very end, also of a text that ends in a newline."""
    return re.search(re.sub(r"\$$", r"\\Z", pattern), value) is not None


def _children(schema: Schema) -> list[Schema]:
    children = list(schema.get("properties", {}).values())
    children += [
        schema[key] for key in ("items", "additionalProperties") if isinstance(schema.get(key), dict)
    ]
    return children


def _type_name(value: Any) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


def _show(value: Any) -> str:
    return orjson.dumps(value).decode()[:200]
