"""What the simulator adds to the contract of an API server: repeatable, bounded, with hooks."""

from __future__ import annotations

import re
import uuid
from contextlib import aclosing

import pytest

from kube.errors import Forbidden, Gone, ServerFault
from kube.port import ALL, MERGE_STATUS, DeleteOptions, Json, Selection, WatchEvent, WatchType
from model import resources as r
from model.instants import rfc3339
from simulator.apiserver.admission import Operation, Request
from simulator.apiserver.server import ApiServer
from simulator.apiserver.store import Store
from simulator.virtual_time import Clock, run_virtual
from tests.simulator.apiserver.cluster_objects import START_MS, a_pod, a_server, key


async def a_history(server: ApiServer) -> list[WatchEvent]:
    for name in ("a", "b"):
        await server.create(r.PODS, a_pod(name, metadata={"name": "", "generateName": f"{name}-"}))
    await server.list_page(r.PODS, ALL, limit=1)
    await server.create(r.PODS, a_pod("c"))
    await server.delete(key(r.PODS, "c"))
    stream = server.watch(r.PODS, ALL, resource_version="1", timeout_s=0)
    return [event async for event in stream]


async def test_same_seed_and_clock_give_the_same_objects_and_another_seed_others() -> None:
    first, second, other = [await a_history(a_server(seed)) for seed in (7, 7, 8)]
    assert first == second
    assert first != other


async def test_reading_changes_nothing_that_comes_later() -> None:
    quiet, read = a_server(), a_server()
    for server in (quiet, read):
        await server.create(r.PODS, a_pod("a"))
        await server.create(r.PODS, a_pod("b"))
    page = await read.list_page(r.PODS, limit=1)
    await read.list_page(r.PODS, limit=1, continue_token=page.continue_token)
    assert await quiet.create(r.PODS, a_pod("c")) == await read.create(r.PODS, a_pod("c"))


async def test_new_object_has_a_uid_a_time_and_a_name_like_a_real_servers() -> None:
    pod = a_pod(metadata={"name": "", "generateName": "virt-launcher-" + "x" * 80})
    meta = (await a_server().create(r.PODS, pod))["metadata"]
    assert uuid.UUID(meta["uid"]).version == 4
    assert meta["creationTimestamp"] == rfc3339(START_MS)
    assert re.fullmatch("virt-launcher-x{44}[bcdfghjklmnpqrstvwxz2456789]{5}", meta["name"])


async def test_stored_objects_cannot_be_changed_from_outside() -> None:
    server, body = a_server(), a_pod(metadata={"labels": {"a": "1"}})
    created = await server.create(r.PODS, body)
    listed = (await server.list_page(r.PODS)).items[0]
    for one in (body, created, listed, await server.get(key(r.PODS, "pod"))):
        one["metadata"]["labels"]["a"] = "2"
    assert (await server.get(key(r.PODS, "pod")))["metadata"]["labels"] == {"a": "1"}


async def test_page_can_be_asked_for_again() -> None:
    server = a_server()
    for name in "abc":
        await server.create(r.PODS, a_pod(name))
    token = (await server.list_page(r.PODS, limit=1)).continue_token
    pages = [await server.list_page(r.PODS, limit=1, continue_token=token) for _ in range(2)]
    assert [page.items[0]["metadata"]["name"] for page in pages] == ["b", "b"]


async def test_history_is_bounded_and_a_watch_from_before_it_is_gone() -> None:
    server = a_server(store=Store(history=3))
    first = await server.create(r.PODS, a_pod())
    for turn in range(4):
        await server.patch(key(r.PODS, "pod"), {"metadata": {"labels": {"turn": str(turn)}}})
    assert len(server.store.shelf(r.PODS).history) == 3
    version = first["metadata"]["resourceVersion"]
    with pytest.raises(Gone, match="too old resource version"):
        await anext(server.watch(r.PODS, resource_version=version))


async def test_watcher_that_falls_behind_the_history_is_gone_in_its_stream() -> None:
    server = a_server(store=Store(history=3))
    version = (await server.create(r.PODS, a_pod()))["metadata"]["resourceVersion"]
    await server.patch(key(r.PODS, "pod"), {"metadata": {"labels": {"turn": "first"}}})
    async with aclosing(server.watch(r.PODS, resource_version=version)) as stream:
        assert (await anext(stream)).type is WatchType.MODIFIED
        for turn in range(9):
            await server.patch(key(r.PODS, "pod"), {"metadata": {"labels": {"turn": str(turn)}}})
        with pytest.raises(Gone):
            await anext(stream)


@pytest.mark.parametrize("version", ["abc", "-1", "1.5", "²"])
async def test_version_that_is_no_number_is_the_servers_fault_as_on_a_real_one(version: str) -> None:
    with pytest.raises(ServerFault):
        await anext(a_server().watch(r.PODS, resource_version=version))


def test_watch_from_zero_streams_what_there_is_without_a_mark_and_bookmarks_each_minute() -> None:
    async def main(clock: Clock) -> list[tuple[str, str]]:
        server = ApiServer(clock)
        await server.create(r.PODS, a_pod())
        await server.patch(key(r.PODS, "pod"), {"metadata": {"labels": {"a": "1"}}})
        stream = server.watch(r.PODS, Selection("default"), resource_version="0", timeout_s=90)
        return [(event.type, event.object["metadata"].get("name", "")) async for event in stream]

    assert run_virtual(main) == [("ADDED", "pod"), ("BOOKMARK", ""), ("BOOKMARK", "")]


async def test_validators_see_every_write_and_can_refuse_it() -> None:
    server, seen = a_server(), []

    def watch_out(request: Request) -> None:
        seen.append((request.operation, request.subresource, request.old is None, request.new is None))
        if request.new and request.new["metadata"].get("labels"):
            raise Forbidden(str(request.key), "no labels here", 403, "Forbidden")

    server.validators.append(watch_out)
    await server.create(r.PODS, a_pod())
    await server.patch(key(r.PODS, "pod"), {"status": {"phase": "Running"}}, MERGE_STATUS)
    with pytest.raises(Forbidden, match="no labels here"):
        await server.patch(key(r.PODS, "pod"), {"metadata": {"labels": {"a": "1"}}})
    await server.delete(key(r.PODS, "pod"))
    assert seen == [
        (Operation.CREATE, "", True, False),
        (Operation.UPDATE, "status", False, False),
        (Operation.UPDATE, "", False, False),
        (Operation.DELETE, "", False, True),
    ]


async def test_mutators_see_defaults_and_what_they_return_is_checked() -> None:
    server = a_server()

    def gate(resource: r.Resource, obj: Json) -> Json | None:
        if resource != r.PODS:
            return None
        assert obj["spec"]["schedulerName"] == "default-scheduler"
        return obj | {"spec": obj["spec"] | {"schedulingGates": [{"name": "a/b"}]}}

    server.mutators.append(gate)
    created = await server.create(r.PODS, a_pod())
    assert created["status"]["conditions"][0]["reason"] == "SchedulingGated"
    with pytest.raises(Exception, match=r"spec\.nodeName: Forbidden"):
        await server.create(r.PODS, a_pod("bound", nodeName="n"))


@pytest.mark.parametrize(("asked_s", "kept_s"), [(70, 7), (7, 7), (3, 3), (-1, 1)])
async def test_second_deletion_only_shortens_and_counts_from_the_first(asked_s: int, kept_s: int) -> None:
    server = a_server()
    await server.create(r.PODS, a_pod(nodeName="n"))
    for grace_s in (7, asked_s):
        await server.delete(key(r.PODS, "pod"), DeleteOptions(grace_s=grace_s))
    meta = (await server.get(key(r.PODS, "pod")))["metadata"]
    assert meta["deletionGracePeriodSeconds"] == kept_s
    assert meta["deletionTimestamp"] == rfc3339(START_MS + kept_s * 1000)
    assert meta["generation"] == 2
