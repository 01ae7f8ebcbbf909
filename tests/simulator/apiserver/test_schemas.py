"""CRDs: what their schemas make of objects, and which of them the server takes."""

from __future__ import annotations

from typing import Any

import pytest

from kube.errors import Invalid, NotFound
from kube.port import ALL, Json
from model import resources as r
from model.crds import all_crds
from tests.simulator.apiserver.cluster_objects import THINGS, a_crd, a_server, a_thing, key, serving_things

COUNT: Json = {"type": "integer", "minimum": 1, "maximum": 9}


def an_object(**properties: Json) -> Json:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("schema", "spec", "stored"),
    [
        (an_object(a=COUNT), {"a": 1, "b": 2}, {"a": 1}),
        (an_object(a=COUNT), {"a": 3.0}, {"a": 3}),
        (an_object(a=COUNT), {"a": None}, {}),
        (an_object(a=COUNT | {"nullable": True}), {"a": None}, {"a": None}),
        (an_object(a=COUNT | {"default": 5}), {}, {"a": 5}),
        (an_object(a=COUNT | {"default": 5}), {"a": None}, {"a": 5}),
        (an_object(a=an_object(b=COUNT | {"default": 5}) | {"default": {}}), {}, {"a": {"b": 5}}),
        ({"type": "object", "additionalProperties": COUNT}, {"x": 1}, {"x": 1}),
        (
            an_object(a={"type": "array", "items": an_object(b=COUNT)}),
            {"a": [{"b": 1, "c": 2}]},
            {"a": [{"b": 1}]},
        ),
    ],
)
async def test_object_is_stored_in_its_schemas_shape(schema: Json, spec: Json, stored: Json) -> None:
    server = await serving_things(schema)
    created = await server.create(THINGS, a_thing(**spec))
    assert created["spec"] == stored
    assert isinstance(created["spec"].get("a", 0), type(stored.get("a", 0)))


@pytest.mark.parametrize(
    ("schema", "value", "says"),
    [
        (COUNT, 0, "spec.a: Invalid value: 0: spec.a in body should be greater than or equal to 1"),
        (COUNT, 10, "less than or equal to 9"),
        (COUNT, "2", 'spec.a: Invalid value: "string": spec.a in body must be of type integer: "string"'),
        (COUNT, 1.5, "must be of type integer"),
        (COUNT, True, "must be of type integer"),
        ({"type": "string", "enum": ["x", "y"]}, "z", 'Unsupported value: "z": supported values: "x", "y"'),
        ({"type": "string", "pattern": "^a$"}, "a\n", "should match"),
        ({"type": "string", "maxLength": 2}, "abc", "may not be longer than 2"),
        ({"type": "array", "items": COUNT, "maxItems": 1}, [1, 2], "may not be longer than 1"),
        ({"type": "array", "items": COUNT}, [1, 0], r"spec\.a\[1\]"),
        (an_object(b=COUNT) | {"required": ["b"]}, {}, "spec.a.b: Required value"),
    ],
)
async def test_value_that_breaks_the_schema_is_invalid(schema: Json, value: Any, says: str) -> None:
    server = await serving_things(an_object(a=schema))
    with pytest.raises(Invalid, match=says):
        await server.create(THINGS, a_thing(a=value))


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        (COUNT | {"x-kubernetes-validations": [{"rule": "self > 3"}]}, "the CEL rule 'self > 3'"),
        (COUNT | {"multipleOf": 2}, "the keyword 'multipleOf'"),
        ({"type": "string", "format": "date-time"}, "the format 'date-time'"),
        ({"type": "array", "items": COUNT, "x-kubernetes-list-type": "set"}, "x-kubernetes-list-type"),
    ],
)
async def test_crd_with_a_part_that_would_go_unchecked_is_refused(schema: Json, names: str) -> None:
    with pytest.raises(Invalid, match=names):
        await serving_things(an_object(a=schema))
    server = await serving_things(an_object(a=COUNT))
    with pytest.raises(Invalid, match=names):
        await server.replace(
            key(r.CUSTOM_RESOURCE_DEFINITIONS, "things.example.com"), a_crd(an_object(a=schema))
        )


async def test_our_own_crds_are_taken() -> None:
    server = a_server()
    for crd in all_crds():
        assert (await server.create(r.CUSTOM_RESOURCE_DEFINITIONS, crd))["status"]["conditions"]


async def test_crd_is_named_for_what_it_serves() -> None:
    with pytest.raises(Invalid, match=r"metadata\.name"):
        await a_server().create(r.CUSTOM_RESOURCE_DEFINITIONS, a_crd() | {"metadata": {"name": "others"}})


async def test_changed_crd_holds_for_what_changes_and_leaves_the_rest() -> None:
    server = await serving_things(an_object(a=COUNT, b=COUNT))
    await server.create(THINGS, a_thing(a=9))
    narrower = a_crd(an_object(a=COUNT | {"maximum": 3}, b=COUNT))
    await server.replace(key(r.CUSTOM_RESOURCE_DEFINITIONS, "things.example.com"), narrower)

    patched = await server.patch(key(THINGS, "thing"), {"spec": {"b": 2}})
    assert patched["spec"] == {"a": 9, "b": 2}
    with pytest.raises(Invalid):
        await server.patch(key(THINGS, "thing"), {"spec": {"a": 8}})


async def test_removed_crd_takes_its_objects_along() -> None:
    server = await serving_things(an_object(a=COUNT))
    await server.create(THINGS, a_thing(a=1))
    await server.delete(key(r.CUSTOM_RESOURCE_DEFINITIONS, "things.example.com"))
    with pytest.raises(NotFound):
        await server.list_page(THINGS, ALL)
    await server.create(r.CUSTOM_RESOURCE_DEFINITIONS, a_crd())
    assert (await server.list_page(THINGS, ALL)).items == []
