"""`gpubinder watch --from FILE`: watch events from a file or a pipe, with progress on a terminal."""

from __future__ import annotations

import logging
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from eventlog.errors import LogError, LogReplaced
from gpubinder.chunks import STDIN, chunks_of, size_of
from gpubinder.errors import CommandError
from gpubinder.logs import say
from gpubinder.settings import LogChoice
from gpubinder.stores import check_log_is_for_files, now_ms, open_log
from ingest.entries import Origin
from ingest.from_file import Tally, Unusable, feed

_WANTED = "give JSON events as `kubectl get -w -o json --output-watch-events` prints them, or a recording"


async def feed_file(path: Path, choice: LogChoice, cluster: str) -> None:
    """Append what the file tells, until its end or until we are cancelled.

    Raises CommandError when it, or a part of it, cannot be read, or the log fails.
    """
    name, tally = "stdin" if path == STDIN else path.name, Tally()
    end = "stopped"
    try:
        await _feed(path, name, tally, choice, cluster)
        end = "complete"
    except OSError as error:
        end = "unreadable"
        raise CommandError(f"{path} cannot be read: {error.strerror}; give a file of watch events") from None
    except Unusable as error:
        end = "refused"
        raise CommandError(f"{name} cannot be read: {error}") from None
    except LogReplaced as error:
        end = "log replaced"
        raise CommandError(f"{error}; feed {name} again") from None
    except (LogError, CommandError) as error:
        end = "log failed"
        raise CommandError(" ".join(str(error).split())) from None
    finally:
        if end == "complete" or tally.read or tally.unreadable:
            _say(name, tally, end)
    if tally.unreadable and not tally.read:
        raise CommandError(f"nothing in {name} is a watch event; {_WANTED}")
    if tally.unreadable:
        raise CommandError(
            f"{tally.unreadable} of {tally.read + tally.unreadable} values in {name} could not be read and "
            "were passed over; correct them and feed it again: what is known is not appended twice"
        )


async def _feed(path: Path, name: str, tally: Tally, choice: LogChoice, cluster: str) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    async with open_log(choice, cluster, f"file:{name}") as store:
        await check_log_is_for_files(store.log, cluster)
        with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
            task = bar.add_task(name, total=size_of(path))
            origin = Origin(f"file:{name}", now_ms())
            await feed(chunks_of(path), store.log, origin, lambda read: bar.advance(task, read), tally)


def _say(name: str, tally: Tally, end: str) -> None:
    for line in tally.named:
        say(logging.ERROR, "unreadable", file=name, cause=line, next="passed over")
    say(
        logging.INFO,
        "fed",
        file=name,
        end=end,
        appended=tally.appended,
        known=tally.known,
        passed_over=tally.passed_over,
        unreadable=tally.unreadable,
    )
