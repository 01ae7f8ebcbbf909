"""Append-once against a raw pipelined XADD of the same bytes with the same client."""

from __future__ import annotations

import asyncio
import time

from redis.asyncio import Redis

from bench.figures import Figure
from eventlog.adapters.embedded import EmbeddedServer
from eventlog.adapters.redis_streams import PIPELINE, connect
from eventlog.entries import Entry, EntryType, encode_entry

ENTRIES = 20_000
RUNS = 3


def figures() -> list[Figure]:
    """Both in one run on one server, the best of some turns each."""
    server = EmbeddedServer()
    server.start()
    try:
        ours_s, raw_s = asyncio.run(_measure(server.url))
    finally:
        server.stop()
    return [
        Figure("append once", ENTRIES / ours_s, "entries/s", "raw pipelined XADD", ENTRIES / raw_s, 0.8),
    ]


async def _measure(url: str) -> tuple[float, float]:
    entries = [_entry(number) for number in range(ENTRIES)]
    ours_s = raw_s = float("inf")
    for turn in range(RUNS):
        raw_s = min(raw_s, await _raw(url, f"raw-{turn}", entries))
        ours_s = min(ours_s, await _ours(url, f"ours-{turn}", entries))
    return ours_s, raw_s


async def _ours(url: str, cluster: str, entries: list[Entry]) -> float:
    log = await connect(url, cluster, "bench", lambda: 0)
    identity = await log.identity()
    began = time.perf_counter()
    await log.append_once(entries, identity)
    took_s = time.perf_counter() - began
    await log.close()
    return took_s


async def _raw(url: str, key: str, entries: list[Entry]) -> float:
    redis = Redis.from_url(url)
    began = time.perf_counter()
    for start in range(0, len(entries), PIPELINE):
        async with redis.pipeline(transaction=False) as pipe:
            for entry in entries[start : start + PIPELINE]:
                pipe.xadd(key, encode_entry(entry))  # type: ignore[arg-type]
            await pipe.execute()
    took_s = time.perf_counter() - began
    await redis.aclose()
    return took_s


def _entry(number: int) -> Entry:
    body = b'{"metadata":{"name":"pod-%d"},"spec":{"x":"%s"}}' % (number, b"y" * 900)
    return Entry(EntryType.ADDED, "Pod", "default", f"pod-{number}", f"u{number}", str(number), "w", 1, body)
