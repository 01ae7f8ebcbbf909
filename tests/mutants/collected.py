"""Mutants run tests that are collected already: collecting them anew takes longer than most mutants live.

mutmut forks a process for each mutant and starts pytest in it. Here pytest's session begins before, so that
the fork has only to run the mutant's tests until one fails: first those that have noticed other mutants of
the same function, then those of the module's own file, then the others, quickest first.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from pathlib import Path

import pytest
from _pytest.config import _prepareconfig
from _pytest.main import Session
from _pytest.runner import runtestprotocol
from mutmut.configuration import config
from mutmut.runners.harness import PytestRunner
from mutmut.utils.file_utils import change_cwd
from mutmut.workers import isolation
from mutmut.workers.isolation import ForkRunner

PASSED, FAILED, ENDLESS = 0, 1, 36
"""As mutmut reads exit statuses."""
MOST_S = float(os.environ.get("MUTANT_MOST_S", "15"))
"""Processor time that one table may take with a mutant; without any the longest takes one second."""
MOST_WALL_S = 300
"""For one that waits for what never comes."""


def collected() -> dict[str, pytest.Item]:
    """The tests of mutmut's settings, by their ids, ready to run."""
    args = ["--rootdir=.", "--tb=no", "-s", "-p", "no:randomly", *config().pytest_add_cli_args]
    begun = _prepareconfig([*args, *config().pytest_add_cli_args_test_selection], ())
    begun._do_configure()
    session = Session.from_config(begun)
    begun.hook.pytest_sessionstart(session=session)
    begun.hook.pytest_collection(session=session)
    return {item.nodeid: item for item in session.items}


def install() -> None:
    """Let mutmut's forks run collected tests, and end by their own alarms.

    mutmut would signal a process by its number when its time is up, also one that has long ended and whose
    number is somebody else's.
    """
    isolation.register_timeout = lambda **_: None  # type: ignore[assignment]
    items: dict[str, pytest.Item] = {}
    begin = ForkRunner.startup

    def startup(runner: ForkRunner) -> None:
        with change_cwd("mutants"):
            items.update(collected())
        begin(runner)

    def run_tests(runner: PytestRunner, *, mutant_name: str | None, tests: Iterable[str]) -> int:
        if mutant_name is None:  # the tests without a mutant, before the first
            return from_nothing(runner, mutant_name=None, tests=tests)
        for alarm in (signal.SIGVTALRM, signal.SIGALRM):
            signal.signal(alarm, lambda *_: os._exit(ENDLESS))
        with change_cwd("mutants"):
            for name in likeliest(mutant_name, tests):
                if not _passes(items[name]):
                    note_noticed(mutant_name, name)
                    return FAILED
        return PASSED

    from_nothing = PytestRunner.run_tests
    ForkRunner.startup, PytestRunner.run_tests = startup, run_tests  # type: ignore[method-assign]


def likeliest(mutant_name: str, tests: Iterable[str]) -> list[str]:
    """The same tests, those first that are likely to notice the mutant."""
    noticed = _noticed(mutant_name)
    before = dict.fromkeys(reversed(noticed.read_text("utf-8").splitlines())) if noticed.exists() else {}
    rank = {name: place for place, name in enumerate(before)}
    own = f"/test_{mutant_name.split('.')[-2]}.py::"
    return sorted(tests, key=lambda name: (rank.get(name, len(rank)), own not in name))


def note_noticed(mutant_name: str, test: str) -> None:
    """The test has noticed a mutant of that function; forks of several write side by side."""
    noticed = _noticed(mutant_name)
    noticed.parent.mkdir(exist_ok=True)
    with noticed.open("a", encoding="utf-8") as file:
        file.write(f"{test}\n")


def _noticed(mutant_name: str) -> Path:
    return Path("noticed", mutant_name.rpartition("__mutmut_")[0])


def _passes(item: pytest.Item) -> bool:
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_S)
    signal.setitimer(signal.ITIMER_REAL, MOST_WALL_S)
    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=None))
