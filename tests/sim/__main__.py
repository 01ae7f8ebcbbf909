"""`python -m tests.sim --seeds 200`: lives of whole clusters, seed by seed, over the cores."""

from __future__ import annotations

import argparse
import os
import sys
import time

import orjson

from tests.sim.running import reports


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many lives")
    parser.add_argument("--from", dest="first", type=int, default=1, help="the first seed")
    parser.add_argument("--seed", type=int, help="this one alone")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at work")
    parser.add_argument("--json", action="store_true", help="statistics as JSON")
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.seeds)
    if given.seed is not None:
        seeds = range(given.seed, given.seed + 1)
    began_s, failed, done = time.monotonic(), [], []
    for report in reports(seeds, 1 if len(seeds) == 1 else given.jobs):
        done.append(report)
        if report.failures:
            failed.append(report)
            print(
                f"seed {report.seed}: {report.failures[0]}\n  python -m tests.sim --seed {report.seed}",
                flush=True,
            )
    total: dict[str, dict[str, int]] = {}
    for report in done:
        for part in ("counts", "acts", "faults", "decided", "reasons"):
            for key, number in getattr(report, part).items():
                rows = total.setdefault(part, {})
                rows[key] = rows.get(key, 0) + number
    print(orjson.dumps(total, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS).decode())
    print(f"{len(done)} lives, {len(failed)} failed, {time.monotonic() - began_s:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
