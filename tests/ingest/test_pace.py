"""An API server, or a proxy before it, that ends, repeats or breaks everything is asked at a bounded pace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from eventlog.adapters.memory import MemoryLog
from ingest.watcher import STEADY_S, KindWatcher
from kube.errors import BadRequest, Gone, Unreachable
from kube.port import ALL, Page, Selection, WatchEvent, WatchType
from model.kinds import BY_KIND
from model.resources import Resource
from simulator.virtual_time import Clock, run_virtual
from tests.ingest.test_watcher import Seen

MINUTE_S = 60.0
BOOKMARK = WatchEvent(WatchType.BOOKMARK, {"metadata": {"resourceVersion": "10"}})
LISTED = WatchEvent(
    WatchType.BOOKMARK,
    {"metadata": {"resourceVersion": "10", "annotations": {"k8s.io/initial-events-end": "true"}}},
)


class Hasty:
    """Ends each stream after `lasts_s`, with its one bookmark and, after that, with `ends_with`."""

    def __init__(self, ends_with: Exception | None = None, lasts_s: float = 0.0) -> None:
        self.lists = self.streams = 0
        self.ends_with = ends_with
        self.lasts_s = lasts_s

    async def get(self, *_: Any) -> Any:
        raise AssertionError

    async def list_page(self, *_: Any, **__: Any) -> Page:
        raise AssertionError

    async def watch(
        self, resource: Resource, selection: Selection = ALL, *, resource_version: str, timeout_s: int = 300
    ) -> AsyncGenerator[WatchEvent, None]:
        self.streams += 1
        self.lists += not resource_version
        await asyncio.sleep(self.lasts_s)
        yield BOOKMARK if resource_version else LISTED
        if resource_version and self.ends_with is not None:
            raise self.ends_with


class Repeating(Hasty):
    """Gives the same page for ever, and streams no lists."""

    async def watch(self, *_: Any, **__: Any) -> AsyncGenerator[WatchEvent, None]:
        raise BadRequest("nodes", "what is sendInitialEvents?", 400)
        yield BOOKMARK

    async def list_page(self, *_: Any, **__: Any) -> Page:
        self.lists += 1
        return Page([], "10", "the same token")


def watched(client: Hasty) -> Seen:
    seen = Seen()

    async def main(clock: Clock) -> None:
        watcher = KindWatcher(client, MemoryLog(clock), BY_KIND["Node"], "w1", clock, seen)
        task = asyncio.create_task(watcher.run())
        await asyncio.sleep(MINUTE_S)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run_virtual(main)
    return seen


def test_streams_that_end_at_once_are_opened_once_a_second() -> None:
    client = Hasty()
    watched(client)
    assert MINUTE_S - 5 <= client.streams <= MINUTE_S + 5
    assert client.lists == 1


def test_streams_that_break_after_their_first_event_are_waited_for_longer_and_longer() -> None:
    client = Hasty(Unreachable("nodes", "reset"))
    seen = watched(client)
    assert client.streams < 15
    assert max(wait_s for _, wait_s in seen.restarts) > 5


def test_versions_that_expire_at_once_do_not_have_everything_listed_without_end() -> None:
    client = Hasty(Gone("nodes", "too old", 410))
    watched(client)
    assert client.lists < 15


def test_stream_that_lasted_makes_the_next_wait_short_again() -> None:
    client = Hasty(Unreachable("nodes", "reset"), lasts_s=STEADY_S + 1)
    seen = watched(client)
    assert len(seen.restarts) > 5
    assert max(wait_s for _, wait_s in seen.restarts) < 1


def test_page_that_comes_again_and_again_is_no_list() -> None:
    client = Repeating()
    seen = watched(client)
    assert client.lists < 30
    assert any("one page again and again" in why for why, _ in seen.restarts)
