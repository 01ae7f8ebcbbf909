"""Instants survive the way through Kubernetes' notation, exactly; what is none is None."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.instants import parse_rfc3339, rfc3339

LAST_MS = 253_402_300_799_000
"""9999-12-31T23:59:59Z: RFC 3339 knows no later year."""


@given(st.integers(0, LAST_MS // 1000))
def test_whole_seconds_survive(second: int) -> None:
    assert parse_rfc3339(rfc3339(second * 1000)) == second * 1000


@given(st.integers(0, LAST_MS))
def test_writing_cuts_to_seconds(instant_ms: int) -> None:
    assert parse_rfc3339(rfc3339(instant_ms)) == instant_ms // 1000 * 1000


@given(st.integers(0, 2_000_000_000), st.integers(0, 999_999))
def test_micro_times_are_exact_to_the_millisecond(second: int, micros: int) -> None:
    """As Leases and Events carry them; no float may round one up or down."""
    text = rfc3339(second * 1000).removesuffix("Z") + f".{micros:06d}Z"
    assert parse_rfc3339(text) == second * 1000 + micros // 1000


@pytest.mark.parametrize(
    ("text", "instant_ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T01:00:00+01:00", 0),
        ("2026-12-01T05:38:25Z", 1_796_103_505_000),
    ],
)
def test_known_instants(text: str, instant_ms: int) -> None:
    assert parse_rfc3339(text) == instant_ms


@pytest.mark.parametrize(
    "text", ["", "now", "2026-12-01", "2026-12-01T05:38:25", "2026-13-01T00:00:00Z", "0"]
)
def test_text_without_a_zone_or_without_sense_is_none(text: str) -> None:
    assert parse_rfc3339(text) is None


@given(st.text(max_size=40) | st.text(alphabet="0123456789-:TZ.+", max_size=30))
def test_any_text_is_an_instant_or_none(text: str) -> None:
    assert parse_rfc3339(text) is None or isinstance(parse_rfc3339(text), int)
