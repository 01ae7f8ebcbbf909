"""`python -m tests.sim --seeds 200`: lives of whole clusters, seed by seed, over the cores."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import orjson

from tests.sim import crashing
from tests.sim.drawing import draw_script
from tests.sim.figures import Totals, table
from tests.sim.lives import Report, run_life
from tests.sim.running import live, reports
from tests.sim.script import Script, of_json
from tests.sim.shrinking import shrink, told

MAX_SHRUNK = 2
"""Failing lives of one run that are shrunk: the first ones tell enough."""


def main() -> int:
    given = _arguments()
    logging.disable()  # what actors say of requests that fail, which is what they are to do here
    began_s, totals, failed = time.monotonic(), Totals(), 0
    for play, of, command, script_of in _work(given):
        for what, report in reports(play, of, given.jobs):
            totals.add(report)
            if report.failures:
                failed += 1
                _tell(report, f"{command}{what}", script_of(what), failed <= MAX_SHRUNK and not given.quick)
    if given.json:
        print(orjson.dumps(totals.as_json(), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS).decode())
    else:
        print(table(totals))
    print(f"{totals.counts['lives']} lives, {failed} failed, {time.monotonic() - began_s:.0f} s")
    return 1 if failed else 0


Work = tuple[Callable[[Any], Report], Iterable[Any], str, Callable[[Any], Script]]


def _work(given: argparse.Namespace) -> Iterable[Work]:
    """What to play, each with the command that repeats it."""
    repeat = "python -m tests.sim"
    if given.script:
        script = of_json(Path(given.script).read_bytes())
        yield run_life, [script], f"{repeat} --script {given.script}  # ", lambda one: one
    elif given.crash:
        yield _play_crash, [given.crash], f"{repeat} --crash ", _story_of
    elif given.seed is not None:
        yield live, [given.seed], f"{repeat} --seed ", draw_script
    else:
        seeds = range(given.first, given.first + given.seeds)
        yield live, seeds, f"{repeat} --seed ", draw_script
        if given.crashes:
            yield _play_crash, [str(one) for one in crashing.crashes()], f"{repeat} --crash ", _story_of


def _play_crash(text: str) -> Report:
    return crashing.play(crashing.crash_of(text))


def _story_of(text: str) -> Script:
    return crashing.story_of(crashing.crash_of(text))


def _tell(report: Report, command: str, script: Script, is_shrunk: bool) -> None:
    print(f"{report.failures[0]}\n  repeat: {command}", flush=True)
    if is_shrunk:
        small = shrink(script, lambda one: run_life(one).broken == report.broken)
        print(f"  shrunk to {len(small.acts)} acts and {len(small.faults)} faults: {told(small)}", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many lives")
    parser.add_argument("--from", dest="first", type=int, default=1, help="the first seed")
    parser.add_argument("--seed", type=int, help="this one alone")
    parser.add_argument("--crashes", action="store_true", help="also a crash at every write and commit")
    parser.add_argument("--crash", help="this one alone, as STORY:CALLS:NTH:before|after")
    parser.add_argument("--script", help="a life from a file")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at work")
    parser.add_argument("--quick", action="store_true", help="failing lives are not shrunk")
    parser.add_argument("--json", action="store_true", help="statistics as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
