"""What a CRD's structural schema makes of an object: unknown fields pruned, wrong ones named.

Knows the CEL rules that our own CRDs use, and refuses a CRD with any other: nothing goes unchecked unnoticed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

Schema = dict[str, Any]
_NOTHING = object()

RULES: dict[str, Callable[[Any, Any], bool]] = {
    "self == oldSelf": lambda new, old: old is _NOTHING or new == old,
    "!self.contains('kubernetes.io/')": lambda new, _: "kubernetes.io/" not in new,
}


def unknown_rules(schema: Schema) -> list[str]:
    """CEL rules of the schema that are not known here."""
    own = [r["rule"] for r in schema.get("x-kubernetes-validations", []) if r["rule"] not in RULES]
    return own + [rule for child in _children(schema) for rule in unknown_rules(child)]


def prune(schema: Schema, value: Any) -> Any:
    """The value without what the schema does not name; nulls of fields that are not nullable are dropped."""
    if isinstance(value, list) and "items" in schema:
        return [prune(schema["items"], item) for item in value]
    if not isinstance(value, dict) or schema.get("x-kubernetes-preserve-unknown-fields"):
        return value
    if isinstance(schema.get("additionalProperties"), dict):
        return {key: prune(schema["additionalProperties"], item) for key, item in value.items()}
    properties = schema.get("properties")
    if properties is None:
        return value
    return {
        key: prune(properties[key], item)
        for key, item in value.items()
        if key in properties and (item is not None or properties[key].get("nullable"))
    }


def faults(schema: Schema, value: Any, old: Any = _NOTHING, path: str = "") -> Iterator[str]:
    """What is wrong with the value, one line each, as the API server words it."""
    if value is None and schema.get("nullable"):
        return
    wrong = _type_fault(schema, value)
    if wrong:
        yield f"{path}: {wrong}"
        return
    yield from (f"{path}: Invalid value: {_show(value)}: {text}" for text in _bound_faults(schema, value))
    for rule in schema.get("x-kubernetes-validations", []):
        if not RULES[rule["rule"]](value, old):
            yield f"{path}: Invalid value: {rule.get('message', rule['rule'])}"
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
    return "" if fits[expected] else f"Invalid value: {_show(value)}: must be of type {expected}"


def _bound_faults(schema: Schema, value: Any) -> Iterator[str]:
    if "enum" in schema and value not in schema["enum"]:
        yield f"Unsupported value: supported values: {schema['enum']}"
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


def _show(value: Any) -> str:
    return f"{value!r:.60}" if isinstance(value, str) else f"{value!s:.60}"
