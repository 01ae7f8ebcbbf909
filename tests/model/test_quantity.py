"""Quantities exactly as the API server takes them (case 045)."""

from __future__ import annotations

import time
from decimal import ROUND_CEILING, ROUND_UP, Decimal, localcontext
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.quantity import MAX_INT64, MalformedQuantity, parse_count, parse_quantity, scheduler_units
from tests.model.cases_on_disk import load

TABLE: list[dict[str, Any]] = load("045", "table.yaml")
COUNTS: list[dict[str, Any]] = load("045", "counts.yaml")
SUFFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18} | {
    f"{letter}i": 2 ** (10 * power) for power, letter in enumerate("KMGTPE", start=1)
}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: repr(row["input"]))
def test_quantity_table(row: dict[str, Any]) -> None:
    if row["value"] is None:
        with pytest.raises(MalformedQuantity):
            parse_quantity(row["input"])
    else:
        assert parse_quantity(row["input"]) == Fraction(row["value"])


@pytest.mark.parametrize("row", COUNTS, ids=lambda row: repr(row["input"]))
def test_count_table(row: dict[str, Any]) -> None:
    if row["count"] is None:
        with pytest.raises(MalformedQuantity):
            parse_count(row["input"])
    else:
        assert parse_count(row["input"]) == row["count"]


@pytest.mark.parametrize(
    "hostile", ["1e999999", "1e-999999", "9" * 1_000_000, "1." + "0" * 1_000_000, 10**400]
)
def test_hostile_quantity_is_refused_at_once(hostile: object) -> None:
    began = time.perf_counter()
    with pytest.raises(MalformedQuantity) as refused:
        parse_count(hostile)
    assert time.perf_counter() - began < 1
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-10", "1e-9"),
        ("1e-999999", "1e-9"),
        ("-1e-10", "-1e-9"),
        ("0.1234567891", "0.123456790"),
        ("0e-10", "0"),
        ("8Ei", str(MAX_INT64)),
        ("-9Ei", str(-MAX_INT64)),
        ("10E", "10e18"),
        ("1e100", "1e100"),
        ("0.3Ki", "307.2"),
        ("00.50", "0.5"),
        ("+.5e+1", "5"),
    ],
)
def test_rounding_and_caps_are_those_of_the_server(text: str, value: str) -> None:
    """Each row as apimachinery v0.37.2 parses it: up to a nano-unit, binary suffixes up to 64 bits."""
    assert parse_quantity(text) == Fraction(value)


@pytest.mark.parametrize("text", ["+", ".", "-.m", "k", "e3", "1e4294967296", "1\n", "1\x00", "Ⅷ", "१"])
def test_what_has_no_ascii_digits_or_too_large_an_exponent_is_no_quantity(text: str) -> None:
    with pytest.raises(MalformedQuantity):
        parse_quantity(text)


def test_largest_exponent_costs_nothing_and_saturates() -> None:
    began = time.perf_counter()
    assert scheduler_units("memory", "9" * 100 + "e2147483647") == MAX_INT64
    assert scheduler_units("cpu", "1e-2147483647") == 1
    assert time.perf_counter() - began < 1


@pytest.mark.parametrize("value", [1.5, float("nan"), True, None, [], {}])
def test_what_is_neither_string_nor_whole_number_is_no_quantity(value: object) -> None:
    with pytest.raises(MalformedQuantity):
        parse_quantity(value)


@given(st.text(max_size=200))
def test_any_text_is_a_quantity_or_malformed(text: str) -> None:
    try:
        parse_quantity(text)
    except MalformedQuantity:
        return


@given(st.text(alphabet="0123456789.+-eEinumkKMGTP \n", max_size=130))
def test_text_of_the_grammars_letters_is_quick_and_bounded(text: str) -> None:
    """Whatever it is: an amount that costs nothing to work with, or MalformedQuantity."""
    try:
        amount = parse_quantity(text)
    except MalformedQuantity:
        return
    assert max(amount.numerator, amount.denominator).bit_length() < 2000
    for resource in ("cpu", "memory"):
        assert -MAX_INT64 <= scheduler_units(resource, text) <= MAX_INT64


@given(st.integers(-MAX_INT64, MAX_INT64))
def test_whole_number_survives_as_number_and_as_text(number: int) -> None:
    assert parse_quantity(number) == parse_quantity(str(number)) == number
    if number >= 0:
        assert parse_count(number) == parse_count(str(number)) == number
    else:
        with pytest.raises(MalformedQuantity):
            parse_count(number)


@given(
    st.sampled_from(["", "+", "-"]),
    st.text(alphabet="0123456789", min_size=1, max_size=20),
    st.text(alphabet="0123456789", max_size=12),
    st.sampled_from(["", *(f"{letter}{power}" for letter in "eE" for power in range(-15, 16))]),
)
def test_decimal_with_exponent_is_what_decimal_makes_of_it(
    sign: str, whole: str, decimals: str, exponent: str
) -> None:
    """An independent formulation: Decimal, rounded away from zero at the ninth place."""
    text = f"{sign}{whole}.{decimals}{exponent}"
    with localcontext(prec=100):
        expected = Decimal(text).quantize(Decimal("1e-9"), rounding=ROUND_UP)
    assert parse_quantity(text) == Fraction(expected)
    units = int(expected.to_integral_value(rounding=ROUND_CEILING))
    assert scheduler_units("memory", text) == max(-MAX_INT64, min(MAX_INT64, units))


@given(st.text(alphabet="0123456789", min_size=1, max_size=60), st.sampled_from(sorted(SUFFIXES)))
def test_units_saturate_and_never_wrap(digits: str, suffix: str) -> None:
    for resource, factor in (("memory", 1), ("cpu", 1000)):
        units = scheduler_units(resource, digits + suffix)
        exact = min(int(digits) * SUFFIXES[suffix], MAX_INT64 if suffix.endswith("i") else 10**99) * factor
        assert units == min(exact, MAX_INT64)


@given(st.integers(0, 10**9), st.integers(0, 999), st.sampled_from(sorted(SUFFIXES)))
def test_decimal_with_suffix_is_worth_what_it_says(whole: int, thousandths: int, suffix: str) -> None:
    text = f"{whole}.{thousandths:03d}"
    amount = Fraction(Decimal(text)) * SUFFIXES[suffix]
    assert parse_quantity(text + suffix) == (min(amount, MAX_INT64) if suffix.endswith("i") else amount)


@pytest.mark.parametrize(
    ("resource", "text", "units"),
    [
        ("cpu", "200m", 200),
        ("cpu", "0.5", 500),
        ("cpu", "1u", 1),
        ("memory", "1.5Gi", 1610612736),
        ("memory", "100m", 1),
        ("nvidia.com/gpu", "2", 2),
        ("memory", "10E", MAX_INT64),
        ("memory", "1e40", MAX_INT64),
    ],
)
def test_scheduler_counts_milli_cores_and_whole_units_rounded_up_and_saturating(
    resource: str, text: str, units: int
) -> None:
    assert scheduler_units(resource, text) == units
