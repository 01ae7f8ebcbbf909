"""Admission's replicas in front of the simulated API server, in virtual time (30-api, R1, R6)."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from admission.reviewing import Reviewer, Rules
from eventlog.entries import Entry, EntryType
from kube.errors import Forbidden
from kube.port import Json
from model.names import GATE
from model.resources import GPU_CLAIMS, PODS
from projections.folds.ledger import NAME, ClassEntry
from simulator.apiserver.admission import Request
from simulator.webhooks import webhook_of
from tests.admission.ledgers import CLASS, fields_of
from tests.life.system import Life, live

ONE_FREE = replace(CLASS, nodes=1, allocatable=1, bound=0, raw=0, free=1, largest=1)


def order(name: str, units: int = 1) -> Json:
    spec = {"className": "h100", "units": units}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


@contextmanager
def replicas(life: Life, count: int = 2) -> Iterator[None]:
    """As many replicas, asked in turn, instead of the policy."""
    reviewers = [Reviewer(life.log, life.server, life.clock, Rules()) for _ in range(count)]
    turn = itertools.cycle([webhook_of(reviewer) for reviewer in reviewers])

    async def ask(request: Request) -> Json | None:
        return await next(turn)(request)

    life.server.mutators.clear()
    life.server.webhooks.append(ask)
    yield
    life.server.webhooks.clear()


async def know(life: Life, entry: ClassEntry = ONE_FREE) -> None:
    """What the binder has counted up to now."""
    beat = Entry(EntryType.HEARTBEAT, watcher="one", ts_ms=life.clock())
    await life.log.append_once([beat], await life.log.identity())
    position = (await life.log.info()).last_id
    await life.log.commit(0, b"{}", {NAME: fields_of({"h100": entry}, position=position)})


def test_orders_that_race_for_the_last_unit_at_two_replicas_end_with_one_placed_and_one_waiting() -> None:
    """R1: both are admitted, since neither replica knows of the other's; the binder places one.

    From then on its own ledger tells them.
    """

    async def story(life: Life) -> None:
        await life.add_node("gpu-1", 1)
        await know(life)
        with replicas(life):
            await asyncio.gather(*(life.server.create(GPU_CLAIMS, order(name)) for name in ("a", "b")))
            async with life.process():
                await life.until(lambda: bool(life.node_of("a") or life.node_of("b")))
                await asyncio.sleep(5)
                with pytest.raises(Forbidden, match="class h100 has 0 of 1 free now, 1 wanted"):
                    await life.server.create(GPU_CLAIMS, order("late"))
        (held,) = [name for name in ("a", "b") if life.node_of(name)]
        (waits,) = {"a", "b"} - {held}
        (condition,) = life.claims()[waits]["status"]["conditions"]
        assert (condition["type"], condition["status"], condition["reason"]) == ("Placed", "False", "NoRoom")

    live(story)


def test_order_that_does_not_fit_is_refused_before_it_is_made() -> None:
    async def story(life: Life) -> None:
        await know(life)
        with replicas(life):
            with pytest.raises(Forbidden, match="selects offers more than 1, 2 wanted") as refused:
                await life.server.create(GPU_CLAIMS, order("a", 2))
            assert refused.value.reason == "TooLarge"
            assert life.claims() == {}

    live(story)


def test_vm_lives_behind_the_webhooks_as_behind_the_policy() -> None:
    """R6: its launcher is gated, its template claim passes also when the ledger sees nothing free."""

    async def story(life: Life) -> None:
        await life.add_node("gpu-1", 1)
        await know(life, replace(ONE_FREE, free=0, largest=0))
        with replicas(life):
            await life.start_vm("vm")
            await life.until(lambda: bool(list(life.server.store.scan(PODS))))
            (pod,) = life.server.store.scan(PODS)
            assert pod["spec"]["schedulingGates"] == [{"name": GATE}]
            async with life.process():
                await life.until(lambda: life.vm_status("vm") == "Running")
        assert life.node_of("vm") == "gpu-1"

    live(story)
