"""The binder process's life: wait for the lease, serve a term, begin again."""

from __future__ import annotations

import asyncio
from typing import Protocol

from binder.consumer import PassObserver, Post, Term
from eventlog.errors import LogError
from kube.errors import ApiError

PAUSE_S = 1.0
PAUSE_LIMIT_S = 15.0
"""Between the end of a term by a fault and the next try: doubling while terms end within `SHORT_S`."""
SHORT_S = 30.0


class TermObserver(PassObserver, Protocol):
    """Told of passes, and of the terms that they belong to."""

    def term_began(self, epoch: int) -> None:
        """We are the active binder."""
        ...

    def term_ended(self, why: str) -> None:
        """We are not any more."""
        ...


async def bind(post: Post, observer: TermObserver) -> None:
    """Serve term after term until cancelled; the lease is given back at the end."""
    pause_s = PAUSE_S
    try:
        while True:
            epoch = await post.leader.acquire()
            observer.term_began(epoch)
            began_s = asyncio.get_running_loop().time()
            why = await _serve_term(post)
            observer.term_ended(why)
            is_short = asyncio.get_running_loop().time() - began_s < SHORT_S
            pause_s = min(PAUSE_LIMIT_S, pause_s * 2) if is_short else PAUSE_S
            await asyncio.sleep(pause_s)
    finally:
        await asyncio.shield(post.leader.release())


async def _serve_term(post: Post) -> str:
    """One term; the fold begins anew as often as a store was away, while the lease is ours."""
    keeping = asyncio.create_task(post.leader.keep())
    serving = asyncio.create_task(Term(post).serve())
    try:
        await asyncio.wait({keeping, serving}, return_when=asyncio.FIRST_COMPLETED)
        if not serving.done():
            return "the lease was lost"
        serving.result()
    except (LogError, ApiError) as error:
        return str(error)
    else:
        return "the lease runs out"
    finally:
        for task in (keeping, serving):
            task.cancel()
        await asyncio.gather(keeping, serving, return_exceptions=True)
