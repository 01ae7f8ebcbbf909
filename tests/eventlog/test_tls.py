"""TLS: in front of every server, and a certificate that nobody vouches for is refused."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from eventlog.adapters.redis_streams import connect
from eventlog.errors import LogUnavailable
from tests.eventlog.conftest import SERVERS, Server, now_ms
from tests.eventlog.cutting import Cutting
from tests.eventlog.installed import InstalledServer
from tests.eventlog.test_cuts import live

pytestmark = pytest.mark.enable_socket


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for this machine, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=redis"]
    made += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run(made, cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture(params=["in front", *sorted(set(SERVERS) - {"embedded"})])
async def url(
    request: pytest.FixtureRequest, servers: Callable[[str], Server], folder: Path
) -> AsyncIterator[str]:
    """TLS in front of the embedded server, which has none, and in an installed `redis-server` itself."""
    if request.param == "in front":
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
        front = Cutting(servers("embedded").url.removeprefix("unix://"), "")
        listening = await asyncio.start_server(front.serve, "127.0.0.1", 0, ssl=context)
        yield f"rediss://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        listening.close()
        for task in front.tasks:
            task.cancel()
        await asyncio.gather(*front.tasks, return_exceptions=True)
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    files = {"cert-file": "cert.pem", "key-file": "key.pem", "ca-cert-file": "cert.pem"}
    settings = [word for name, file in files.items() for word in (f"--tls-{name}", str(folder / file))]
    server = InstalledServer(more=["--tls-port", str(port), "--tls-auth-clients", "no", *settings])
    server.start()
    yield f"rediss://127.0.0.1:{port}"
    server.stop()


async def test_log_lives_behind_tls(url: str, cluster: str, folder: Path) -> None:
    log = await connect(f"{url}?ssl_ca_certs={folder}/cert.pem", cluster, "one", now_ms)
    await live(log)
    await log.close()


async def test_certificate_that_nobody_vouches_for_is_refused(url: str, cluster: str) -> None:
    with pytest.raises(LogUnavailable, match=r"certificate verify failed.*ssl_ca_certs"):
        await connect(url, cluster, "one", now_ms)


async def test_plain_client_of_a_server_with_tls_is_told(url: str, cluster: str) -> None:
    with pytest.raises(LogUnavailable, match="rediss://"):
        await connect(url.replace("rediss://", "redis://"), cluster, "one", now_ms)
