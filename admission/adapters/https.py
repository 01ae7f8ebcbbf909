"""The webhook server: HTTPS in front of a Reviewer. Nothing that is sent makes it fail, wait or grow."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

from aiohttp import web

from admission.review import Answer, BadReview, Review, read_review, written_answer
from admission.reviewing import LIMIT_S
from admission.webhooks import CHECK_PATH, GATE_PATH

MAX_BODY = 8 * 1024 * 1024
"""Bytes: two objects of the largest size that an API server takes, and what is around them."""
MAX_AT_ONCE = 256
"""Reviews under way; beyond that the API server does what the webhook's failurePolicy says."""
SHUTDOWN_S = 1.0
"""For reviews under way when the process ends."""
READ_S = LIMIT_S
"""For the rest of a body whose head has arrived."""

Judge = Callable[[Review], Awaitable[Answer]]


class ReviewObserver(Protocol):
    """Told of every request: for metrics and logs."""

    def reviewed(self, review: Review, answer: Answer, took_s: float) -> None:
        """A review was answered."""
        ...

    def unanswered(self, cause: str) -> None:
        """A request was none that can be answered, or one too many."""
        ...

    def broke(self, review: Review, error: Exception) -> None:
        """A fault of ours: the API server was told that there is no answer."""
        ...


@dataclass(slots=True)
class Webhooks:
    """The requests of API servers, as answers of a gate and a check."""

    gate: Judge
    check: Judge
    observer: ReviewObserver
    _under_way: int = field(default=0)

    async def serve_gate(self, request: web.Request) -> web.Response:
        """Answers on GATE_PATH."""
        return await self._serve(request, self.gate)

    async def serve_check(self, request: web.Request) -> web.Response:
        """Answers on CHECK_PATH."""
        return await self._serve(request, self.check)

    async def _serve(self, request: web.Request, judge: Judge) -> web.Response:
        if self._under_way >= MAX_AT_ONCE:
            return self._refused(503, "busy", f"more than {MAX_AT_ONCE} reviews at once")
        self._under_way += 1
        try:
            return await self._answered(request, judge)
        finally:
            self._under_way -= 1

    async def _answered(self, request: web.Request, judge: Judge) -> web.Response:
        began_s = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(READ_S):
                review = read_review(await request.read())
        except BadReview as error:
            return self._refused(400, "malformed", str(error))
        except web.HTTPRequestEntityTooLarge:
            return self._refused(413, "too large", f"the body has more than {MAX_BODY} bytes")
        except TimeoutError:
            return self._refused(408, "slow", f"the body did not arrive within {READ_S} s")
        try:
            answer = await judge(review)
        except Exception as error:  # noqa: BLE001 - a fault of ours is the observer's to tell, not the caller's
            self.observer.broke(review, error)
            return web.Response(status=500, text="gpubinder has failed to review this; its log says why\n")
        self.observer.reviewed(review, answer, asyncio.get_running_loop().time() - began_s)
        return web.Response(body=written_answer(review.uid, answer), content_type="application/json")

    def _refused(self, status: int, cause: str, text: str) -> web.Response:
        self.observer.unanswered(cause)
        return web.Response(status=status, text=f"{text}\n")


@asynccontextmanager
async def serving(
    webhooks: Webhooks, at: tuple[str | None, int], context: ssl.SSLContext, logger: logging.Logger
) -> AsyncIterator[int]:
    """Serve while the context is open; gives the port. No host stands for every address of the machine.

    Raises OSError for a port in use.
    """
    app = web.Application(client_max_size=MAX_BODY)
    app.add_routes([web.post(GATE_PATH, webhooks.serve_gate), web.post(CHECK_PATH, webhooks.serve_check)])
    runner = web.AppRunner(app, access_log=None, logger=logger, shutdown_timeout=SHUTDOWN_S)
    await runner.setup()
    try:
        site = web.TCPSite(runner, *at, ssl_context=context)
        await site.start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()
