"""Kubernetes quantities, exactly as the API server takes them (case 045).

Grammar and rounding read in apimachinery `resource/quantity.go` and `suffix.go` and compared with that parser
on random texts: an ASCII decimal with an optional sign, then nothing, one decimal or binary suffix, or an
exponent. Amounts are exact down to a nano-unit and never floats: `NaN` fits nowhere.

On purpose not as the server has them: its counts wrap around where ours saturate, its exponents wrap around
where ours are refused, a text without a digit (which it reads as 0, here and there) is refused, and no
quantity is longer than MAX_LENGTH.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

MAX_INT64 = 2**63 - 1
"""What the scheduler counts with; larger amounts saturate."""
MAX_LENGTH = 128
"""No real quantity is longer; what is longer is refused before it costs anything."""
MAX_EXPONENT = 2**31 - 1
"""The server's exponents have 32 bits."""
_CUT_EXPONENT = 256
"""With at most MAX_LENGTH digits, every amount has saturated or vanished long before."""

_SHAPE = re.compile(
    r"([+-]?)(?=\.?[0-9])([0-9]*)(?:\.([0-9]*))?(?:(n|u|m|k|M|G|T|P|E|[KMGTPE]i)|[eE]([+-]?[0-9]+))?",
    re.ASCII,
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_NANO, _MICRO = 10**9, 10**6


class MalformedQuantity(ValueError):
    """Not a Kubernetes quantity; the text shows what was given, shortened."""


def parse_quantity(value: object) -> Fraction:
    """The amount, exact to a nano-unit. Raises MalformedQuantity, naming what was given."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise MalformedQuantity(f"{value!r:.40} is no quantity: neither a string nor a whole number")
    if isinstance(value, int):
        if abs(value) > MAX_INT64:
            raise MalformedQuantity("a number of more than 64 bits is no quantity")
        return Fraction(value)
    if len(value) > MAX_LENGTH:
        raise MalformedQuantity(f"a text of more than {MAX_LENGTH} characters is no quantity")
    return _parse_text(value)


def parse_count(value: object) -> int:
    """A number of devices: whole and not negative. Raises MalformedQuantity."""
    amount = parse_quantity(value)
    if amount.denominator != 1 or amount < 0 or amount > MAX_INT64:
        raise MalformedQuantity(f"{value!r:.40} is no count: it must be whole, not negative and fit 64 bits")
    return amount.numerator


def nano_units(value: object) -> int:
    """The amount in nano-units: sums of them are exact. Raises MalformedQuantity."""
    if isinstance(value, str) and len(value) <= MAX_LENGTH:
        return _text_nanos(value)
    return _nanos(parse_quantity(value))


def scheduler_units(resource: str, value: object) -> int:
    """The amount as kube-scheduler counts it, rounded up: milli-cores for cpu, whole units for all else.

    Saturates at 64 bits. Raises MalformedQuantity.
    """
    return rounded_units(resource, nano_units(value))


def rounded_units(resource: str, nanos: int) -> int:
    """Nano-units as kube-scheduler counts them: milli-cores for cpu, whole units for all else, rounded up."""
    unit = _MICRO if resource == "cpu" else _NANO
    return max(-MAX_INT64, min(MAX_INT64, -(-nanos // unit)))


@lru_cache(maxsize=4096)
def _text_nanos(text: str) -> int:
    return _nanos(_parse_text(text))


def _nanos(amount: Fraction) -> int:
    return amount.numerator * (_NANO // amount.denominator)


@lru_cache(maxsize=4096)
def _parse_text(text: str) -> Fraction:
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        raise MalformedQuantity(f"{text!r:.40} is no quantity, such as 2, 500m, 1.5Gi or 1e3")
    sign, whole, decimals, suffix, exponent = shape.groups(default="")
    digits = Fraction(int(whole + decimals), 10 ** len(decimals))
    if suffix in _BINARY:
        amount = min(_whole_nanos(digits * 2 ** _BINARY[suffix]), Fraction(MAX_INT64))
    else:
        power = _exponent(text, exponent) if exponent else _DECIMAL[suffix]
        amount = _whole_nanos(digits * Fraction(10) ** power)
    return -amount if sign == "-" else amount


def _exponent(text: str, exponent: str) -> int:
    power = int(exponent)
    if abs(power) > MAX_EXPONENT:
        raise MalformedQuantity(f"{text!r:.40} is no quantity: the exponent is out of range")
    return max(-_CUT_EXPONENT, min(_CUT_EXPONENT, power))


def _whole_nanos(amount: Fraction) -> Fraction:
    """Rounded away from zero: who asks for something gets something."""
    return Fraction(-(-amount.numerator * _NANO // amount.denominator), _NANO)
