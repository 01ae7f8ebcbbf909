"""The status of classes and budgets written late, or beside others: what has gone on is not overwritten."""

from __future__ import annotations

from typing import Any

import pytest

from binder.effects.carry_out import carry_out
from binder.effects.status_writer import status_difference
from kube.port import MERGE_STATUS, Json, ObjectKey
from model.claims import BudgetUse, GPUBudgetStatus, GPUClassStatus
from model.decisions import ObjectRef, WriteBudgetStatus, WriteClassStatus
from model.meta import Condition
from model.resources import GPU_BUDGETS, GPU_CLASSES
from simulator.apiserver.patches import merge_patch
from simulator.apiserver.server import ApiServer
from simulator.cluster import api_server
from simulator.virtual_time import Clock, run_virtual

READY = Condition(type="Ready", status="True", reason="HasNodes", message="m", observed_generation=1)
CLASS = ObjectKey(GPU_CLASSES, "h100")
BUDGET = ObjectKey(GPU_BUDGETS, "b")
STATUS = GPUClassStatus(nodes=2, free=3, conditions=(READY,))


async def a_class(server: ApiServer) -> ObjectRef:
    body = {"metadata": {"name": "h100"}, "spec": {"resourceName": "nvidia.com/H"}}
    made = await server.create(GPU_CLASSES, body)
    return ObjectRef("", "h100", made["metadata"]["uid"])


async def write(server: ApiServer, ref: ObjectRef, generation: int = 1) -> str:
    (outcome,) = await carry_out(server, [WriteClassStatus("class h100", ref, STATUS, generation)], "one")
    return outcome.error


def test_status_is_written_and_a_second_time_nothing() -> None:
    async def main(clock: Clock) -> None:
        server = await api_server(clock)
        ref = await a_class(server)
        assert await write(server, ref) == ""
        first = await server.get(CLASS)
        assert (first["status"]["nodes"], first["status"]["conditions"][0]["reason"]) == (2, "HasNodes")
        assert await write(server, ref) == ""
        assert (await server.get(CLASS))["metadata"]["resourceVersion"] == first["metadata"][
            "resourceVersion"
        ]

    run_virtual(main)


@pytest.mark.parametrize("change", [{"spec": {"default": True}}, {"metadata": {"labels": {"a": "b"}}}])
def test_spec_that_has_changed_since_the_pass_is_a_conflict_and_a_label_is_none(change: Json) -> None:
    """The log does not tell of labels: the precondition is the spec that the pass has seen."""

    async def main(clock: Clock) -> None:
        server = await api_server(clock)
        ref = await a_class(server)
        await server.patch(CLASS, change)
        error = await write(server, ref)
        assert ("the pass saw another" in error) == ("spec" in change)
        assert ("status" in await server.get(CLASS)) == (not error)

    run_virtual(main)


class Beside:
    """A client beside which somebody changes the object as soon as it has been read."""

    def __init__(self, server: ApiServer, patch: Json) -> None:
        self._server, self._patch = server, patch
        self.patch = server.patch

    async def get(self, key: ObjectKey) -> Json:
        found = await self._server.get(key)
        await self._server.patch(key, self._patch)
        return found


def test_change_between_read_and_write_is_a_conflict() -> None:
    async def main(clock: Clock) -> None:
        server = await api_server(clock)
        ref = await a_class(server)
        client: Any = Beside(server, {"spec": {"description": "new"}})
        (outcome,) = await carry_out(client, [WriteClassStatus("class h100", ref, STATUS, 1)], "one")
        assert "Conflict" in outcome.error or "has been modified" in outcome.error, outcome.error
        assert "status" not in await server.get(CLASS)

    run_virtual(main)


def test_another_of_that_name_one_that_goes_and_one_that_is_gone_get_none() -> None:
    async def main(clock: Clock) -> None:
        server = await api_server(clock)
        ref = await a_class(server)
        assert await write(server, ObjectRef("", "h100", "another")) == ""
        assert "status" not in await server.get(CLASS)
        await server.patch(CLASS, {"metadata": {"finalizers": ["example.org/stay"]}})
        await server.delete(CLASS)
        assert await write(server, ref, generation=0) == ""
        assert "status" not in await server.get(CLASS)
        assert await write(server, ObjectRef("", "gone", "u")) == ""

    run_virtual(main)


def test_used_amounts_that_are_no_more_leave_a_budgets_status() -> None:
    """A merge patch keeps what it does not name."""

    async def main(clock: Clock) -> None:
        server = await api_server(clock)
        made = await server.create(GPU_BUDGETS, {"metadata": {"name": "b"}, "spec": {}})
        ref, seen = ObjectRef("", "b", made["metadata"]["uid"]), []
        for used in ({"x": 1, "y": 2}, {"y": 3}, {}):
            status = GPUBudgetStatus(used=BudgetUse(classes=used))
            assert (await carry_out(server, [WriteBudgetStatus("budget b", ref, status, 1)], "one"))[
                0
            ].error == ""
            seen.append((await server.get(BUDGET))["status"]["used"]["classes"])
        assert seen == [{"x": 1, "y": 2}, {"y": 3}, {}]

    run_virtual(main)


def test_conditions_of_others_stay() -> None:
    async def main(clock: Clock) -> None:
        server = await api_server(clock)
        ref = await a_class(server)
        theirs = {"type": "Audited", "status": "True"}
        old = {"type": "Ready", "status": "False"}
        await server.patch(CLASS, {"status": {"conditions": [old, theirs]}}, MERGE_STATUS)
        assert await write(server, ref) == ""
        conditions = (await server.get(CLASS))["status"]["conditions"]
        assert [(one["type"], one["status"]) for one in conditions] == [
            ("Audited", "True"),
            ("Ready", "True"),
        ]

    run_virtual(main)


@pytest.mark.parametrize(
    "live",
    [{}, {"nodes": 1}, {"nodes": 2, "free": 3}, {"conditions": None}, {"conditions": [{"type": "Ready"}]}],
)
def test_patch_makes_of_any_status_the_one_that_is_wanted(live: Json) -> None:
    wanted = STATUS.model_dump(by_alias=True)
    patched = merge_patch(live, status_difference(live, STATUS))
    assert patched | {"conditions": list(patched["conditions"])} == wanted | {
        "conditions": list(wanted["conditions"])
    }
    assert status_difference(patched, STATUS) == {}
