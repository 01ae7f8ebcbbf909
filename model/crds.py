"""The CustomResourceDefinitions of our three kinds, made from their models.

CEL rules in use: `self == oldSelf` on className, units and resourceName; no kubernetes.io in a resourceName.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from model.claims import GPUBudget, GPUClaim, GPUClass
from model.meta import Lean
from model.resources import GPU_BUDGETS, GPU_CLAIMS, GPU_CLASSES, VERSION, Resource
from model.schema import field_schema

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`."""

    name: str
    path: str
    type: str = "string"
    priority: int = 0
    """1: shown with `-o wide` only."""

    @property
    def body(self) -> Json:
        """As a CRD has it."""
        shown = {"name": self.name, "type": self.type, "jsonPath": self.path}
        return shown | ({"priority": self.priority} if self.priority else {})


def _condition(of: str, part: str) -> str:
    return f".status.conditions[?(@.type=='{of}')].{part}"


_AGE = Column("Age", ".metadata.creationTimestamp", "date")
_CLASS_COLUMNS = (
    Column("Resource", ".spec.resourceName"),
    Column("Default", ".spec.default", "boolean"),
    Column("Ready", _condition("Ready", "status")),
    Column("Nodes", ".status.nodes", "integer"),
    Column("Allocatable", ".status.allocatable", "integer"),
    Column("Bound", ".status.bound", "integer"),
    Column("Free", ".status.free", "integer"),
    Column("Raw", ".status.raw", "integer", priority=1),
    Column("Pending", ".status.pending", "integer", priority=1),
    Column("Lost", ".status.lost", "integer", priority=1),
    Column("Reason", _condition("Ready", "reason"), priority=1),
    _AGE,
)
_CLAIM_COLUMNS = (
    Column("Class", ".spec.className"),
    Column("Units", ".spec.units", "integer"),
    Column("Phase", ".status.phase"),
    Column("Node", ".status.nodeName"),
    Column("VM", ".status.vm.name"),
    Column("Reason", _condition("Placed", "reason")),
    _AGE,
)
_BUDGET_COLUMNS = (
    Column("Parent", ".spec.parent"),
    Column("Valid", _condition("Valid", "status")),
    Column("Limits", ".spec.classes"),
    Column("Used", ".status.used.classes"),
    Column("Raw limits", ".spec.resources", priority=1),
    Column("Raw used", ".status.used.resources", priority=1),
    Column("Reason", _condition("Valid", "reason"), priority=1),
    _AGE,
)


def all_crds() -> list[Json]:
    """The three CRDs, ready to be applied."""
    return [
        _crd(GPU_CLASSES, GPUClass, ("gpuclass",), _CLASS_COLUMNS),
        _crd(GPU_CLAIMS, GPUClaim, ("gpuclaim", "gcl"), _CLAIM_COLUMNS),
        _crd(GPU_BUDGETS, GPUBudget, ("gpubudget",), _BUDGET_COLUMNS),
    ]


def _crd(
    resource: Resource, model: type[Lean], short_names: tuple[str, ...], columns: tuple[Column, ...]
) -> Json:
    parts = {name: field_schema(model.model_fields[name]) for name in ("spec", "status")}
    schema = {
        "type": "object",
        "description": " ".join((model.__doc__ or "").split()),
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            **parts,
        },
        "required": ["spec"],
    }
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [column.body for column in columns],
    }
    names = {
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": resource.kind.lower(),
        "shortNames": [name for name in short_names if name != resource.kind.lower()],
        "categories": ["gpu"],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": resource.full_name},
        "spec": {
            "group": resource.group,
            "names": names,
            "scope": "Namespaced" if resource.is_namespaced else "Cluster",
            "versions": [version],
        },
    }
