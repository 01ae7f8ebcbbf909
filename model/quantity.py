"""Kubernetes quantities, exactly as the API server takes them (case 045).

Grammar read in apimachinery `resource/quantity.go` and `suffix.go`: an ASCII decimal with an optional sign,
then nothing, one decimal or binary suffix, or an exponent. Exact arithmetic, no floats: `NaN` fits nowhere.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

MAX_INT64 = 2**63 - 1
"""What the scheduler counts with; larger amounts saturate."""
MAX_LENGTH = 128
"""No real quantity is longer; what is longer is refused before it costs anything."""
MAX_EXPONENT = 64
"""Beyond it every amount has saturated or vanished."""

_SHAPE = re.compile(
    r"([+-]?)([0-9]+\.?[0-9]*|\.[0-9]+)(?:(n|u|m|k|M|G|T|P|E|[KMGTPE]i)|[eE]([+-]?[0-9]+))?", re.ASCII
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


class MalformedQuantity(ValueError):
    """Not a Kubernetes quantity."""


def parse_quantity(value: object) -> Fraction:
    """The exact amount. Raises MalformedQuantity, naming what was given."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise MalformedQuantity(f"{value!r:.40} is no quantity: neither a string nor a whole number")
    return _parse_text(str(value)) if isinstance(value, str) or abs(value) <= MAX_INT64 else _too_long()


def parse_count(value: object) -> int:
    """A number of devices: whole and not negative. Raises MalformedQuantity."""
    amount = parse_quantity(value)
    if amount.denominator != 1 or amount < 0 or amount > MAX_INT64:
        raise MalformedQuantity(f"{value!r:.40} is no count: it must be whole, not negative and fit 64 bits")
    return amount.numerator


def scheduler_units(resource: str, value: object) -> int:
    """The amount as kube-scheduler counts it, rounded up: milli-cores for cpu, whole units for all else."""
    amount = parse_quantity(value) * (1000 if resource == "cpu" else 1)
    return max(-MAX_INT64, min(MAX_INT64, -(-amount.numerator // amount.denominator)))


@lru_cache(maxsize=4096)
def _parse_text(text: str) -> Fraction:
    if len(text) > MAX_LENGTH:
        return _too_long()
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        raise MalformedQuantity(f"{text!r:.40} is no quantity, such as 2, 500m, 1.5Gi or 1e3")
    sign, digits, suffix, exponent = shape.groups()
    if exponent is not None and abs(int(exponent)) > MAX_EXPONENT:
        raise MalformedQuantity(f"{text!r:.40} is no quantity: the exponent is out of range")
    number = Fraction(digits.removesuffix(".") if digits != "." else "0")
    if suffix in _BINARY:
        scale = Fraction(2 ** _BINARY[suffix])
    else:
        scale = Fraction(10) ** (int(exponent) if exponent is not None else _DECIMAL[suffix or ""])
    return (-number if sign == "-" else number) * scale


def _too_long() -> Fraction:
    raise MalformedQuantity(f"more than {MAX_LENGTH} characters or 64 bits: no quantity")
