"""Why and when a watch loop begins again: one word for each cause, and a patience for each peer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from eventlog.adapters.memory import MemoryLog
from eventlog.entries import Entry, StoredEntry
from eventlog.errors import LogRefused, LogReplaced, LogUnavailable
from ingest.causes import Cause, cause_of
from ingest.watcher import LOG_LIMIT_S, KindWatcher
from kube.errors import Gone, NotFound, ServerFault, TooManyRequests, Unauthorized, Unreachable
from model.kinds import BY_KIND
from model.resources import NODES
from simulator.apiserver.server import ApiServer
from simulator.objects import gpu_node
from simulator.virtual_time import Clock, run_virtual
from tests.ingest.test_watcher import Seen


class Away(MemoryLog):
    """A log that can be away."""

    is_away = False

    async def identity(self) -> str:
        self._ask()
        return await super().identity()

    async def append_once(self, entries: Sequence[Entry], identity: str) -> list[bool]:
        self._ask()
        return await super().append_once(entries, identity)

    def _ask(self) -> None:
        if self.is_away:
            raise LogUnavailable("Redis at redis://there:1 cannot be reached")


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (Gone("Node", "expired"), Cause.EXPIRED),
        (LogReplaced(), Cause.REPLACED),
        (LogUnavailable("away"), Cause.LOG),
        (LogRefused("no"), Cause.LOG),
        (TooManyRequests("Node", "slow down"), Cause.THROTTLED),
        (Unauthorized("Node", "who are you"), Cause.REFUSED),
        (NotFound("Node", "no such kind"), Cause.ABSENT),
        (Unreachable("Node", "refused"), Cause.UNREACHABLE),
        (ServerFault("Node", "etcd"), Cause.OTHER),
    ],
)
def test_each_failure_has_one_word(error: Exception, cause: Cause) -> None:
    assert cause_of(error) is cause


def test_log_that_is_back_after_minutes_is_written_to_within_seconds_and_is_not_hammered() -> None:
    """What Redis missed has to be listed again: its watchers must not wait out a long back-off."""

    async def main(clock: Clock) -> None:
        server, log, seen = ApiServer(clock), Away(clock), Seen()
        await server.create(NODES, gpu_node("a", {}))
        watching = asyncio.create_task(KindWatcher(server, log, BY_KIND["Node"], "w", clock, seen).run())
        await asyncio.sleep(5)
        log.is_away = True
        before = len(seen.restarts)
        await server.create(NODES, gpu_node("b", {}))
        await asyncio.sleep(600)
        tries = len(seen.restarts) - before
        assert 600 / LOG_LIMIT_S < tries < 2.5 * 600 / LOG_LIMIT_S
        log.is_away = False
        await asyncio.sleep(LOG_LIMIT_S + 0.5)
        told = [one.entry.name for one in await log.read_range("0-0", 99) if isinstance(one, StoredEntry)]
        assert "b" in told
        assert set(seen.causes) == {Cause.LOG}
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)

    run_virtual(main)


def test_listed_kind_is_heard_of_again_at_least_every_stream() -> None:
    """Also when nothing happens to it: that tells an idle kind from a dead connection."""

    async def main(clock: Clock) -> None:
        server, seen = ApiServer(clock), Seen()
        watching = asyncio.create_task(
            KindWatcher(server, MemoryLog(clock), BY_KIND["Node"], "w", clock, seen).run()
        )
        await asyncio.sleep(5)
        assert seen.lists == ["Node"]
        for _ in range(5):
            before = len(seen.heard_of)
            await asyncio.sleep(100)
            assert len(seen.heard_of) > before
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)

    run_virtual(main)
