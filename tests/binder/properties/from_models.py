"""Any object that passes the models, field by field from the models themselves.

Names, uids and texts come from one small pool, so that objects meet by accident; numbers, quantities and
timestamps also from beyond what is sane.
"""

from __future__ import annotations

from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from model.kinds import BY_KIND
from model.names import ANNOTATION_CLAIMS, ANNOTATION_CLASS, FINALIZER, GATE, LABEL_CREATED_BY
from tests.binder.properties.raw import AT, H, Raw, T

TEXTS = ("", "a", "b", "n0", "x", "h", "u1", "u2", "True", "Running", "Failed", "Pending", "Bound", "Lost")
TIMES = ("", AT, "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-13-01T00:00:00Z", "soon")
AMOUNTS = ("1", "2", "0", "-3", "1.5", "9223372036854775808", "1e99", "1Ei", "1e-99", "NaN", "", "ten")
NUMBERS = (0, 1, -1, 60, 2**31, 2**63, -(2**63))
WORDS: dict[str, tuple[str, ...]] = {
    "kind": ("VirtualMachineInstance", "VirtualMachine", ""),
    "operator": ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Equal", "", "Near"),
    "effect": ("NoSchedule", "NoExecute", "PreferNoSchedule", "", "Never"),
    "resourceName": (H, T),
    "className": ("h", "a"),
    "runStrategy": ("Always", "RerunOnFailure", "Manual", "Halted", "Once", ""),
    "type": ("Ready", "PodScheduled", "Placed", ""),
    "reason": ("Unschedulable", "OutOfcpu", "NoRoom", ""),
    "restartPolicy": ("Always", ""),
    "volumeBindingMode": ("WaitForFirstConsumer", "Immediate", ""),
}
"""Of fields whose words decide something; each may also be any text."""
LABELS = ("a", "zone", LABEL_CREATED_BY, "kubevirt.io/migrationJobUID", ANNOTATION_CLAIMS, ANNOTATION_CLASS)
CLUSTER_SCOPED = ("Node", "Namespace", "PersistentVolume", "StorageClass", "GPUClass", "GPUBudget")

texts = st.sampled_from(TEXTS)


def objects() -> st.SearchStrategy[tuple[str, Raw]]:
    """A kind and a raw object of it that its model takes."""
    return st.one_of([st.tuples(st.just(kind), _object(kind)) for kind in BY_KIND])


def _object(kind: str) -> st.SearchStrategy[Raw]:
    model = BY_KIND[kind].model
    return _raw_of(model).map(lambda one: _identified(kind, one)).filter(lambda one: _passes(model, one))


def _identified(kind: str, one: Raw) -> Raw:
    meta = {"name": "a", "namespace": "x", "uid": "u1"} | one.get("metadata", {})
    if kind in CLUSTER_SCOPED:
        meta["namespace"] = ""
    return one | {"metadata": meta}


def _passes(model: type[BaseModel], one: Raw) -> bool:
    try:
        model.model_validate(one)
    except ValidationError:
        return False
    return True


def _raw_of(model: type[BaseModel]) -> st.SearchStrategy[Raw]:
    fields = {(field.alias or name): field for name, field in model.model_fields.items()}
    required = {alias: _of_field(alias, field) for alias, field in fields.items() if field.is_required()}
    optional = {alias: _of_field(alias, field) for alias, field in fields.items() if alias not in required}
    return st.fixed_dictionaries(required, optional=optional)


def _of_field(alias: str, field: FieldInfo) -> st.SearchStrategy[Any]:
    return _of(alias, field.annotation)


def _of(alias: str, annotation: Any) -> st.SearchStrategy[Any]:  # noqa: PLR0911 - one return per shape
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _of(alias, args[0])
    if origin in (Union, UnionType):
        return st.one_of([_of(alias, one) for one in args if one is not type(None)])
    if origin is tuple:
        return st.lists(_of(alias, args[0]), max_size=2)
    if origin is dict:
        return _pairs(alias, args[1])
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return st.deferred(lambda: _raw_of(annotation))
    if annotation is bool:
        return st.booleans()
    if annotation is int:
        return st.sampled_from(NUMBERS)
    return _text(alias)


def _text(alias: str) -> st.SearchStrategy[str]:
    if alias in WORDS:
        return st.one_of(st.sampled_from(WORDS[alias]), texts)
    if alias.endswith(("At", "Timestamp", "Time", "timeAdded")):
        return st.sampled_from(TIMES)
    if alias == "finalizers":
        return st.just(FINALIZER)
    return st.one_of(texts, st.just(GATE)) if alias == "name" else texts


def _pairs(alias: str, value: Any) -> st.SearchStrategy[Any]:
    if alias in ("requests", "allocatable", "overhead", "capacity"):
        return st.dictionaries(
            st.sampled_from((H, T, "cpu", "memory", "pods")), st.sampled_from(AMOUNTS), max_size=4
        )
    if alias == "activePods":
        return st.dictionaries(texts, texts, max_size=2)
    return st.dictionaries(st.sampled_from(LABELS), _of("", value), max_size=3)
