"""Reads the ledger from the log, and tells when it must not be relied on.

The ledger stands at a place in the log. It is right for as long as nothing that tells of a change has been
written after that place; heartbeats tell of none, and show that the watchers still look. So a quiet cluster's
ledger is right however old it is, and a dead binder's is only until something happens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from admission.kept import Kept, NotInTime
from admission.ledger import POSITION, Ledger, LedgerUnreadable, read_ledger
from eventlog.entries import EntryType, Stored, StoredEntry, id_order
from eventlog.errors import LogError
from eventlog.port import START
from projections.folds.ledger import NAME

KEEP_S = 1.0
PATIENCE_S = 0.4
"""For the log's answer: half of what a review may take."""
PAGE = 16
MAX_PAGES = 64
"""Heartbeats that are passed over in one look; the next one goes on from there."""


class LedgerLog(Protocol):
    """The log as admission reads it."""

    async def recall(self, projection: str) -> dict[str, bytes]:
        """See eventlog.port.Journal."""
        ...

    async def read_range(self, after_id: str, limit: int) -> list[Stored]:
        """See eventlog.port.EventReader."""
        ...


class LedgerAway(Exception):
    """There is no ledger that can be relied on; the text says why."""


class LedgerSource:
    """The newest ledger, at most a second old."""

    def __init__(self, log: LedgerLog, now_ms: Callable[[], int], stale_after_s: int) -> None:
        self._log = log
        self._now_ms = now_ms
        self._stale_after_s = stale_after_s
        self._quiet_until = START
        self._kept = Kept(self._read, keep_s=KEEP_S, patience_s=PATIENCE_S)

    async def ledger(self) -> Ledger:
        """Raises LedgerAway."""
        try:
            return await self._kept.get()
        except NotInTime:
            raise LedgerAway(f"the log gives no answer within {PATIENCE_S} s") from None
        except LogError as error:
            raise LedgerAway(" ".join(str(error).split())) from None
        except LedgerUnreadable as error:
            raise LedgerAway(f"the ledger cannot be read: {error}") from None

    async def close(self) -> None:
        """End a read that is under way."""
        await self._kept.close()

    async def _read(self) -> Ledger:
        table = await self._log.recall(NAME)
        position = table.get(POSITION, b"").decode(errors="replace")
        if not position:
            raise LedgerAway("no binder has written the ledger yet")
        await self._check_nothing_since(position)
        return read_ledger(table)

    async def _check_nothing_since(self, position: str) -> None:
        """Raises LedgerAway when something has happened that the ledger does not count, for too long."""
        after = max(position, self._quiet_until, key=_order)
        for _ in range(MAX_PAGES):
            page = await self._log.read_range(after, PAGE)
            for stored in page:
                if _tells(stored):
                    self._check_age(stored.id, "what has happened is not counted for")
                    return
                after = self._quiet_until = stored.id
            if len(page) < PAGE:
                break
        self._check_age(after, "no watcher has shown itself for")

    def _check_age(self, entry_id: str, what: str) -> None:
        age_s = (self._now_ms() - _order(entry_id)[0]) / 1000
        if age_s > self._stale_after_s:
            raise LedgerAway(f"{what} {age_s:.0f} s")


def _tells(stored: Stored) -> bool:
    """Whether an entry makes the binder count again; one that cannot be read does not."""
    return isinstance(stored, StoredEntry) and stored.entry.type is not EntryType.HEARTBEAT


def _order(entry_id: str) -> tuple[int, int]:
    try:
        return id_order(entry_id)
    except ValueError:
        raise LedgerUnreadable(f"{POSITION} is {entry_id!r:.40}, no place in the log") from None
