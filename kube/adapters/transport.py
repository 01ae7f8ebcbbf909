"""One HTTP request to the API server: bytes out, bytes in, and every failure as one of `kube.errors`.

TLS, proxies and the connection pool come from the official library's client; bodies never pass through its
models. Must not know: which request means what.
"""

from __future__ import annotations

import io
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson
from kubernetes.aio.client.rest import RESTClientObject
from kubernetes.aio.config import ConfigException
from yarl import URL

from kube.adapters.credentials import Credentials
from kube.adapters.stream import error_of_status
from kube.errors import ApiError, Misconfigured, OutcomeUnknown, TooManyRequests, Unreachable

JSON_TYPE = "application/json"
LOOPBACK = ("127.0.0.1", "::1", "localhost")
# Reads may be large lists; a write that takes longer is taken for unknown (the binder's lease allows 5 s).
READ_TIMEOUT_S = 60
# A connection whose other end has died gives no sign. A busy API server lets a request wait for a quarter of
# its time before it answers 429: who has heard nothing for longer will hear nothing.
READ_SILENCE_S = 20
WRITE_TIMEOUT_S = 5
CONNECT_TIMEOUT_S = 5
MAX_BYTES_AT_ONCE = 1_000_000
# The API server asks clients to come back within seconds; a larger wish is a broken proxy's.
MAX_RETRY_AFTER_S = 60.0


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked; `target` names the object or collection in errors."""

    method: str
    path: str
    target: str
    query: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = JSON_TYPE

    @property
    def is_write(self) -> bool:
        """Whether carrying it out twice, or not, makes a difference."""
        return self.method != "GET"


class Transport:
    """The connections to one API server. Use it within one event loop and close it at the end."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._server = str(credentials.configuration.host).rstrip("/")
        if URL(self._server).host in LOOPBACK:
            # Go's clients never use a proxy from the environment for these; the library's would.
            credentials.configuration.client_session_kwargs = {"trust_env": False}
        try:
            self._library = RESTClientObject(credentials.configuration)
        except (ssl.SSLError, OSError) as error:
            why = f"its certificates cannot be used ({error})"
            raise Misconfigured(credentials.source, why, "check the CA and client certificate") from error
        self._session: aiohttp.ClientSession | None = None

    @property
    def server(self) -> str:
        """The API server's address."""
        return self._server

    async def close(self) -> None:
        """Closes every connection; streams in use end with Unreachable."""
        await self._library.close()

    async def send(self, request: Request) -> Any:
        """The decoded JSON answer; raises ApiError."""
        limit_s = WRITE_TIMEOUT_S if request.is_write else READ_TIMEOUT_S
        # The server gives up when we do: what it finishes later would be unknown to us.
        query = request.query | {"timeout": f"{limit_s}s"}
        silence_s = None if request.is_write else READ_SILENCE_S
        limits = aiohttp.ClientTimeout(total=limit_s, connect=CONNECT_TIMEOUT_S, sock_read=silence_s)
        async with self._exchange(request, query, limits) as answer:
            raw = await answer.read()
        try:
            return orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            text = raw[:80].decode(errors="replace")
            raise ApiError(request.target, f"{self._server} answered with no JSON ({text!r})") from error

    async def stream(self, request: Request, silence_s: float) -> AsyncGenerator[bytes, None]:
        """The answer's chunks as they come; raises Unreachable after `silence_s` seconds without a byte."""
        limits = aiohttp.ClientTimeout(total=None, connect=CONNECT_TIMEOUT_S, sock_read=silence_s)
        async with self._exchange(request, request.query, limits) as answer:
            async for chunk in answer.content.iter_any():
                yield chunk

    @asynccontextmanager
    async def _exchange(
        self, request: Request, query: dict[str, str], limits: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """An answer with status 2xx; its connection is given back at the end."""
        answer: aiohttp.ClientResponse | None = None
        try:
            answer = await self._open(request, query, limits)
            if answer.status == 401:
                answer = await self._open_renewed(request, query, limits, answer)
            if answer.status >= 300:
                raise _refusal(answer, await answer.read(), request)
            yield answer
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise self._failure(error, request) from error
        finally:
            if answer is not None:
                _give_back(answer)

    async def _open(
        self, request: Request, query: dict[str, str], limits: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        configuration = self._credentials.configuration
        if self._session is None:
            self._session = self._library._create_pool_manager()  # noqa: SLF001
            self._library.pool_manager = self._session
        headers = await self._authorization(request) | {"Accept": JSON_TYPE, "User-Agent": "gpubinder"}
        # Like kube-scheduler: compressing costs the API server more time than it saves near it.
        headers["Accept-Encoding"] = "identity"
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        return await self._session.request(
            request.method,
            self._server + request.path,
            params=query,
            data=_payload(request.body),
            headers=headers,
            timeout=limits,
            allow_redirects=False,
            proxy=configuration.proxy,
            proxy_headers=configuration.proxy_headers,
            server_hostname=configuration.tls_server_name,
        )

    async def _authorization(self, request: Request) -> dict[str, str]:
        try:
            return await self._credentials.headers()
        except (ConfigException, OSError) as error:
            raise Unreachable(request.target, f"the credentials cannot be read ({error})") from error

    async def _open_renewed(
        self,
        request: Request,
        query: dict[str, str],
        limits: aiohttp.ClientTimeout,
        refused: aiohttp.ClientResponse,
    ) -> aiohttp.ClientResponse:
        """The same request with credentials read again: a 401 was not processed, so once more is safe."""
        if not await self._credentials.renew(self._credentials.loaded_at):
            return refused
        refused.close()
        return await self._open(request, query, limits)

    def _failure(self, error: Exception, request: Request) -> ApiError:
        never_sent = isinstance(
            error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError | aiohttp.InvalidURL
        )
        why = str(error) or type(error).__name__
        if request.is_write and not never_sent:
            return OutcomeUnknown(request.target, f"no answer from {self._server} ({why}); it may be done")
        return Unreachable(request.target, f"no answer from {self._server} ({why})")


def _payload(body: bytes | None) -> bytes | io.BytesIO | None:
    # aiohttp sends bytes in one piece, which blocks the loop for large ones; it warns above this size.
    return io.BytesIO(body) if body is not None and len(body) > MAX_BYTES_AT_ONCE else body


def _give_back(answer: aiohttp.ClientResponse) -> None:
    """Keeps the connection for the next request, or drops it at once when the answer was not read to its end.

    A TLS goodbye to a server that still streams would outlive `Transport.close`.
    """
    connection = answer.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    answer.release()


def _refusal(answer: aiohttp.ClientResponse, raw: bytes, request: Request) -> ApiError:
    try:
        body: Any = orjson.loads(raw)
    except orjson.JSONDecodeError:
        body = raw.decode(errors="replace").strip()
    # 504: the request's own deadline passed inside the server, which may still carry it out.
    if request.is_write and answer.status == 504:
        return OutcomeUnknown(request.target, "the API server ran out of time; it may be done")
    if not isinstance(body, dict):
        server, cut = answer.url.origin(), body[:80] if isinstance(body, str) else ""
        body = {"message": f"{server} answered HTTP {answer.status} without a Status ({cut!r})"}
    error = error_of_status(body, request.target, answer.status)
    if isinstance(error, TooManyRequests):
        error.retry_after_s = _retry_after_s(answer.headers.get("Retry-After", ""))
    return error


def _retry_after_s(text: str) -> float:
    return min(float(text), MAX_RETRY_AFTER_S) if text.isascii() and text.isdigit() else 1.0
