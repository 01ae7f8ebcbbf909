"""Amounts as kubelet and scheduler of the simulator count them; on purpose not the binder's own code."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from kube.port import Json
from model.quantity import MalformedQuantity, parse_quantity


def allocatable(node: Json) -> dict[str, Fraction]:
    """What the node can give; what cannot be read is not there."""
    given: Mapping[str, str] = (node.get("status") or {}).get("allocatable") or {}
    read = {}
    for name, value in given.items():
        try:
            read[name] = parse_quantity(value)
        except MalformedQuantity:
            continue
    return read


def requests(pod: Json) -> dict[str, Fraction]:
    """What the pod takes, its one place among pods included."""
    total: dict[str, Fraction] = {"pods": Fraction(1)}
    peak: dict[str, Fraction] = {}
    sidecars: dict[str, Fraction] = {}
    for container in pod["spec"].get("initContainers") or []:
        own = _of(container)
        if container.get("restartPolicy") == "Always":
            sidecars = _sum(sidecars, own)
            own = {}
        for name, amount in _sum(sidecars, own).items():
            peak[name] = max(peak.get(name, Fraction(0)), amount)
    for container in pod["spec"].get("containers") or []:
        total = _sum(total, _of(container))
    total = _sum(total, sidecars)
    for name, amount in peak.items():
        total[name] = max(total.get(name, Fraction(0)), amount)
    total |= _of(pod["spec"])  # what is asked for the whole pod stands instead of its containers' sum
    return _sum(total, _read(pod["spec"].get("overhead") or {}))


def _of(container: Json) -> dict[str, Fraction]:
    return _read((container.get("resources") or {}).get("requests") or {})


def _read(given: Mapping[str, str]) -> dict[str, Fraction]:
    return {name: parse_quantity(value) for name, value in given.items()}


def _sum(one: Mapping[str, Fraction], other: Mapping[str, Fraction]) -> dict[str, Fraction]:
    return {name: one.get(name, Fraction(0)) + other.get(name, Fraction(0)) for name in {**one, **other}}
