"""The machine-readable reasons of the rules, and what they mean."""

from __future__ import annotations

import orjson

from model.reasons import Reason

STAGES = [
    Reason.CLASS_CONSTRAINTS,
    Reason.POD_CONSTRAINTS,
    Reason.VOLUME_UNREACHABLE,
    Reason.NODES_REFUSED,
    Reason.NO_ROOM,
    Reason.OTHER_RESOURCES,
]


def test_reasons_stand_in_the_order_of_the_stages_of_r8() -> None:
    assert [reason for reason in Reason if reason in STAGES] == STAGES


def test_each_reason_has_one_line_of_its_own() -> None:
    meanings = [reason.meaning for reason in Reason]
    assert len(set(meanings)) == len(meanings) == 21
    assert all(0 < len(meaning) <= 80 and "\n" not in meaning for meaning in meanings)


def test_reason_is_its_word_wherever_it_goes() -> None:
    assert Reason("NoRoom") is Reason.NO_ROOM
    assert (f"{Reason.NO_ROOM}", orjson.dumps(Reason.NO_ROOM)) == ("NoRoom", b'"NoRoom"')
