"""`python -m tests.mutants [MODULE...] [--json FILE]`: how many mutants of binder/core no test notices.

Prints a table and the survivors that docs/mutants.md does not justify; exits with 1 if there are any, or if
the score is below 90 % in all or 85 % in a module.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.mutants.copying import Target
from tests.mutants.running import Mutant, MutationFailed, mutate
from tests.mutants.scoring import Score, change_of, justified_in, scores, stale, table

ROOT = Path(__file__).resolve().parents[2]
CORE = Target(
    ROOT,
    "binder/core",
    tests=("tests/binder",),
    needs=(
        "admission", "deploy", "docs", "eventlog", "gpubinder", "ingest", "kube", "model", "projections",
        "simulator",
    ),
)  # fmt: skip
LEAST_PERCENT = 90
LEAST_PERCENT_OF_A_MODULE = 85


def main(args: Sequence[str] | None = None, target: Target = CORE) -> int:
    """Run, print, write; the exit status."""
    parser = argparse.ArgumentParser(prog="tests.mutants", description=__doc__)
    parser.add_argument("modules", nargs="*", help="of binder/core, without .py; all if none is named")
    parser.add_argument("--json", type=Path, help="write table and survivors there too")
    parser.add_argument("--copy", type=Path, default=target.root / "build" / "mutants", help="where to work")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    said = parser.parse_args(args)
    document = target.root / "docs" / "mutants.md"
    justified = justified_in(document.read_text("utf-8")) if document.exists() else set()
    try:
        mutants = mutate(target, said.modules, said.copy, said.jobs)
    except MutationFailed as failed:
        print(failed, file=sys.stderr)
        return 1
    rows = scores(mutants, justified)
    unjustified = [one for one in mutants if not one.is_killed and change_of(one) not in justified]
    if said.json:
        found = {"modules": [asdict(row) | {"percent": row.percent} for row in rows]}
        found["survivors"] = [asdict(one) for one in mutants if not one.is_killed]
        said.json.write_text(json.dumps(found, indent=1), "utf-8")
    print(table(rows))
    for one in unjustified:
        print("- `{}`: `{}` => `{}`".format(*change_of(one)))
    for where, before, after in stale(mutants, justified):
        print(f"justified, but killed or gone: {where}: {before} => {after}")
    return _status(rows, unjustified)


def _status(rows: Sequence[Score], unjustified: Sequence[Mutant]) -> int:
    *each, of_all = rows
    is_high = of_all.percent >= LEAST_PERCENT and all(
        row.percent >= LEAST_PERCENT_OF_A_MODULE for row in each
    )
    return 0 if is_high and not unjustified else 1


if __name__ == "__main__":
    sys.exit(main())
