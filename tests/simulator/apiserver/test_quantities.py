"""Canonical quantities; the table was answered by a real API server."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.quantity import parse_quantity
from simulator.apiserver.quantities import canonical


@pytest.mark.parametrize(
    ("sent", "answered"),
    [
        (2, "2"),
        ("0", "0"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1.5", "1500m"),
        ("0.5Gi", "512Mi"),
        ("64Gi", "64Gi"),
        ("1536Ki", "1536Ki"),
        ("1024Ki", "1Mi"),
        ("1.5Ki", "1536"),
        ("1e3", "1e3"),
        ("1000", "1k"),
        ("100n", "1m"),
        ("1.0001", "1001m"),
        ("1k", "1k"),
        ("1048576", "1048576"),
        ("12E", "12E"),
    ],
)
def test_quantity_comes_back_canonical(sent: object, answered: str) -> None:
    assert canonical(sent) == answered


AMOUNTS = st.builds(
    "{}{}{}".format,
    st.integers(0, 10**6),
    st.sampled_from(["", ".5", ".001", ".125"]),
    st.sampled_from(["", "m", "k", "M", "G", "Ki", "Mi", "Gi", "Ti", "e3"]),
)


@given(AMOUNTS)
def test_canonical_form_is_its_own_and_no_less_than_what_was_sent(sent: str) -> None:
    answered = canonical(sent)
    assert canonical(answered) == answered
    assert 0 <= (parse_quantity(answered) - parse_quantity(sent)) * 1000 < 1
