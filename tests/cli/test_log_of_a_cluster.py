"""Whose log it is: that of one cluster, and of the next simulated one when a process begins again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from eventlog.adapters.embedded import EmbeddedServer
from eventlog.adapters.redis_streams import RedisLog, connect
from gpubinder.errors import CommandError
from gpubinder.settings import ClusterChoice, LogChoice, Settings
from gpubinder.stores import check_cluster_of_log, check_log_is_for_files, reach_cluster

pytestmark = pytest.mark.enable_socket


@pytest.fixture
async def log() -> AsyncIterator[RedisLog]:
    server = EmbeddedServer()
    server.start()
    log = await connect(server.url, "default", "one", lambda: 0)
    yield log
    await log.close()
    server.stop()


@asynccontextmanager
async def checked(log: RedisLog) -> AsyncIterator[None]:
    """As `gpubinder up --data` does with its own simulated cluster: at the start, and again and again."""
    choice = ClusterChoice(is_embedded=True)
    settings = Settings(cluster_choice=choice, log_choice=LogChoice(None, Path("data")))
    async with reach_cluster(choice) as client:
        await check_cluster_of_log(log, client, settings)
        yield
        await check_cluster_of_log(log, client, settings, is_running=True)


async def test_log_of_our_own_becomes_that_of_the_next_simulated_cluster_and_stays_it(log: RedisLog) -> None:
    """The second start on the same --data ended after five seconds: the log was still the first one's."""
    identities = set()
    for _ in range(3):
        async with checked(log):
            identities.add(await log.identity())
    assert len(identities) == 3


async def test_cluster_takes_over_a_log_that_was_fed_from_files_and_begins_it_anew(log: RedisLog) -> None:
    """What files told is no cluster's, and nothing of it may be placed on."""
    await check_log_is_for_files(log, "default")
    fed = await log.identity()
    choice = ClusterChoice(is_embedded=True)
    settings = Settings(cluster_choice=choice, log_choice=LogChoice("redis://given"))
    async with reach_cluster(choice) as client:
        await check_cluster_of_log(log, client, settings)
        begun = await log.identity()
        await check_cluster_of_log(log, client, settings, is_running=True)
        assert await log.identity() == begun != fed
    with pytest.raises(CommandError, match="--cluster default is that of a cluster"):
        await check_log_is_for_files(log, "default")
