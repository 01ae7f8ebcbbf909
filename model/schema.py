"""From a pydantic model to the structural schema of a CRD.

Types, bounds and patterns of the fields become the schema's; `Rule` adds a CEL rule to a field, `OneOf` the
words that a writer may choose from; docstrings and field descriptions become descriptions. Must not know:
which kinds there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Rule:
    """A CEL rule on a field, and what a user reads when it is broken."""

    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class OneOf:
    """Words that the API server takes in a field; whoever reads it meets a newer word without failing."""

    words: tuple[str, ...]


def immutable(name: str) -> Rule:
    """The field never changes once it is set."""
    return Rule("self == oldSelf", f"{name} is immutable; create another object instead")


def object_schema(model: type[BaseModel]) -> Schema:
    """The schema of a model as an object, unknown fields pruned."""
    properties = {field.alias or name: field_schema(field) for name, field in model.model_fields.items()}
    required = [field.alias or name for name, field in model.model_fields.items() if field.is_required()]
    schema: Schema = {"type": "object", "properties": properties}
    if model.__doc__:
        schema["description"] = " ".join(model.__doc__.split())
    return schema | ({"required": required} if required else {})


def field_schema(field: FieldInfo) -> Schema:
    """The schema of one field, with its bounds, rules and description."""
    schema = _type_schema(field.annotation)
    bounds = _bounds_of(schema["type"])
    for constraint in field.metadata:
        for attribute, keyword in bounds.items():
            value = getattr(constraint, attribute, None)
            if value is not None:
                schema[keyword] = value
    for words in (constraint.words for constraint in field.metadata if isinstance(constraint, OneOf)):
        schema["enum"] = list(words)
    rules = [{"rule": m.rule, "message": m.message} for m in field.metadata if isinstance(m, Rule)]
    if rules:
        schema["x-kubernetes-validations"] = rules
    if field.description:
        schema["description"] = field.description
    return schema


def _type_schema(annotation: Any) -> Schema:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if hasattr(annotation, "__metadata__"):
        return field_schema(FieldInfo.from_annotation(annotation))
    if origin in (Union, UnionType):
        (inner,) = (option for option in arguments if option is not type(None))
        return _type_schema(inner) | {"nullable": True}
    if origin is tuple:
        return {"type": "array", "items": _type_schema(arguments[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _type_schema(arguments[1])}
    return _plain_schema(annotation)


def _plain_schema(annotation: Any) -> Schema:
    if issubclass(annotation, BaseModel):
        return object_schema(annotation)
    if issubclass(annotation, StrEnum):
        return {"type": "string", "enum": [str(member) for member in annotation]}
    plain: dict[type, Schema] = {
        str: {"type": "string"},
        bool: {"type": "boolean"},
        int: {"type": "integer", "format": "int64"},
    }
    return dict(plain[annotation])


def _bounds_of(schema_type: str) -> dict[str, str]:
    """Attributes of constraints, and the keywords they become: lengths are named by what is counted."""
    counted = {"array": "Items", "object": "Properties"}.get(schema_type, "Length")
    return {
        "ge": "minimum",
        "le": "maximum",
        "min_length": f"min{counted}",
        "max_length": f"max{counted}",
        "pattern": "pattern",
    }
