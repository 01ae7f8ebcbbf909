"""`gpubinder admit` and what `gpubinder crds` prints for it: wrong use, bad input, a server that is asked."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from gpubinder.cli import main
from gpubinder.logs import LOGGER
from simulator.cluster import api_server
from simulator.http_face import serving, write_kubeconfig
from tests.cli.test_wrong_use import line_of

pytestmark = pytest.mark.enable_socket

REDIS = ["--redis", "redis://127.0.0.1:1"]
WEBHOOKS = ["Service", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]


@pytest.fixture(autouse=True)
def quiet_again() -> Iterator[None]:
    yield
    LOGGER.handlers.clear()


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="gpubinder")


def printed(*arguments: str) -> list[dict[str, Any]]:
    """What is printed behind the three CRDs, without who may write what."""
    done = run("crds", "--writers", "none", *arguments)
    assert done.exit_code == 0, done.output
    return list(yaml.safe_load_all(done.stdout))[3:]


def kinds(*arguments: str) -> list[str]:
    return [document["kind"] for document in printed(*arguments)]


@contextmanager
def simulated_cluster(folder: Path) -> Iterator[Path]:
    """A simulated API server in a thread of its own; gives a kubeconfig."""
    path, ready, loop = folder / "kubeconfig", threading.Event(), asyncio.new_event_loop()

    async def serve() -> None:
        async with serving(await api_server(lambda: 1_790_000_000_000), 0) as url:
            write_kubeconfig(path, url)
            ready.set()
            await stop.wait()

    stop = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert ready.wait(10)
    try:
        yield path
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()


def line_of_admit(*arguments: str) -> str:
    """The one line of a run that must fail."""
    done = run("admit", *arguments)
    lines = [line for line in done.stderr.splitlines() if line.startswith("gpubinder: ")]
    assert (done.exit_code, len(lines)) == (1, 1), done.output
    return lines[0]


def test_checks_come_with_the_webhook_gate_and_can_be_had_with_the_policy() -> None:
    assert kinds("--gate", "webhook") == WEBHOOKS
    assert kinds("--gate", "webhook", "--checks", "none") == WEBHOOKS[:2]
    policy = ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"]
    assert kinds() == policy
    assert kinds("--checks", "webhook") == [*policy, WEBHOOKS[0], WEBHOOKS[2]]
    assert kinds("--gate", "none") == []


def test_url_and_place_and_cert_manager_are_printed_as_they_are_given() -> None:
    called = [
        webhook["clientConfig"]["url"]
        for document in printed("--gate", "webhook", "--webhook-url", "https://127.0.0.1:9443")
        for webhook in document["webhooks"]
    ]
    assert called == ["https://127.0.0.1:9443/gate"] + ["https://127.0.0.1:9443/check"] * 4
    service, gate, _ = printed(
        *("--gate", "webhook", "--admission-namespace", "gpus", "--admission-service", "admit"),
        *("--cert-manager", "gpus/tls"),
    )
    assert (service["metadata"]["namespace"], service["metadata"]["name"]) == ("gpus", "admit")
    assert gate["metadata"]["annotations"] == {"cert-manager.io/inject-ca-from": "gpus/tls"}


def test_gate_is_the_one_that_the_api_server_has(tmp_path: Path) -> None:
    """The simulated server has no MutatingAdmissionPolicy, as servers before 1.36."""
    with simulated_cluster(tmp_path) as kubeconfig:
        assert kinds("--gate", "auto", "--kubeconfig", str(kubeconfig)) == WEBHOOKS


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (["crds", "--gate", "auto"], "--kubeconfig"),
        (["crds", "--webhook-url", "http://h"], "--webhook-url"),
        (["crds", "--webhook-url", "https://h/path"], "--webhook-url"),
        (["crds", "--cert-manager", "name"], "--cert-manager"),
        (["crds", "--admission-namespace", "Kube System"], "--admission-namespace"),
        (["admit"], "--redis"),
        (["admit", *REDIS], "--kubeconfig"),
        (["admit", "--admission-port", "0"], "--admission-port"),
        (["admit", "--orders", "drop"], "--orders"),
        (["admit", "--cert-dir", "/none"], "--cert-dir"),
        (["admit", "--cert-name", "a b"], "--cert-name"),
        (["admit", *REDIS, "--kubeconfig", "x", "--cert-dir", ".", "--cert-name", "h"], "--cert-name"),
        (["up", "--admission-port", "-1"], "--admission-port"),
    ],
    ids=str,
)
def test_wrong_use_is_one_line(command: list[str], named: str) -> None:
    assert named in line_of(*command)


def test_bad_input_is_one_line_and_redis_that_is_away_is_none(tmp_path: Path) -> None:
    """30-api: the gate needs no Redis; a URL that is none will never be one."""
    with simulated_cluster(tmp_path) as kubeconfig, socket.socket() as taken:
        at = ["--kubeconfig", str(kubeconfig)]
        assert "--redis" in line_of_admit(*at, "--redis", "http://x")
        line = line_of_admit(*at, *REDIS, "--cert-dir", str(tmp_path))
        assert f"--cert-dir: {tmp_path}/tls.crt cannot be read: No such file" in line
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        line = line_of_admit(*at, *REDIS, "--admission-port", port, "--admission-namespace", "kube-system")
        assert f"cannot serve admission on port {port}" in line
        assert "choose another --admission-port" in line
