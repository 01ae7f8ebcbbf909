"""Which of a log's keys hold what another program has written: a server only says that one does.

With the rights that the log needs anyway: TYPE and SCAN are not among them.
"""

from __future__ import annotations

from typing import Any

from redis import exceptions as errors
from redis.asyncio import Redis

from eventlog.keys import Keys
from model.kinds import BY_KIND


async def foreign_keys(redis: Redis, keys: Keys) -> list[str]:
    """Their names. Raises what the library raises when the server cannot be asked."""
    probes: list[tuple[str, ...]] = [("GET", name) for name in (keys.identity, keys.cluster_uid, keys.epoch)]
    probes += [("XLEN", name) for name in (keys.events, keys.passes, keys.quarantine)]
    hashes = [keys.snapshot, keys.watchers, *map(keys.seen, ["", *sorted(BY_KIND)])]
    probes += [("HGET", name, "-") for name in hashes]
    probes += [("ZRANGEBYSCORE", keys.tombs(kind), "1", "0") for kind in ["", *sorted(BY_KIND)]]
    async with redis.pipeline(transaction=False) as pipe:
        for probe in probes:
            pipe.execute_command(*probe)
        answers: list[Any] = await pipe.execute(raise_on_error=False)
    return [probe[1] for probe, answer in zip(probes, answers, strict=True) if _is_foreign(answer)]


def _is_foreign(answer: object) -> bool:
    return isinstance(answer, errors.ResponseError) and "WRONGTYPE" in str(answer)
