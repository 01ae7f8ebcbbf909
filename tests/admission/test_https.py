"""The webhook server on loopback: TLS, what it answers to nonsense, and a certificate that changes."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from admission.adapters import https
from admission.adapters.https import Judge, Webhooks, serving
from admission.adapters.tls import CertificateFolder, ShownCertificate
from admission.certificates import Material, Pair, Wish, first_material
from admission.review import Answer, Refusal, Review
from tests.admission.test_review import review

pytestmark = pytest.mark.enable_socket

MATERIAL = first_material(Wish(("127.0.0.1",), datetime.now(UTC)))
OTHER = first_material(Wish(("127.0.0.1",), datetime.now(UTC) + timedelta(seconds=1)))


@dataclass
class Heard:
    """An observer that keeps what it is told."""

    results: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def reviewed(self, review: Review, answer: Answer, took_s: float) -> None:
        self.results.append(f"{review.kind} {answer.result}")

    def unanswered(self, cause: str) -> None:
        self.results.append(cause)

    def broke(self, review: Review, error: Exception) -> None:
        self.broken.append(repr(error))


@dataclass
class Called:
    """A server, and how it is called."""

    port: int
    shown: ShownCertificate
    heard: Heard

    async def post(self, body: Any, path: str = "/check", trusted: Material = MATERIAL) -> tuple[int, str]:
        async with aiohttp.ClientSession(connector=self.connector(trusted)) as session:
            return await self.post_in(session, body, path)

    async def post_in(
        self, session: aiohttp.ClientSession, body: Any, path: str = "/check"
    ) -> tuple[int, str]:
        sent = io.BytesIO(body) if isinstance(body, bytes) else body
        async with session.post(f"https://127.0.0.1:{self.port}{path}", data=sent) as answer:
            return answer.status, await answer.text()

    def connector(self, trusted: Material = MATERIAL) -> aiohttp.TCPConnector:
        context = ssl.create_default_context(cadata=trusted.bundle.decode())
        return aiohttp.TCPConnector(ssl=context)


async def refuse(_: Review) -> Answer:
    return Answer(Refusal("NoRoom", "none is free"))


async def gate(_: Review) -> Answer:
    return Answer(patch=({"op": "add", "path": "/spec/schedulingGates", "value": []},))


@asynccontextmanager
async def server(check: Judge = refuse) -> AsyncIterator[Called]:
    shown, heard = ShownCertificate(), Heard()
    shown.show(MATERIAL.serving.certificate, MATERIAL.serving.key)
    logger = logging.getLogger("tests.admission")
    async with serving(Webhooks(gate, check, heard), ("127.0.0.1", 0), shown.context, logger) as port:
        yield Called(port, shown, heard)


async def test_reviews_are_answered_over_tls() -> None:
    async with server() as called:
        status, body = await called.post(review())
        assert (status, json.loads(body)["response"]["allowed"]) == (200, False)
        status, body = await called.post(review(), "/gate")
        assert (status, json.loads(body)["response"]["patchType"]) == (200, "JSONPatch")
        assert called.heard.results == ["Pod refused", "Pod gated"]


@pytest.mark.parametrize(
    ("body", "path", "status", "said"),
    [
        (b"{", "/check", 400, "the body is no JSON\n"),
        (b"[]", "/gate", 400, "the body is no AdmissionReview\n"),
        (b"", "/gate", 400, "the body is no JSON\n"),
        (b"[" * 100_000, "/check", 400, "the body is no JSON\n"),
        (b"x" * (https.MAX_BODY + 1), "/check", 413, f"the body has more than {https.MAX_BODY} bytes\n"),
        (review(), "/other", 404, "404: Not Found"),
    ],
    ids=["no JSON", "no review", "empty", "deep", "too large", "unknown path"],
)
async def test_what_is_no_review_gets_one_clear_line(body: bytes, path: str, status: int, said: str) -> None:
    async with server() as called:
        assert await called.post(body, path) == (status, said)
        assert (await called.post(review()))[0] == 200


async def test_fault_of_ours_is_told_to_us_and_not_to_the_caller() -> None:
    async def fail(_: Review) -> Answer:
        raise RuntimeError("the secret plan")

    async with server(fail) as called:
        status, body = await called.post(review())
        assert status == 500
        assert "secret" not in body
        assert called.heard.broken == ["RuntimeError('the secret plan')"]


async def test_more_reviews_than_can_be_judged_at_once_are_sent_back_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(https, "MAX_AT_ONCE", 1)
    began, goes_on = asyncio.Event(), asyncio.Event()

    async def wait(_: Review) -> Answer:
        began.set()
        await goes_on.wait()
        return Answer()

    async with server(wait) as called:
        first = asyncio.create_task(called.post(review()))
        await began.wait()
        assert (await called.post(review()))[0] == 503
        goes_on.set()
        assert (await first)[0] == 200
        assert (await called.post(review()))[0] == 200


async def test_body_that_does_not_arrive_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(https, "READ_S", 0.05)

    async def drip() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    async with server() as called:
        try:
            status, _ = await called.post(drip())
        except aiohttp.ClientError:
            status = 408
        assert status == 408
        assert called.heard.results == ["slow"]


async def test_caller_without_tls_disturbs_nobody(capfd: pytest.CaptureFixture[str]) -> None:
    async with server() as called:
        reader, writer = await asyncio.open_connection("127.0.0.1", called.port)
        writer.write(b"GET / HTTP/1.0\r\n\r\n")
        await reader.read()
        writer.close()
        assert (await called.post(review()))[0] == 200
    assert "Traceback" not in capfd.readouterr().err


async def test_new_certificate_counts_from_the_next_connection_on_and_the_old_ones_go_on() -> None:
    async with server() as called, aiohttp.ClientSession(connector=called.connector()) as old:
        assert (await called.post_in(old, review()))[0] == 200
        assert called.shown.show(OTHER.serving.certificate, OTHER.serving.key)
        assert not called.shown.show(OTHER.serving.certificate, OTHER.serving.key)
        assert (await called.post(review(), trusted=OTHER))[0] == 200
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await called.post(review(), trusted=MATERIAL)
        assert (await called.post_in(old, review()))[0] == 200


def test_what_is_no_pair_changes_nothing() -> None:
    shown = ShownCertificate()
    for pair in (Pair(b"x", b"y"), Pair(MATERIAL.serving.certificate, OTHER.serving.key), Pair(b"", b"")):
        with pytest.raises(ValueError, match="no certificate with its key"):
            shown.show(pair.certificate, pair.key)
    assert not shown.is_shown


def test_certificate_in_a_folder_is_taken_when_it_changes_and_kept_while_it_is_half_written(
    tmp_path: Path,
) -> None:
    def write(certificate: Pair, key: Pair) -> None:
        (tmp_path / "tls.crt").write_bytes(certificate.certificate)
        (tmp_path / "tls.key").write_bytes(key.key)

    shown = ShownCertificate()
    folder = CertificateFolder(tmp_path, shown)
    with pytest.raises(ValueError, match=r"tls\.crt cannot be read: No such file"):
        folder.look()
    write(MATERIAL.serving, MATERIAL.serving)
    assert folder.look()
    assert not folder.look()
    until = shown.until
    write(OTHER.serving, MATERIAL.serving)
    with pytest.raises(ValueError, match=r"tls\.crt and tls\.key are no certificate with its key"):
        folder.look()
    assert shown.until == until
    write(OTHER.serving, OTHER.serving)
    assert folder.look()
    assert shown.until != until
