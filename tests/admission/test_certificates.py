"""Our own certificates: replaced in time, and never one that is not trusted yet."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from admission.certificates import (
    MAX_AUTHORITIES,
    YEAR_S,
    Material,
    Pair,
    Unusable,
    Wish,
    first_material,
    next_material,
    split_bundle,
)

NAMES = ("gpubinder-admission.gpubinder-system.svc", "127.0.0.1")
BEGIN = datetime(2026, 12, 1, tzinfo=UTC)
FIRST = first_material(Wish(NAMES, BEGIN))


def later(days: float, names: tuple[str, ...] = NAMES) -> Wish:
    return Wish(names, BEGIN + timedelta(days=days))


def is_signed_by(serving: Pair, authority: Pair) -> bool:
    return serving.parsed().issuer == authority.parsed().subject


def check_fits(material: Material, now: datetime) -> None:
    """What must hold at any moment: the certificate is valid, and one of the authorities has signed it."""
    serving = material.serving.parsed()
    assert serving.not_valid_before_utc <= now < serving.not_valid_after_utc
    signers = [pair.parsed() for pair in material.authorities if is_signed_by(material.serving, pair)]
    assert any(serving.not_valid_after_utc <= signer.not_valid_after_utc for signer in signers)
    for signer in signers:
        serving.verify_directly_issued_by(signer)


def test_first_certificate_is_valid_for_a_year_and_a_little_before_now() -> None:
    check_fits(FIRST, BEGIN)
    serving = FIRST.serving.parsed()
    assert serving.not_valid_before_utc < BEGIN
    assert serving.not_valid_after_utc == BEGIN + timedelta(seconds=YEAR_S)


def test_nothing_is_changed_before_two_thirds_of_a_life() -> None:
    assert next_material(FIRST, later(240), is_newest_trusted=True) is FIRST
    assert next_material(FIRST, later(240), is_newest_trusted=False) is FIRST


def test_new_authority_is_added_first_and_signs_once_it_is_trusted() -> None:
    added = next_material(FIRST, later(244), is_newest_trusted=True)
    assert len(added.authorities) == 2
    assert added.authorities[1] == FIRST.authorities[0]
    assert is_signed_by(added.serving, FIRST.authorities[0])
    waiting = next_material(added, later(245), is_newest_trusted=False)
    assert waiting is added
    moved = next_material(added, later(245), is_newest_trusted=True)
    assert is_signed_by(moved.serving, added.authorities[0])
    assert moved.authorities == added.authorities
    assert next_material(moved, later(246), is_newest_trusted=True) is moved


def test_replica_that_does_not_know_yet_who_is_trusted_leaves_the_newer_certificate() -> None:
    added = next_material(FIRST, later(244), is_newest_trusted=True)
    moved = next_material(added, later(245), is_newest_trusted=True)
    assert next_material(moved, later(245), is_newest_trusted=False) is moved


def test_authority_that_has_run_out_goes() -> None:
    added = next_material(FIRST, later(244), is_newest_trusted=True)
    moved = next_material(added, later(245), is_newest_trusted=True)
    alone = next_material(moved, later(366), is_newest_trusted=True)
    assert alone.authorities == moved.authorities[:1]
    assert alone.serving == moved.serving


def test_another_name_needs_another_certificate_of_the_same_authority() -> None:
    more = next_material(FIRST, later(1, (*NAMES, "other.svc")), is_newest_trusted=True)
    assert more.authorities == FIRST.authorities
    assert more.serving != FIRST.serving
    assert next_material(more, later(1), is_newest_trusted=True) is more


def test_certificate_of_somebody_else_is_replaced() -> None:
    stranger = first_material(Wish(NAMES, BEGIN)).serving
    mended = next_material(replace(FIRST, serving=stranger), later(1), is_newest_trusted=True)
    check_fits(mended, later(1).now)


@pytest.mark.parametrize("trust_days", [0, 3, 400], ids=["at once", "after days", "never"])
def test_for_four_years_there_is_always_a_certificate_that_fits(trust_days: int) -> None:
    """Also when the configurations are not installed: then nobody is asked to trust, and nothing is lost."""
    material, newest_since = FIRST, 0.0
    for day in range(0, 1460, 4):
        before = material
        is_trusted = day - newest_since >= trust_days
        material = next_material(before, later(day), is_newest_trusted=is_trusted)
        if material.authorities[0] != before.authorities[0]:
            newest_since = day
        check_fits(material, later(day).now)
        assert len(material.authorities) <= MAX_AUTHORITIES
        if not is_trusted and len(material.authorities) > 1 and material.serving != before.serving:
            assert not is_signed_by(material.serving, material.authorities[0])


def test_bundle_is_split_as_it_was_joined() -> None:
    added = next_material(FIRST, later(244), is_newest_trusted=True)
    assert split_bundle(added.bundle) == [pair.certificate for pair in added.authorities]


def test_what_is_no_certificate_is_told() -> None:
    broken = replace(FIRST, authorities=(Pair(b"x", b"y"),))
    with pytest.raises(Unusable, match="no certificate"):
        next_material(broken, later(1), is_newest_trusted=True)
    keyless = replace(FIRST, authorities=(replace(FIRST.authorities[0], key=b"y"),))
    with pytest.raises(Unusable, match="no key"):
        next_material(keyless, later(1, ("other",)), is_newest_trusted=True)
