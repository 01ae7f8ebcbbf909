"""Contract: watching: nothing is lost or invented after a list; versions, bookmarks, selectors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from kube.errors import Gone
from kube.port import Selection, WatchEvent, WatchType, ends_initial_list
from model.resources import PODS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES
from tests.contract.builders import a_pod, an_object
from tests.contract.environment import Environment, summary

VMS = VIRTUAL_MACHINES
ATTEMPTS = 8


async def test_watch_reports_each_change_after_the_listed_version_once(env: Environment) -> None:
    await env.create(VMS, an_object(VMS, "before"))
    since = await env.version(VMS)
    await env.create(VMS, an_object(VMS, "vm", spec={"a": 1}))
    await env.client.patch(env.key(VMS, "vm"), {"spec": {"a": 2}})
    await env.client.patch(env.key(VMS, "vm"), {"spec": {"a": 2}})
    await env.client.delete(env.key(VMS, "vm"))
    await env.client.delete(env.key(VMS, "before"))

    events = await env.events(VMS, since, 4)
    assert summary(events) == [("ADDED", "vm"), ("MODIFIED", "vm"), ("DELETED", "vm"), ("DELETED", "before")]
    assert [event.object.get("spec") for event in events[:3]] == [{"a": 1}, {"a": 2}, {"a": 2}]


async def test_watch_without_a_version_streams_the_list_marks_its_end_and_goes_on(env: Environment) -> None:
    await env.create(VMS, an_object(VMS, "a"))
    await env.create(VMS, an_object(VMS, "b"))
    stream = env.client.watch(VMS, env.here, resource_version="", timeout_s=10)
    async with aclosing(stream) as events:
        listed = [await anext(events), await anext(events), await anext(events)]
        assert sorted(summary(listed[:2])) == [("ADDED", "a"), ("ADDED", "b")]
        assert [ends_initial_list(event) for event in listed] == [False, False, True]
        await env.create(VMS, an_object(VMS, "c"))
        later = await anext(events)
        assert summary([later]) == [("ADDED", "c")]
        versions = [int(event.object["metadata"]["resourceVersion"]) for event in (listed[2], later)]
        assert versions[0] < versions[1]


async def test_watch_goes_on_with_changes_that_come_later(env: Environment) -> None:
    since = await env.version(PODS)
    watching = asyncio.create_task(env.events(PODS, since, 2))
    await asyncio.sleep(0)
    await env.create(PODS, a_pod("one"))
    await env.create(PODS, a_pod("two"))
    assert summary(await watching) == [("ADDED", "one"), ("ADDED", "two")]


async def test_versions_of_events_rise_and_are_those_of_the_objects(env: Environment) -> None:
    since = await env.version(PODS)
    created = await env.create(PODS, a_pod())
    patched = await env.client.patch(env.key(PODS, "pod"), {"metadata": {"labels": {"a": "1"}}})
    await env.client.delete(env.key(PODS, "pod"))
    events = await env.events(PODS, since, 3)
    versions = [int(event.object["metadata"]["resourceVersion"]) for event in events]
    assert int(since) < versions[0]
    assert versions == sorted(set(versions))
    assert events[0].object == created
    assert events[1].object == patched


async def test_deleted_object_is_its_last_state_with_a_version_of_its_own(env: Environment) -> None:
    since = await env.version(PODS)
    created = await env.create(PODS, a_pod(metadata={"labels": {"a": "1"}}))
    await env.client.delete(env.key(PODS, "pod"))
    gone = (await env.events(PODS, since, 2))[1].object
    assert gone["metadata"]["uid"] == created["metadata"]["uid"]
    assert gone["metadata"]["labels"] == {"a": "1"}
    assert gone["spec"] == created["spec"]
    assert int(gone["metadata"]["resourceVersion"]) > int(created["metadata"]["resourceVersion"])


async def test_watched_objects_name_their_kind(env: Environment) -> None:
    for resource, body in (
        (PODS, a_pod("x")),
        (VIRTUAL_MACHINE_INSTANCES, an_object(VIRTUAL_MACHINE_INSTANCES, "x")),
    ):
        since = await env.version(resource)
        await env.create(resource, body)
        event = (await env.events(resource, since, 1))[0]
        assert (event.object["apiVersion"], event.object["kind"]) == (resource.api_version, resource.kind)


async def test_watch_from_a_version_that_is_too_old_is_gone(env: Environment) -> None:
    for name in ("one", "two"):
        await env.create(VMS, an_object(VMS, name))
    page = await env.client.list_page(VMS, env.here, limit=1)
    env.expire_token(page.continue_token)
    with pytest.raises(Gone):
        await env.events(VMS, "1", 1, env.here)


async def test_label_selector_turns_matching_into_added_and_deleted(env: Environment) -> None:
    key = env.key(VMS, "vm")
    since = await env.version(VMS)
    await env.create(VMS, an_object(VMS, "vm", metadata={"labels": {"app": "other"}}))
    await env.client.patch(key, {"metadata": {"labels": {"app": "a"}}})
    await env.client.patch(key, {"spec": {"x": 1}})
    await env.client.patch(key, {"metadata": {"labels": {"app": "other"}}})
    await env.client.delete(key)
    await env.create(VMS, an_object(VMS, "last", metadata={"labels": {"app": "a"}}))
    chosen = Selection(env.namespace, label_selector="app=a")
    events = await env.events(VMS, since, 4, chosen)
    assert summary(events) == [("ADDED", "vm"), ("MODIFIED", "vm"), ("DELETED", "vm"), ("ADDED", "last")]


async def test_field_selector_follows_a_pod_onto_its_node(env: Environment) -> None:
    since = await env.version(PODS)
    for name in ("one", "two"):
        await env.create(PODS, a_pod(name))
    await env.client.bind(env.key(PODS, "two"), "some-node")
    events = await env.events(
        PODS, since, 1, Selection(env.namespace, field_selector="spec.nodeName=some-node")
    )
    assert summary(events) == [("ADDED", "two")]


async def test_watch_covers_one_namespace_or_all(env: Environment) -> None:
    since = await env.version(VMS)
    await env.client.create(VMS, an_object(VMS, env.namespace, metadata={"namespace": "default"}))
    await env.create(VMS, an_object(VMS, "here"))
    assert summary(await env.events(VMS, since, 1, env.here)) == [("ADDED", "here")]
    everywhere = await env.events(VMS, since, 2, Selection())
    assert summary(everywhere) == [("ADDED", env.namespace), ("ADDED", "here")]


async def test_bookmark_tells_how_far_the_server_has_come_without_a_change_in_view(env: Environment) -> None:
    since = await env.version(PODS)
    await env.create(PODS, a_pod("seen"))
    # A watch that ends soon gets a bookmark two seconds before its end, if the server finds the time.
    for attempt in range(ATTEMPTS):
        stream = env.client.watch(PODS, env.here, resource_version=since, timeout_s=env.short_watch_s)
        elsewhere = a_pod(f"elsewhere-{env.namespace}-{attempt}", metadata={"namespace": "default"})
        watching = asyncio.create_task(collect(env.passing_time(stream)))
        await env.step()
        await env.client.create(PODS, elsewhere)
        events = await watching
        assert summary(events[:1]) == [("ADDED", "seen")]
        if events[-1].type is WatchType.BOOKMARK:
            break
    assert events[-1].type is WatchType.BOOKMARK
    version = events[-1].object["metadata"]["resourceVersion"]
    assert int(version) > int(events[0].object["metadata"]["resourceVersion"])
    await env.create(PODS, a_pod("later"))
    assert summary(await env.events(PODS, version, 1)) == [("ADDED", "later")]


async def collect(events: AsyncIterator[WatchEvent]) -> list[WatchEvent]:
    return [event async for event in events]


async def test_watch_ends_after_its_timeout(env: Environment) -> None:
    stream = env.client.watch(PODS, env.here, resource_version=await env.version(PODS), timeout_s=1)
    events = await collect(env.passing_time(stream))
    assert [event for event in events if event.type is not WatchType.BOOKMARK] == []
