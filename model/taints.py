"""Taints and tolerations as core/v1 writes them. Their meaning is in `binder.core.nodes`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from model.meta import Lean
from model.resource_names import DNS_SUBDOMAIN
from model.schema import OneOf

OPERATORS = ("", "Equal", "Exists")
"""What a class may write. Gt and Lt are for pods: no server serves them by default (decision 0020)."""
EFFECTS = ("", "NoSchedule", "PreferNoSchedule", "NoExecute")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_LABEL_KEY = re.compile(
    rf"(?=[^/]{{1,253}}(/|$))({DNS_SUBDOMAIN}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?"
)


def is_label_key(text: str) -> bool:
    """Whether the API server takes it as the key of a label or a taint."""
    return _LABEL_KEY.fullmatch(text) is not None


def is_label_value(text: str) -> bool:
    """Whether the API server takes it as the value of a label or a taint."""
    return _LABEL_VALUE.fullmatch(text) is not None


class Taint(Lean):
    """Keeps pods that do not tolerate it off a node."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class Toleration(Lean):
    """A taint that a class or a pod puts up with."""

    key: Annotated[str, Field(description="The taint's key; every key when empty, with Exists only.")] = ""
    operator: Annotated[str, OneOf(OPERATORS), Field(description="Exists, or Equal (also when empty).")] = ""
    value: Annotated[str, Field(description="The taint's value, with Equal only.")] = ""
    effect: Annotated[
        str, OneOf(EFFECTS), Field(description="The taint's effect; every effect when empty.")
    ] = ""
    toleration_seconds: Annotated[
        int | None, Field(description="For how long, with NoExecute only; for ever when absent.")
    ] = None


def for_pods(tolerations: Iterable[Toleration]) -> tuple[Toleration, ...]:
    """The tolerations in the form in which the API server takes them on a pod, tolerating the same taints.

    What no taint can match is left out, and so is what has no meaning where it stands (a value beside Exists,
    seconds beside another effect than NoExecute): one of them would get the whole pin refused. Rule read in
    kubernetes `pkg/apis/core/validation` (ValidateTolerations).
    """
    return tuple(_without_idle_words(one) for one in tolerations if _can_match(one))


def _can_match(toleration: Toleration) -> bool:
    if toleration.operator not in OPERATORS or toleration.effect not in EFFECTS:
        return False
    if toleration.key and not is_label_key(toleration.key):
        return False
    if toleration.operator == "Exists":
        return True
    return bool(toleration.key) and is_label_value(toleration.value)


def _without_idle_words(toleration: Toleration) -> Toleration:
    return Toleration(
        key=toleration.key,
        operator=toleration.operator,
        value="" if toleration.operator == "Exists" else toleration.value,
        effect=toleration.effect,
        toleration_seconds=toleration.toleration_seconds if toleration.effect == "NoExecute" else None,
    )
