"""What `gpubinder status` shows of a running system: the log, and what could not be read."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path

import orjson
import pytest

from eventlog.adapters.embedded import EmbeddedServer
from eventlog.adapters.redis_streams import connect
from eventlog.port import Quarantined
from simulator.cluster import api_server
from simulator.http_face import serving, write_kubeconfig
from tests.cli.process import gpubinder
from tests.cli.test_up_ends import is_up, running, until

pytestmark = pytest.mark.enable_socket
HOSTILE = "GPUClaim x/\x1b[2J\x1b[31mevil\r\nquarantined nothing\u202e"


async def plant(url: str, item: Quarantined) -> None:
    log = await connect(url, "default", "planter", lambda: time.time_ns() // 1_000_000)
    await log.quarantine(item)
    await log.close()


def test_quarantined_entries_are_listed_and_cannot_fool_the_terminal(tmp_path: Path) -> None:
    """Names are the tenants': no escape sequence, no line of its own, no flood."""
    server, log, config = EmbeddedServer(), tmp_path / "log", tmp_path / "kubeconfig"
    server.start()
    try:
        with running(log, "up", "--embedded", "--redis", server.url, "--lease-namespace", "default"):
            until(lambda: is_up(log), "up")
            assert " --redis URL" in log.read_text()
            assert server.url not in log.read_text()
            write_kubeconfig(config, log.read_text().partition("api_server=")[2].split()[0])
            asyncio.run(plant(server.url, Quarantined(HOSTILE, "no\x07object\n", b"\xff{}")))
            asyncio.run(plant(server.url, Quarantined("Node " + "n" * 1_000_000, "w" * 1_000_000)))
            options = ("--kubeconfig", str(config), "--redis", server.url, "--lease-namespace", "default")
            text = gpubinder("status", *options)
            as_json = orjson.loads(gpubinder("status", *options, "--json").stdout)
    finally:
        server.stop()
    assert text.returncode == 0, text.stderr
    assert re.search(r"^log +\d+ entries, last \d+ s ago, ", text.stdout, re.MULTILINE)
    shown = [line for line in text.stdout.splitlines() if line.startswith("quarantined")]
    assert len(shown) == 2
    assert not any(character in text.stdout for character in "\x1b\x07\r\u202e")
    assert max(map(len, shown)) < 2_000
    assert HOSTILE in [item["what"] for item in as_json["quarantined"]]
    assert "leader   " in text.stdout


def test_embedded_system_says_how_to_look_at_it(tmp_path: Path) -> None:
    """Nobody could guess where its API server and its log are."""
    log = tmp_path / "log"
    with running(log, "up", "--cluster", "mine", "--lease-namespace", "default"):
        until(lambda: is_up(log), "up")
        (words,) = re.findall(r'look="gpubinder ([^"]+)"', log.read_text())
        shown = gpubinder(*words.split(), "--json")
    assert shown.returncode == 0, shown.stderr
    assert orjson.loads(shown.stdout)["leader"]


async def test_claims_are_shown_and_the_fault_is_told_while_the_log_is_away(tmp_path: Path) -> None:
    """When Redis is away, people ask for the status most."""
    config = tmp_path / "kubeconfig"
    async with serving(await api_server(lambda: 0)) as url:
        write_kubeconfig(config, url)
        options = ("status", "--kubeconfig", str(config), "--redis", "redis://127.0.0.1:1")
        text = await asyncio.to_thread(gpubinder, *options)
        as_json = await asyncio.to_thread(gpubinder, *options, "--json")
    assert (text.returncode, as_json.returncode) == (1, 1)
    assert "Claims" in text.stdout
    assert "log      cannot be asked" in text.stdout
    assert text.stderr.startswith("gpubinder: Redis at redis://127.0.0.1:1 cannot be reached")
    found = orjson.loads(as_json.stdout)
    assert (found["log"], found["watchers"], found["claims"]) == (None, [], [])
    assert "cannot be reached" in found["log_error"]


async def test_log_that_nobody_writes_to_says_so(tmp_path: Path) -> None:
    config, redis = tmp_path / "kubeconfig", EmbeddedServer()
    redis.start()
    try:
        async with serving(await api_server(lambda: 0)) as url:
            write_kubeconfig(config, url)
            options = ("status", "--kubeconfig", str(config), "--redis", redis.url)
            text = await asyncio.to_thread(gpubinder, *options)
    finally:
        redis.stop()
    assert text.returncode == 0
    assert "log      0 entries, last none, " in text.stdout
    assert "watchers none: nobody writes to the log" in text.stdout
