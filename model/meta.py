"""What all objects share: the base of the models, metadata, owners, conditions.

Every field has a default: a missing status is an empty status, never an error.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

Quantities = dict[str, str]
"""Resource name to quantity, as written."""


_NOT_TOLD: set[str] = set()


class Lean(BaseModel):
    """The part of a Kubernetes object that gpubinder reads; frozen, and deaf to unknown fields."""

    keeps_generation: ClassVar[bool] = False
    """Whether metadata.generation enters the log: of kinds whose whole spec we read, so that it changes with
    what is ours to see alone, and whose status says which one it speaks of."""

    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True)

    def model_post_init(self, context: Any, /) -> None:  # noqa: ARG002
        """Forget which fields were given: a set per object would take a third of a large cluster's memory."""
        object.__setattr__(self, "__pydantic_fields_set__", _NOT_TOLD)


class OwnerReference(Lean):
    """Who an object belongs to. Whoever creates an object writes it: alone it proves nothing (R28)."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(Lean):
    """Name, version, and what others have put on the object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


class Condition(Lean):
    """One aspect of an object's state, with the reason for it."""

    type: Annotated[str, Field(description="Which aspect.")] = ""
    status: Annotated[str, Field(description="True, False or Unknown.")] = ""
    reason: Annotated[str, Field(description="One word, for programs.")] = ""
    message: Annotated[str, Field(description="One line, for people.")] = ""
    last_transition_time: Annotated[str, Field(description="When the status last changed.")] = ""
    observed_generation: Annotated[
        int, Field(description="The generation of the spec that it speaks of.")
    ] = 0
