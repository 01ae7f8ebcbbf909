"""A set that fails again and again backs off; nobody waits for it, nor for a server that is away."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from binder.effects.carry_out import MAX_MISSES, Outcome, carry_out
from binder.effects.leased import LeasedClient, LeaseRunsOut
from binder.effects.patience import COMPLAIN_AFTER, RETRY_FIRST_S, RETRY_LIMIT_S, Patience
from kube.errors import ApiError, Conflict, Forbidden, Invalid, ServerFault, TooManyRequests, Unreachable
from kube.port import MERGE, Json, ObjectKey, PatchOptions
from model.decisions import CreateClaim, Decision, ObjectRef, PinLauncher, WarnPod, WarnVmi
from model.meta import OwnerReference
from model.reasons import Reason
from model.resources import GPU_CLAIMS, Resource
from simulator.apiserver.server import ApiServer
from simulator.cluster import api_server
from simulator.virtual_time import Clock, run_virtual

AT = "2027-01-15T08:00:00Z"


def create(name: str) -> CreateClaim:
    owner = OwnerReference(
        api_version="kubevirt.io/v1",
        kind="VirtualMachineInstance",
        name=name,
        uid=f"u-{name}",
        controller=True,
    )
    return CreateClaim(f"default/{name}", ObjectRef("default", f"{name}-h100"), "h100", 1, owner)


def warn(name: str) -> WarnVmi:
    return WarnVmi(f"default/{name}", ObjectRef("default", name, f"u-{name}"), Reason.NO_ROOM, "full", AT)


def failed(decision: Decision, **changes: Any) -> Outcome:
    return Outcome(decision, "no", **changes)


class Refusing:
    """A client whose creates fail with `error`, all or those of names that contain `only`."""

    def __init__(self, server: ApiServer, error: ApiError, only: str = "") -> None:
        self._server = server
        self._error = error
        self._only = only
        self.tried: list[str] = []
        self.get, self.list_page, self.watch = server.get, server.list_page, server.watch
        self.replace, self.delete = server.replace, server.delete

    async def create(self, resource: Resource, body: Json) -> Json:
        self.tried.append(body["metadata"]["name"])
        if resource == GPU_CLAIMS and self._only in body["metadata"]["name"]:
            raise self._error
        return await self._server.create(resource, body)

    async def patch(
        self,
        key: ObjectKey,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        options: PatchOptions = MERGE,
    ) -> Json:
        return await self._server.patch(key, patch, options)


def round_of(decisions: list[Decision], error: ApiError, only: str = "") -> tuple[list[Outcome], list[str]]:
    """One round against a server that refuses creates, and the names of what was tried."""

    async def main(clock: Clock) -> tuple[list[Outcome], list[str]]:
        client = Refusing(await api_server(clock), error, only)
        return await carry_out(client, decisions, "one"), client.tried

    return run_virtual(main)


def test_waits_of_a_failing_set_double_up_to_the_limit_and_end_with_success() -> None:
    patience, now_s, waits = Patience(), 100.0, []
    for _ in range(10):
        patience.note([failed(create("a"))], now_s, now_s)
        due_s = patience.due_at_s()
        assert due_s is not None
        waits.append(round(due_s - now_s, 3))
        now_s = due_s
    assert waits[:4] == [RETRY_FIRST_S, 2 * RETRY_FIRST_S, 4 * RETRY_FIRST_S, 8 * RETRY_FIRST_S]
    assert waits[-1] == RETRY_LIMIT_S
    patience.note([Outcome(create("a"))], now_s, now_s)
    assert patience.due_at_s() is None


def test_failing_set_waits_and_the_others_go_on() -> None:
    patience = Patience()
    patience.note([failed(create("a"))], 0.0, 0.0)
    both = [create("a"), create("b")]
    assert patience.may_try(both, RETRY_FIRST_S / 2) == [create("b")]
    assert patience.may_try(both, RETRY_FIRST_S) == both


def test_set_that_became_due_while_a_round_ran_is_not_forgotten() -> None:
    """It was not tried in that round."""
    patience = Patience()
    patience.note([failed(create("a"))], 0.0, 0.0)
    patience.note([Outcome(create("b"))], RETRY_FIRST_S / 2, 60.0)
    assert patience.due_at_s() == RETRY_FIRST_S


def test_set_that_has_gone_is_forgotten_when_it_is_due() -> None:
    patience = Patience()
    patience.note([failed(create("a"))], 0.0, 0.0)
    patience.note([], RETRY_FIRST_S, RETRY_FIRST_S)
    assert patience.failing == {}


def test_server_that_served_nobody_is_left_alone_by_all() -> None:
    patience = Patience()
    patience.note([failed(create("a"), is_tried=False)], 0.0, 0.0)
    assert patience.may_try([create("b")], RETRY_FIRST_S / 2) == []
    assert patience.may_try([create("b")], RETRY_FIRST_S) == [create("b")]


def test_server_that_asks_for_more_time_gets_it() -> None:
    patience = Patience()
    patience.note([failed(create("a"), retry_after_s=7.0)], 0.0, 0.0)
    assert patience.due_at_s() == 7.0


@pytest.mark.parametrize(
    "error",
    [
        Unreachable("x", "refused"),
        ServerFault("x", "etcd", 500),
        TooManyRequests("x", "busy", 429),
    ],
)
def test_round_ends_when_the_server_serves_no_writes(error: ApiError) -> None:
    """A thousand sets do not wait for it one after the other; those not begun are not blamed."""
    outcomes, tried = round_of([create(f"vm{number}") for number in range(100)], error)
    assert MAX_MISSES <= len(tried) <= MAX_MISSES + 16
    assert [one.is_tried for one in outcomes].count(False) == 100 - len(tried)
    assert not any(one.is_refused for one in outcomes)


@pytest.mark.parametrize(
    ("error", "is_refused"),
    [
        (Conflict("x", "changed", 409), False),
        (Forbidden("x", "exceeded quota", 403), True),
        (Invalid("x", "bad", 422), True),
    ],
)
def test_what_is_wrong_with_one_set_does_not_end_the_round(error: ApiError, is_refused: bool) -> None:
    outcomes, tried = round_of([create(f"vm{number}") for number in range(40)], error, only="vm1")
    assert len(tried) == 40
    assert {one.decision.set for one in outcomes if one.error} == {
        f"default/vm{number}" for number in (1, *range(10, 20))
    }
    assert all(one.is_refused == (is_refused and bool(one.error)) for one in outcomes)


def test_people_are_told_also_where_something_could_not_be_done() -> None:
    """R12: the reason stands in an event, whatever became of the claim."""
    outcomes, tried = round_of([create("a"), warn("a")], Forbidden("x", "exceeded quota", 403))
    assert [bool(one.error) for one in outcomes] == [True, False]
    assert len(tried) == 2


def test_no_write_begins_when_the_lease_is_ours_for_less_than_it_may_take() -> None:
    """The time rule, at each single write."""

    async def main(clock: Clock) -> None:
        left_s = [20.0]
        client = LeasedClient(await api_server(clock), lambda seconds: left_s[0] > seconds)
        assert [one.error for one in await carry_out(client, [create("a")], "one")] == [""]
        left_s[0] = 5.0
        (late,) = await carry_out(client, [create("b")], "one")
        assert not late.is_tried
        key = ObjectKey(GPU_CLAIMS, "a-h100", "default")
        for write in (
            client.create(GPU_CLAIMS, {}),
            client.patch(key, {}),
            client.replace(key, {}),
            client.delete(key),
        ):
            with pytest.raises(LeaseRunsOut):
                await write
        assert len((await client.list_page(GPU_CLAIMS)).items) == 1

    run_virtual(main)


def test_tenant_is_told_once_of_what_the_server_refuses_again_and_again() -> None:
    """A quota or a policy of others stands in the way: nobody sees that in our logs.

    Of the claim the next pass speaks, which is given the server's words.
    """
    patience, now_s, told, heard = Patience(), 0.0, [], []
    pin = PinLauncher("default/b", ObjectRef("default", "virt-launcher-b", "p"), "n", "digest")
    for _ in range(COMPLAIN_AFTER + 3):
        outcomes = [failed(create("a"), is_refused=True), failed(pin, is_refused=True), failed(create("c"))]
        patience.note(outcomes, now_s, now_s)
        told += patience.complaints(outcomes, AT)
        heard.append(patience.refused_claims(outcomes))
        now_s += RETRY_LIMIT_S
    (pod,) = told
    assert isinstance(pod, WarnPod)
    assert (pod.pod.name, pod.reason) == ("virt-launcher-b", Reason.WRITE_REFUSED)
    assert pod.message == "it is tried again and again: no"
    assert heard == [{}] * (COMPLAIN_AFTER - 1) + [{"u-a": "no"}] * 4


def test_sets_side_by_side_are_bounded() -> None:
    """Enough to hide latency, few enough to leave the server room."""

    async def main(clock: Clock) -> int:
        server, now, most = await api_server(clock), 0, 0
        client = Refusing(server, Conflict("x", "", 409), only="nobody")
        made = client.create

        async def slow(resource: Resource, body: Json) -> Json:
            nonlocal now, most
            now += 1
            most = max(most, now)
            await asyncio.sleep(0.1)
            now -= 1
            return await made(resource, body)

        client.create = slow  # type: ignore[method-assign]
        await carry_out(client, [create(f"vm{number}") for number in range(50)], "one")
        return most

    assert run_virtual(main) == 16
