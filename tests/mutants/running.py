"""Runs mutmut over a target, in a process of its own, and reads its verdicts."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.copying import Target, copy, write_settings

SCRIPT = Path(__file__).with_name("in_mutmut.py")


class MutationFailed(Exception):
    """mutmut gave no verdicts, e.g. because a test fails without any mutant."""


@dataclass(frozen=True)
class Mutant:
    """One change of a function, and whether a test noticed."""

    name: str
    module: str
    function: str
    is_killed: bool
    before: str = ""
    after: str = ""
    """Of a survivor: the lines that it changes, and what to."""


def mutate(target: Target, modules: list[str], to: Path, jobs: int) -> list[Mutant]:
    """All mutants of the modules (of the whole package if none is named), with their verdicts."""
    copy(target, to)
    write_settings(target, modules, to)
    with (to / "mutmut.log").open("w") as log:
        command = [sys.executable, SCRIPT, "run", "--max-children", str(jobs)]
        done = subprocess.run(command, cwd=to, stdout=log, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        raise MutationFailed(f"mutmut failed: its output is in {to / 'mutmut.log'}")
    return _results(to)


def _results(to: Path) -> list[Mutant]:
    text = subprocess.run([sys.executable, SCRIPT, "results"], cwd=to, capture_output=True, check=True).stdout
    return [
        Mutant(one["name"], one["module"], one["function"], one["verdict"] == "killed", *_change(one))
        for one in json.loads(text)
    ]


def _change(one: dict[str, str]) -> tuple[str, str]:
    lines = one.get("diff", "").splitlines()[2:]
    before, after = ([line[1:].strip() for line in lines if line.startswith(sign)] for sign in "-+")
    return " ".join(before), " ".join(after)
