"""Virtual time: nothing sleeps, nothing hangs, everything repeats."""

from __future__ import annotations

import asyncio
import time

import pytest

from simulator.virtual_time import START_MS, Clock, Spinning, Stuck, run_virtual

DAY_S = 86_400


def test_a_day_of_sleep_takes_no_time() -> None:
    async def main(clock: Clock) -> int:
        await asyncio.sleep(DAY_S)
        return clock()

    began_s = time.monotonic()
    assert run_virtual(main) == START_MS + DAY_S * 1000
    assert time.monotonic() - began_s < 1


def test_clock_agrees_with_the_loop_from_the_given_start_on() -> None:
    async def main(clock: Clock) -> list[int]:
        loop = asyncio.get_running_loop()
        begun_ms, begun_s = clock(), loop.time()
        await asyncio.sleep(1.25)
        return [begun_ms, clock() - begun_ms, round((loop.time() - begun_s) * 1000)]

    assert run_virtual(main, start_ms=5_000) == [5_000, 1_250, 1_250]


def test_timers_fire_in_the_order_of_their_times() -> None:
    async def main(_: Clock) -> list[int]:
        seen: list[int] = []

        async def note(wait_s: int) -> None:
            await asyncio.sleep(wait_s)
            seen.append(wait_s)

        await asyncio.gather(*(note(wait_s) for wait_s in (30, 1, 600, 2)))
        return seen

    assert run_virtual(main) == [1, 2, 30, 600]


def test_timeout_counts_virtual_seconds() -> None:
    async def main(clock: Clock) -> int:
        begun_ms = clock()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(300):
                await asyncio.Event().wait()
        return clock() - begun_ms

    assert run_virtual(main) == 300_000


def test_deadlock_names_the_waiting_task_instead_of_hanging() -> None:
    async def main(_: Clock) -> None:
        await asyncio.create_task(asyncio.Event().wait(), name="waits-for-godot")

    with pytest.raises(Stuck, match=r"nothing will ever happen: .*waits-for-godot at "):
        run_virtual(main)


def test_tasks_that_keep_each_other_busy_are_stopped() -> None:
    async def main(_: Clock) -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(Spinning, match=r"turns at 0\.000 s: .*main"):
        run_virtual(main)


def test_error_of_the_main_coroutine_comes_out() -> None:
    async def main(_: Clock) -> None:
        await asyncio.sleep(3)
        raise LookupError("as it was raised")

    with pytest.raises(LookupError, match="as it was raised"):
        run_virtual(main)
