"""Watching a shelf: changes after a revision, as one selection sees them, with bookmarks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from itertools import islice

from kube.errors import Gone
from kube.port import INITIAL_EVENTS_END, Json, WatchEvent, WatchType
from model.resources import Resource
from simulator.apiserver.selectors import Matches
from simulator.apiserver.store import Change, Shelf, Store, copied

_ROUNDING_S = 1e-6
"""A timer may fire a rounding error before its time: a loop in virtual time would spin on it."""
BOOKMARK_S = 60.0
"""The API server sends one about every minute, and one before it ends a stream."""


async def follow(
    store: Store, resource: Resource, matches: Matches, after: int, timeout_s: float
) -> AsyncGenerator[WatchEvent, None]:
    """Events until `timeout_s` have passed; raises Gone once the history from `after` on is forgotten."""
    shelf = store.shelf(resource)
    loop = asyncio.get_running_loop()
    ends, bookmark_at = loop.time() + timeout_s, loop.time() + BOOKMARK_S
    position = after
    while True:
        for change in _changes_after(shelf, position, resource):
            position = change.revision
            event = _seen_as(change, matches)
            if event is not None:
                yield event
        if _is_behind(shelf, position):
            continue  # it came while the watcher was slow to take an event: no bookmark may pass it over
        now = loop.time() + _ROUNDING_S
        if now >= min(ends, bookmark_at):
            position = max(position, store.revision)
            yield _bookmark(resource, position)
            bookmark_at = loop.time() + BOOKMARK_S
        if now >= ends:
            return
        await _wait_for_news(shelf, min(ends, bookmark_at) - loop.time(), position)


async def stream_list(
    store: Store, resource: Resource, matches: Matches, timeout_s: float, *, marks_end: bool = True
) -> AsyncGenerator[WatchEvent, None]:
    """Every object as ADDED, the bookmark that ends the list if it `marks_end`, and then what follows."""
    revision = store.revision
    for obj in [copied(obj) for obj in store.scan(resource) if matches(obj)]:
        yield WatchEvent(WatchType.ADDED, obj)
    if marks_end:
        end = _bookmark(resource, revision)
        end.object["metadata"]["annotations"] = {INITIAL_EVENTS_END: "true"}
        yield end
    async for event in follow(store, resource, matches, revision, timeout_s):
        yield event


def _changes_after(shelf: Shelf, position: int, resource: Resource) -> list[Change]:
    if position < shelf.compacted:
        text = f"too old resource version: {position} ({shelf.compacted})"
        raise Gone(f"watch of {resource.full_name}", text, 410, "Expired")
    new = 0
    for change in reversed(shelf.history):
        if change.revision <= position:
            break
        new += 1
    return list(islice(reversed(shelf.history), new))[::-1]


def _is_behind(shelf: Shelf, position: int) -> bool:
    """Whether there is something to tell after `position`, be it that it is forgotten."""
    return position < shelf.compacted or bool(shelf.history and shelf.history[-1].revision > position)


async def _wait_for_news(shelf: Shelf, seconds: float, position: int) -> None:
    if _is_behind(shelf, position):
        return
    try:
        # Not wait_for: before Python 3.12 it can swallow a cancellation that meets the news.
        async with asyncio.timeout(max(0.0, seconds)):
            await shelf.news.wait()
    except TimeoutError:
        return


def _seen_as(change: Change, matches: Matches) -> WatchEvent | None:
    """An object that enters or leaves the selection is added or deleted there."""
    was = change.before is not None and matches(change.before)
    now = change.after is not None and matches(change.after)
    if now:
        return WatchEvent(WatchType.MODIFIED if was else WatchType.ADDED, copied(change.final))
    if was:
        assert change.before is not None
        final = copied(change.before)
        final["metadata"]["resourceVersion"] = str(change.revision)
        return WatchEvent(WatchType.DELETED, final)
    return None


def _bookmark(resource: Resource, revision: int) -> WatchEvent:
    obj: Json = {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        "metadata": {"resourceVersion": str(revision), "creationTimestamp": None},
    }
    return WatchEvent(WatchType.BOOKMARK, obj)
