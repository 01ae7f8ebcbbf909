"""Running the Lua scripts that stand beside this file."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from redis import exceptions as errors
from redis.asyncio import Redis

from eventlog.adapters.redis_answers import LogMoved
from eventlog.adapters.redis_connection import Link

Arguments = list[str | bytes | int]
Call = tuple[list[str], Arguments]
"""Keys and arguments."""


class Script:
    """One script on one server, sent there once and called by its digest."""

    def __init__(self, link: Link, name: str) -> None:
        self._link = link
        self._text = files("eventlog.adapters").joinpath(name).read_text(encoding="utf-8")
        self._digest = hashlib.sha1(self._text.encode(), usedforsecurity=False).hexdigest()

    async def run(self, keys: list[str], arguments: Arguments) -> Any:
        """The answer to one call. Raises LogError."""
        (answer,) = await self.run_all([(keys, arguments)])
        return answer

    async def run_all(self, calls: Sequence[Call]) -> list[Any]:
        """One answer per call, in one round trip; a server that lost the script is given it again.

        Raises LogError: the first error of the calls, each of which was run.
        """
        try:
            return await self._run_all(calls)
        except LogMoved:  # which ran nothing
            return await self._run_all(calls)

    async def _run_all(self, calls: Sequence[Call]) -> list[Any]:
        async with self._link.asked() as redis:
            try:
                return await self._send(redis, calls)
            except errors.NoScriptError:
                await redis.script_load(self._text)
                return await self._send(redis, calls)

    async def _send(self, redis: Redis, calls: Sequence[Call]) -> list[Any]:
        async with redis.pipeline(transaction=False) as pipe:
            for keys, arguments in calls:
                pipe.evalsha(self._digest, len(keys), *keys, *arguments)
            return await pipe.execute()
