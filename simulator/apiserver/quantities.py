"""Quantities of resources in the form in which the API server gives them back.

1000m becomes 1, 0.5Gi becomes 512Mi, and what is finer than a thousandth is rounded up to one. Rules read in
apimachinery `resource/quantity.go` and core/v1 defaults (SetDefaults_ResourceList), and compared with a real
server on some hundred texts; it keeps the leading zeros and trailing points of some, which are dropped here.
"""

from __future__ import annotations

import re
from fractions import Fraction

from model.quantity import parse_quantity

_DECIMAL = {-3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_EXPONENT = re.compile(r"[0-9.][eE][+-]?[0-9]+$")
_LARGEST = 18


def canonical(value: object) -> str:
    """The text that the server answers with. Raises MalformedQuantity."""
    text, exact = str(value), parse_quantity(value)
    amount = Fraction(-(-exact.numerator * 1000 // exact.denominator), 1000)
    if text.endswith("i") and abs(amount) >= 1024 and amount.denominator == 1:
        return _binary(int(amount))
    digits, power = _decimal(amount)
    if _EXPONENT.search(text):
        return f"{digits}e{power}" if power else str(digits)
    return f"{digits}{_DECIMAL[power]}"


def _binary(amount: int) -> str:
    step = 0
    while amount % 1024 == 0 and step < len(_BINARY) - 1:
        amount, step = amount // 1024, step + 1
    return f"{amount}{_BINARY[step]}"


def _decimal(amount: Fraction) -> tuple[int, int]:
    """Whole digits and the largest power of a thousand that leaves them whole."""
    power = 0
    if amount.denominator != 1:
        amount, power = amount * 1000, -3
    while amount and amount % 1000 == 0 and power < _LARGEST:
        amount, power = amount / 1000, power + 3
    return int(amount), power
