"""One kind's list and watch loop: everything that happens to its objects, once, in order, into the log.

List page by page, tell what has gone since, mark the list complete (SYNCED), then watch from the list's
resourceVersion, reopening ended streams where they stopped; an expired version means a fresh list. What
cannot be read as its kind is reported and passed over. Must not know: what the log is read for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Protocol

from eventlog.entries import Entry, EntryType
from eventlog.errors import LogError, LogReplaced
from eventlog.port import EventAppender
from ingest.backoff import Backoff
from ingest.entries import Known, Origin, change_entry, gone_entry, marker_entry
from kube.errors import ApiError, Gone, NotFound, TooManyRequests
from kube.port import Json, Reader, WatchType
from model.kinds import WatchedKind
from model.lean import Malformed

PAGE = 500
"""Objects per page: bounds the memory of a list."""
STREAM_S = 80
"""A stream is to end before its silence counts as a hang (90 s): an idle kind sends not even bookmarks."""
GUARD_S = 5.0
"""How often a watcher looks whether the log is still the one it listed for."""
ABSENT_RETRY_S = 5.0
"""How soon a kind whose CRD is installed while we run is noticed (R32 wants 30 s)."""

_CHANGES = {
    WatchType.ADDED: EntryType.ADDED,
    WatchType.MODIFIED: EntryType.MODIFIED,
    WatchType.DELETED: EntryType.DELETED,
}


class WatchObserver(Protocol):
    """Told what the loop meets: for logs and metrics."""

    def event_seen(self, kind: str, change: str, *, is_appended: bool) -> None:
        """One change was appended, or was known already."""
        ...

    def object_malformed(self, kind: str, raw: Json, why: str) -> None:
        """An object could not be read as its kind, and was passed over."""
        ...

    def watch_restarted(self, kind: str, why: str, wait_s: float) -> None:
        """The loop starts again after `wait_s`."""
        ...


@dataclass(slots=True)
class KindWatcher:
    """Watches one kind until it is cancelled."""

    client: Reader
    log: EventAppender
    kind: WatchedKind
    name: str
    """Of this watcher replica."""
    now_ms: Callable[[], int]
    observer: WatchObserver
    backoff: Backoff = field(default_factory=Backoff)
    _is_absent: bool = False
    _identity: str = ""
    """Of the log that was listed for; appending to another raises LogReplaced, and we list again."""

    async def run(self) -> None:
        """List and watch for ever; every failure is waited out."""
        version = ""
        while True:
            try:
                version = version or await self._list()
                version = await self._follow_while_ours(version)
                self.backoff.reset()
            except Gone:
                version = ""
            except NotFound as error:
                version = ""
                await self._kind_absent(error)
            except LogReplaced as error:
                version = ""
                self._is_absent = False
                await self._wait(str(error))
            except (ApiError, LogError) as error:
                at_least_s = error.retry_after_s if isinstance(error, TooManyRequests) else 0.0
                await self._wait(str(error), at_least_s)

    async def _wait(self, why: str, at_least_s: float = 0.0) -> None:
        wait_s = self.backoff.next_s(at_least_s)
        self.observer.watch_restarted(self.kind.resource.kind, why, wait_s)
        await asyncio.sleep(wait_s)

    async def _kind_absent(self, error: NotFound) -> None:
        """The API server does not serve the kind (yet): say so once, and look again soon (R32)."""
        if not self._is_absent:
            self.observer.watch_restarted(self.kind.resource.kind, str(error), ABSENT_RETRY_S)
            await self.log.append_once([self._marker(EntryType.ABSENT)], await self.log.identity())
            self._is_absent = True
        await asyncio.sleep(ABSENT_RETRY_S)

    async def _list(self) -> str:
        """Append every object, then what has gone, then SYNCED; returns the list's resourceVersion."""
        self._identity = await self.log.identity()
        before = await self.log.seen(self.kind.resource.kind)
        listed: set[str] = set()
        token, version = "", ""
        while True:
            page = await self.client.list_page(self.kind.resource, limit=PAGE, continue_token=token)
            version = page.resource_version
            listed |= {uid for item in page.items if (uid := _uid_of(item))}
            await self._append(self._changes(EntryType.ADDED, page.items))
            token = page.continue_token
            if not token:
                break
        self._is_absent = False
        origin = self._origin()
        gone = [
            gone_entry(self.kind, Known(seen.namespace, seen.name, uid), version, origin)
            for uid, seen in sorted(before.items())
            if uid not in listed
        ]
        await self._append(gone)
        await self.log.append_once([self._marker(EntryType.SYNCED, version)], self._identity)
        return version

    async def _follow_while_ours(self, version: str) -> str:
        """Follow, and raise LogReplaced when the log is exchanged, also while nothing happens to the kind."""
        following = asyncio.create_task(self._follow(version))
        guarding = asyncio.create_task(self._guard())
        try:
            await asyncio.wait({following, guarding}, return_when=asyncio.FIRST_COMPLETED)
            return (following if following.done() else guarding).result()
        finally:
            following.cancel()
            guarding.cancel()
            await asyncio.gather(following, guarding, return_exceptions=True)

    async def _guard(self) -> str:
        while await self.log.identity() == self._identity:
            await asyncio.sleep(GUARD_S)
        raise LogReplaced

    async def _follow(self, version: str) -> str:
        """Append changes until the stream ends; returns the version to go on from."""
        stream = self.client.watch(self.kind.resource, resource_version=version, timeout_s=STREAM_S)
        async with aclosing(stream) as events:
            async for event in events:
                if event.type is not WatchType.BOOKMARK:
                    await self._append(self._changes(_CHANGES[event.type], [event.object]))
                version = _version_of(event.object) or version
                self.backoff.reset()
        return version

    def _changes(self, change: EntryType, items: Iterable[Json]) -> list[Entry]:
        origin = self._origin()
        entries = []
        for raw in items:
            try:
                entries.append(change_entry(self.kind, change, raw, origin))
            except Malformed as error:
                self.observer.object_malformed(self.kind.resource.kind, raw, str(error))
        return entries

    async def _append(self, entries: list[Entry]) -> None:
        if not entries:
            return
        appended = await self.log.append_once(entries, self._identity)
        for entry, is_appended in zip(entries, appended, strict=True):
            self.observer.event_seen(entry.kind, entry.type, is_appended=is_appended)

    def _marker(self, change: EntryType, version: str = "") -> Entry:
        return marker_entry(self.kind.resource.kind, change, self._origin(), version)

    def _origin(self) -> Origin:
        return Origin(self.name, self.now_ms())


def _metadata(raw: Json) -> Json:
    meta = raw.get("metadata")
    return meta if isinstance(meta, dict) else {}


def _uid_of(raw: Json) -> str:
    return str(_metadata(raw).get("uid") or "")


def _version_of(raw: Json) -> str:
    return str(_metadata(raw).get("resourceVersion") or "")
