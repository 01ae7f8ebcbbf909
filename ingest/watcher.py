"""One kind's list and watch loop: everything that happens to its objects, once, in order, into the log.

List (streamed where the server offers it, else page by page), tell what has gone since, mark the list
complete (SYNCED), then watch from there, reopening ended streams where they stopped; an expired version means
a fresh list. Memory is bounded by one page and one object, not by the cluster. What cannot be read as its
kind is reported and passed over. Must not know: what the log is read for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Protocol

from eventlog.entries import Entry, EntryType
from eventlog.errors import LogError, LogReplaced
from eventlog.port import EventAppender, Quarantine, Quarantined
from ingest.backoff import LIMIT_S, Backoff
from ingest.causes import Cause, cause_of
from ingest.entries import Origin, change_entry, gone_entry, marker_entry
from ingest.listing import Listing
from kube.errors import ApiError, BadRequest, Gone, Invalid, NotFound, TooManyRequests
from kube.port import Json, Reader, WatchEvent, WatchType, ends_initial_list
from model.kinds import WatchedKind
from model.lean import Malformed

MAX_NAME = 600
"""Characters of a name in quarantine: a namespace and a name fit."""
PAGE = 500
"""Objects per page: bounds the memory of a list."""
STREAM_S = 80
"""A stream is to end before its silence counts as a hang (90 s): an idle kind sends not even bookmarks."""
PACE_S = 1.0
"""A kind's stream is opened once a second at most, by a server that ends each at once."""
STEADY_S = 5.0
"""A stream that has lasted for so long shows that what made the last ones fail is over."""
GUARD_S = 5.0
"""How often a watcher looks whether the log is still the one it listed for."""
LOG_LIMIT_S = 3.0
"""The longest wait for Redis: it serves us alone, and what it missed has to be listed again."""
ABSENT_RETRY_S = 5.0
"""How soon a kind whose CRD is installed while we run is noticed (R32 wants 30 s)."""

_CHANGES = {
    WatchType.ADDED: EntryType.ADDED,
    WatchType.MODIFIED: EntryType.MODIFIED,
    WatchType.DELETED: EntryType.DELETED,
}


class WatcherLog(EventAppender, Quarantine, Protocol):
    """The log as a watcher uses it."""


class WatchObserver(Protocol):
    """Told what the loop meets: for logs and metrics."""

    def event_seen(self, kind: str, change: str, *, is_appended: bool) -> None:
        """One change was appended, or was known already."""
        ...

    def object_malformed(self, kind: str, raw: Json, why: str) -> None:
        """An object could not be read as its kind, and was passed over."""
        ...

    def watch_restarted(self, kind: str, cause: Cause, why: str, wait_s: float) -> None:
        """The loop starts again after `wait_s`."""
        ...

    def heard(self, kind: str) -> None:
        """The API server has told something of the kind, if only that nothing happens."""
        ...

    def listed(self, kind: str) -> None:
        """A complete list of the kind is in the log, or that it is not served."""
        ...


@dataclass(slots=True)
class KindWatcher:
    """Watches one kind until it is cancelled."""

    client: Reader
    log: WatcherLog
    kind: WatchedKind
    name: str
    """Of this watcher replica."""
    now_ms: Callable[[], int]
    observer: WatchObserver
    backoff: Backoff = field(default_factory=Backoff)
    _can_stream_lists: bool = True
    _listing: Listing = field(default_factory=Listing)
    _absent_in: str = ""
    """The log that was told that the kind is not served."""

    async def run(self) -> None:
        """List and watch for ever; every failure is waited out."""
        version = ""
        while True:
            try:
                version = await self._turn(version)
            except (Gone, LogReplaced) as error:
                version = ""
                await self._wait(error)
            except (ApiError, LogError) as error:
                await self._wait(error)

    async def _turn(self, version: str) -> str:
        """One stream, with the list before it where there is none to go on from; returns where it ended."""
        try:
            if not version:
                self._listing = await Listing.begin(self.log, self.kind)
                if not self._can_stream_lists:
                    version = await self._list()
            return await self._follow_while_ours(version)
        except NotFound as error:
            await self._kind_absent(error)
            return ""
        except (Invalid, BadRequest):
            if version or not self._can_stream_lists:
                raise
            self._can_stream_lists = False  # a server before 1.32: page by page then
            return ""

    async def _wait(self, error: ApiError | LogError) -> None:
        """Each peer has its own patience: Redis back after minutes is written to within seconds."""
        at_least_s = error.retry_after_s if isinstance(error, TooManyRequests) else 0.0
        is_log = isinstance(error, LogError)
        wait_s = self.backoff.next_s(at_least_s, LOG_LIMIT_S if is_log else LIMIT_S)
        self.observer.watch_restarted(self.kind.resource.kind, cause_of(error), str(error), wait_s)
        await asyncio.sleep(wait_s)

    async def _kind_absent(self, error: NotFound) -> None:
        """The API server does not serve the kind (yet): say so once, and look again soon (R32)."""
        identity = await self.log.identity()
        if self._absent_in != identity:
            kind = self.kind.resource.kind
            self.observer.watch_restarted(kind, Cause.ABSENT, str(error), ABSENT_RETRY_S)
            await self.log.append_once([self._marker(EntryType.ABSENT)], identity)
            self._absent_in = identity
        self.observer.heard(self.kind.resource.kind)
        self.observer.listed(self.kind.resource.kind)
        await asyncio.sleep(ABSENT_RETRY_S)

    async def _list(self) -> str:
        """Page by page; returns the list's resourceVersion."""
        token = ""
        while True:
            page = await self.client.list_page(self.kind.resource, limit=PAGE, continue_token=token)
            self.observer.heard(self.kind.resource.kind)
            await self._append_listed(page.items)
            if token and page.continue_token == token:
                raise ApiError(str(self.kind.resource.full_name), "the list has one page again and again")
            token = page.continue_token
            if not token:
                await self._end_list(page.resource_version)
                return page.resource_version

    async def _append_listed(self, items: list[Json]) -> None:
        self._listing.listed |= {uid for item in items if (uid := _uid_of(item))}
        await self._append_read(EntryType.ADDED, items)

    async def _end_list(self, version: str) -> None:
        """Tell what has gone, and that the list is complete. Raises LogReplaced for a rewound cluster."""
        if self._listing.is_rewound(version):
            await self.log.begin_anew(self._listing.identity)
            raise LogReplaced
        self._absent_in = ""
        origin = self._origin()
        gone = [gone_entry(self.kind, known, version, origin) for known in self._listing.gone()]
        await self._append(gone)
        await self.log.append_once([self._marker(EntryType.SYNCED, version)], self._listing.identity)
        self.observer.listed(self.kind.resource.kind)

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
        while await self.log.identity() == self._listing.identity:
            await asyncio.sleep(GUARD_S)
        raise LogReplaced

    async def _follow(self, version: str) -> str:
        """Append changes until the stream ends; returns the version to go on from, empty within a list."""
        clock = asyncio.get_running_loop().time
        opened_s = clock()
        stream = self.client.watch(self.kind.resource, resource_version=version, timeout_s=STREAM_S)
        listed: list[Json] = []
        async with aclosing(stream) as events:
            async for event in events:
                self.observer.heard(self.kind.resource.kind)
                if version:
                    await self._append_change(event)
                elif ends_initial_list(event):
                    await self._append_listed(listed)
                    await self._end_list(_version_of(event.object))
                elif event.type is not WatchType.BOOKMARK:
                    listed.append(event.object)
                    if len(listed) == PAGE:
                        await self._append_listed(listed)
                        listed.clear()
                    continue
                version = _version_of(event.object) or version
                self._calm_down(clock() - opened_s)
        self.observer.heard(self.kind.resource.kind)
        self._calm_down(lasted_s := clock() - opened_s)
        await asyncio.sleep(max(0.0, PACE_S - lasted_s))
        return version

    def _calm_down(self, lasted_s: float) -> None:
        """One event is not enough: a stream that breaks after each would be opened, or listed, at once."""
        if lasted_s >= STEADY_S:
            self.backoff.reset()

    async def _append_change(self, event: WatchEvent) -> None:
        if event.type is not WatchType.BOOKMARK:
            await self._append_read(_CHANGES[event.type], [event.object])

    async def _append_read(self, change: EntryType, items: Iterable[Json]) -> None:
        """Append what can be read, and put the rest into quarantine: by name, since it may hold secrets."""
        origin = self._origin()
        entries = []
        for raw in items:
            try:
                entries.append(change_entry(self.kind, change, raw, origin))
            except Malformed as error:
                self.observer.object_malformed(self.kind.resource.kind, raw, str(error))
                what = f"{self.kind.resource.kind} {_name_of(raw)}"
                await self.log.quarantine(Quarantined(what, str(error)))
        await self._append(entries)

    async def _append(self, entries: list[Entry]) -> None:
        if not entries:
            return
        appended = await self.log.append_once(entries, self._listing.identity)
        for entry, is_appended in zip(entries, appended, strict=True):
            self.observer.event_seen(entry.kind, entry.type, is_appended=is_appended)

    def _marker(self, change: EntryType, version: str = "") -> Entry:
        return marker_entry(self.kind.resource.kind, change, self._origin(), version)

    def _origin(self) -> Origin:
        return Origin(self.name, self.now_ms())


def _metadata(raw: Json) -> Json:
    meta = raw.get("metadata")
    return meta if isinstance(meta, dict) else {}


def _name_of(raw: Json) -> str:
    meta = _metadata(raw)
    return f"{meta.get('namespace') or ''}/{meta.get('name')}"[:MAX_NAME].lstrip("/")


def _uid_of(raw: Json) -> str:
    return str(_metadata(raw).get("uid") or "")


def _version_of(raw: Json) -> str:
    return str(_metadata(raw).get("resourceVersion") or "")
