"""`make bench`: every figure, as a table and, with --json FILE, as JSON."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click
import orjson
from rich.console import Console
from rich.table import Table

from bench import fold, log, loop, passes, retention, watching
from bench.figures import Figure

PARTS = {
    "log": log.figures,
    "retention": retention.figures,
    "watch": watching.figures,
    "fold": fold.figures,
    "pass": passes.figures,
    "loop": loop.figures,
}


@click.command()
@click.option("--json", "path", type=click.Path(path_type=Path), help="Also write the figures here.")
@click.option("--only", type=click.Choice(sorted(PARTS)), help="One part.")
def main(path: Path | None, only: str | None) -> None:
    """Measure, and show what we do against the least that could be done."""
    found: list[Figure] = []
    for name, part in PARTS.items():
        if only in (None, name):
            found += part()
    _show(found)
    if path is not None:
        path.write_bytes(orjson.dumps([asdict(figure) | {"ratio": figure.ratio} for figure in found]))


def _show(found: list[Figure]) -> None:
    table = Table(header_style="bold")
    table.add_column("What")
    for column in ("Ours", "Theirs", "Ratio", "Wanted"):
        table.add_column(column, justify="right")
    table.add_column("Against")
    for figure in found:
        ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
        wanted = "" if figure.wanted is None else f">= {figure.wanted}"
        theirs = f"{figure.theirs:,.0f}" if figure.theirs else ""
        digits = 0 if figure.ours >= 100 else 2
        table.add_row(
            figure.name, f"{figure.ours:,.{digits}f} {figure.unit}", theirs, ratio, wanted, figure.against
        )
    Console().print(table)


if __name__ == "__main__":
    main()
