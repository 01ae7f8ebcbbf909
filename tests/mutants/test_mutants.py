"""The mutation runner finds what no test notices, in a tiny package with planted gaps."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.mutants.copying import with_plain_methods
from tests.mutants.running import Mutant
from tests.mutants.scoring import change_of, justified_in, scores, stale, table

ROOT = Path(__file__).resolve().parents[2]
BOX = '''"""A box."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Box:
    low: int
    high: int

    @property
    def size(self) -> int:
        """How much goes in."""
        return self.high - self.low


def fits(box: Box, value: int) -> bool:
    """Whether the value is in the box."""
    return box.low <= value < box.high


def first_gap(seen: list[int]) -> int:
    """The first number that is not there; some of its mutants never end."""
    number = 0
    while number in seen:
        number += 1
    return number


def note(seen: list[int]) -> None:
    """One more."""
    seen.append(0)
'''
CHECKS = """from tiny.box import Box, first_gap, fits, note


def test_size():
    assert Box(1, 3).size == 2


def test_value_fits():
    assert fits(Box(0, 2), 0) and not fits(Box(0, 2), 5)


def test_gap():
    assert [first_gap(seen) for seen in ([1], [0], [0, 1])] == [0, 1, 2]


def test_note():
    note([])
"""
PLANTED = {
    ("box.fits", "return box.low <= value < box.high", "return box.low <= value <= box.high"),
    ("box.note", "seen.append(0)", "pass"),
    ("box.note", "seen.append(0)", "seen.append(None)"),
    ("box.note", "seen.append(0)", "seen.append(1)"),
}
RUN = """
import sys
from pathlib import Path
from tests.mutants.__main__ import main
from tests.mutants.copying import Target
sys.exit(main(["--json", "found.json", "--jobs", "1"], Target(Path(), "tiny", ("checks",))))
"""


def test_planted_survivors_are_found_and_a_justified_one_is_no_news(tmp_path: Path) -> None:
    for name, text in {
        "tiny/__init__.py": "",
        "tiny/box.py": BOX,
        "checks/test_box.py": CHECKS,
        "pyproject.toml": "[tool.pytest.ini_options]\n",
        "docs/mutants.md": "- `box.note`: `seen.append(0)` => `pass`\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    command, env = [sys.executable, "-c", RUN], {"PYTHONPATH": str(ROOT), "MUTANT_MOST_S": "0.5"}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    found = json.loads((tmp_path / "found.json").read_text("utf-8"))
    assert {change_of(Mutant(**one)) for one in found["survivors"]} == PLANTED
    assert done.stdout.count("=>") == len(PLANTED) - 1
    (box, of_all) = found["modules"]
    assert box | {"module": "all"} == of_all
    assert (box["mutants"] - box["killed"], box["justified"]) == (len(PLANTED), 1)
    assert box["killed"] >= 2, "the size and the lower bound are tested"


def test_score_counts_a_justified_survivor_as_a_survivor() -> None:
    alive = Mutant("a", "m", "f", is_killed=False, before="x", after="y")
    (row, _) = scores([alive, Mutant("b", "m", "f", is_killed=True)], {("m.f", "x", "y")})
    assert (row.survived, row.justified, row.percent) == (1, 1, 50.0)
    assert "| m | 2 | 1 | 1 | 1 | 50.0 % |" in table([row])


def test_justification_that_no_survivor_needs_is_named() -> None:
    known = justified_in("Why.\n\n- `m.f`: `x` => `y`\n- `n.f`: `x` => `y`\n")
    assert known == {("m.f", "x", "y"), ("n.f", "x", "y")}
    assert stale([Mutant("a", "m", "f", is_killed=True)], known) == [("m.f", "x", "y")]


def test_property_becomes_a_method_that_can_be_mutated() -> None:
    space: dict[str, object] = {}
    exec(with_plain_methods(BOX), space)
    box = space["Box"](1, 3)  # type: ignore[operator]
    assert (box.size, box.size_()) == (2, 2)
