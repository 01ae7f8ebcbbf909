"""`gpubinder watch --from FILE`: watch events from a file into the log, with progress on a terminal."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from eventlog.errors import LogError
from gpubinder.errors import CommandError
from gpubinder.logs import say
from gpubinder.settings import LogChoice
from gpubinder.stores import now_ms, open_log
from ingest.entries import Origin
from ingest.from_file import feed

SHOWN = 5
"""Unreadable lines that are named; all are counted."""


async def feed_file(path: Path, choice: LogChoice, cluster: str) -> None:
    """Append what the file tells. Raises CommandError when it cannot be read or the log fails."""
    name = f"file:{path.name}"
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    try:
        with (
            path.open("rb") as lines,
            Progress(*columns, console=console, disable=not console.is_terminal) as bar,
        ):
            task = bar.add_task(path.name, total=os.fstat(lines.fileno()).st_size)
            async with open_log(choice, cluster, name) as store:
                origin = Origin(name, now_ms())
                tally = await feed(lines, store.log, origin, lambda size: bar.advance(task, size))
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}; give a file of watch events") from None
    except LogError as error:
        raise CommandError(str(error)) from None
    for line in tally.unreadable[:SHOWN]:
        say(logging.ERROR, "line_unreadable", file=path.name, cause=line, next="the line is passed over")
    say(
        logging.INFO,
        "fed",
        file=path.name,
        appended=tally.appended,
        known=tally.known,
        passed_over=tally.passed_over,
        unreadable=len(tally.unreadable),
    )
