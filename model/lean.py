"""Lean objects: the part of a Kubernetes object that some model names, and nothing else.

The models are the list of what may enter the log; `prune` cuts a raw object down to it. Nulls are absent,
maps of strings keep string pairs only, and of annotations only those that we read are kept: a broken client
or a curious tenant can add what it likes without reaching the log. Must not know: how objects are fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import orjson
from pydantic import BaseModel, ValidationError

from model.meta import Lean
from model.names import ANNOTATIONS_READ

Json = dict[str, Any]
Prune = Callable[[Any], Any]
_MOVING = ("resourceVersion",)


class Malformed(ValueError):
    """An object that does not have the shape of its kind."""


def prune_of(model: type[BaseModel]) -> Prune:
    """The function that cuts a raw object down to the fields of `model`."""
    fields: list[tuple[str, Prune]] = []
    for name, field in model.model_fields.items():
        alias = field.alias or name
        prune = _keep_our_annotations if alias == "annotations" else _prune_for(field.annotation)
        fields.append((alias, prune))

    def prune_object(raw: Any) -> Any:
        if not isinstance(raw, Mapping):
            return raw
        lean = {}
        for alias, prune in fields:
            value = raw.get(alias)
            kept = None if value is None else prune(value)
            if kept is not None and kept not in ({}, []):  # empty is absent
                lean[alias] = kept
        return lean

    return prune_object


def lean_object(model: type[Lean], prune: Prune, raw: Any) -> bytes:
    """The lean object as JSON with sorted keys: what matters alike gives equal bytes.

    resourceVersion and generation move with every change, also with those that are not ours to see: they are
    left out (but see `Lean.keeps_generation`), and the entry carries the version. Raises Malformed, naming
    the field, when the object cannot be read as its kind.
    """
    lean = prune(raw)
    try:
        model.model_validate(lean)
        moving = _MOVING if model.keeps_generation else (*_MOVING, "generation")
        lean["metadata"] = {k: v for k, v in lean.get("metadata", {}).items() if k not in moving}
        return orjson.dumps(lean, option=orjson.OPT_SORT_KEYS)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "object"
        raise Malformed(f"{where}: {first['msg']}") from None
    except (TypeError, ValueError) as error:
        raise Malformed(str(error)) from None


def _prune_for(annotation: Any) -> Prune:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _prune_for(get_args(annotation)[0])
    if origin in (Union, UnionType):
        options = [option for option in get_args(annotation) if option is not type(None)]
        return _prune_for(options[0])
    if origin is tuple:
        return _prune_list(_prune_for(get_args(annotation)[0]))
    if origin is dict:
        return _keep_string_pairs
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return prune_of(annotation)
    return _keep_scalar


def _prune_list(prune: Prune) -> Prune:
    return lambda raw: [prune(item) for item in raw] if isinstance(raw, list) else raw


def _keep_string_pairs(raw: Any) -> Any:
    if not isinstance(raw, Mapping):
        return raw
    return {key: str(value) if _is_number(value) else value for key, value in raw.items() if _is_pair(value)}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_pair(value: Any) -> bool:
    return isinstance(value, str) or _is_number(value)


def _keep_our_annotations(raw: Any) -> Any:
    kept = _keep_string_pairs(raw)
    return {key: kept[key] for key in ANNOTATIONS_READ if key in kept} if isinstance(kept, dict) else kept


def _keep_scalar(raw: Any) -> Any:
    return raw
