"""The watcher: memory of a list of 20,000 pods, CPU per event, and doubles of three replicas."""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass

import orjson

from bench.figures import Figure
from bench.fold import pod_body
from eventlog.adapters.embedded import EmbeddedServer
from eventlog.adapters.redis_streams import RedisLog, connect
from ingest.causes import Cause
from ingest.watcher import KindWatcher
from kube.port import ALL, INITIAL_EVENTS_END, Json, ObjectKey, Page, Selection, WatchEvent, WatchType
from model.kinds import BY_KIND
from model.resources import Resource

PODS = 20_000
CHANGES = 100_000
REPLICAS = 3


@dataclass(frozen=True, slots=True)
class Silent:
    """An observer that counts nothing."""

    def event_seen(self, kind: str, change: str, *, is_appended: bool) -> None:
        """See WatchObserver."""

    def object_malformed(self, kind: str, raw: Json, why: str) -> None:
        """See WatchObserver."""

    def watch_restarted(self, kind: str, cause: Cause, why: str, wait_s: float) -> None:
        """See WatchObserver."""

    def heard(self, kind: str) -> None:
        """See WatchObserver."""

    def listed(self, kind: str) -> None:
        """See WatchObserver."""


@dataclass(frozen=True, slots=True)
class Feed:
    """A server that has `pods` pods, tells of `changes` changes, and then nothing more; nothing is kept."""

    pods: int
    changes: int

    async def get(self, key: ObjectKey) -> Json:
        """Not asked for."""
        raise AssertionError(key)

    async def list_page(
        self, resource: Resource, selection: Selection = ALL, *, limit: int = 500, continue_token: str = ""
    ) -> Page:
        """Not asked for: the list is streamed."""
        raise AssertionError(resource)

    async def watch(
        self, resource: Resource, selection: Selection = ALL, *, resource_version: str, timeout_s: int = 300
    ) -> AsyncGenerator[WatchEvent, None]:
        """The list, its end, the changes; each event decoded anew, as from a socket."""
        for number, line in enumerate(_lines(self.pods), start=1):
            yield WatchEvent(WatchType.ADDED, orjson.loads(line))
            if number % 200 == 0:
                await asyncio.sleep(0)
        end = {"resourceVersion": str(self.pods), "annotations": {INITIAL_EVENTS_END: "true"}}
        yield WatchEvent(WatchType.BOOKMARK, {"metadata": end})
        for number in range(self.changes):
            body = pod_body(number % max(1, self.pods))
            body["metadata"] |= {"resourceVersion": str(self.pods + number + 1), "labels": {"n": str(number)}}
            yield WatchEvent(WatchType.MODIFIED, body)
        await asyncio.Event().wait()


def figures() -> list[Figure]:
    """On one embedded log each."""
    server = EmbeddedServer()
    server.start()
    try:
        growth_mb, event_us = asyncio.run(_list_and_follow(server.url))
        doubles = asyncio.run(_three_replicas(server.url))
    finally:
        server.stop()
    return [
        Figure(f"memory growth of a list of {PODS} pods", growth_mb, "MB (100 wanted at most)"),
        Figure("watcher CPU per event", event_us, "us"),
        Figure(f"doubles of {REPLICAS} replicas in {CHANGES} changes", doubles, "(0 wanted)"),
    ]


async def _list_and_follow(url: str) -> tuple[float, float]:
    log = await connect(url, "list", "bench", _now_ms)
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cpu_s = time.process_time()
    await _watch_until(log, Feed(PODS, 0), "one", PODS + 1)
    event_us = (time.process_time() - cpu_s) / PODS * 1e6
    growth_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb) / 1024
    await log.close()
    return growth_mb, event_us


async def _three_replicas(url: str) -> int:
    logs = [await connect(url, "three", f"bench-{n}", _now_ms) for n in range(REPLICAS)]
    feed = Feed(100, CHANGES)
    wanted = 100 + CHANGES
    tasks = [asyncio.create_task(_watch_until(log, feed, f"w{n}", wanted)) for n, log in enumerate(logs)]
    await asyncio.gather(*tasks)
    changes = (await logs[0].info()).entries - sum(1 for _ in range(REPLICAS))
    for log in logs:
        await log.close()
    return changes - wanted


async def _watch_until(log: RedisLog, feed: Feed, name: str, entries: int) -> None:
    watcher = KindWatcher(feed, log, BY_KIND["Pod"], name, _now_ms, Silent())
    task = asyncio.create_task(watcher.run())
    while (await log.info()).entries < entries:
        if task.done():
            task.result()
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.5)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _lines(count: int) -> Iterator[bytes]:
    for number in range(count):
        yield orjson.dumps(pod_body(number))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
