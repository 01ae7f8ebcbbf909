"""Contract: creating, reading and listing objects."""

from __future__ import annotations

import pytest

from kube.errors import AlreadyExists, BadRequest, Gone, Invalid, NotFound
from kube.port import Selection, list_all
from model.resources import EVENTS, NODES, PODS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES, WORKLOADS
from tests.contract.builders import a_pod, an_object
from tests.contract.environment import Environment


async def test_created_object_carries_the_servers_metadata(env: Environment) -> None:
    created = await env.create(VIRTUAL_MACHINES, an_object(VIRTUAL_MACHINES, "vm", spec={"x": 1}))
    metadata = created["metadata"]
    assert metadata["resourceVersion"].isdigit()
    assert metadata["uid"]
    assert metadata["generation"] == 1
    assert metadata["creationTimestamp"].endswith("Z")
    assert created == await env.client.get(env.key(VIRTUAL_MACHINES, "vm"))


async def test_name_is_generated_from_its_prefix_and_differs_each_time(env: Environment) -> None:
    pods = [await env.create(PODS, a_pod(metadata={"name": "", "generateName": "virt-"})) for _ in range(3)]
    names = {pod["metadata"]["name"] for pod in pods}
    assert len(names) == 3
    assert all(name.startswith("virt-") and len(name) == len("virt-") + 5 for name in names)
    assert all(pod["metadata"]["generateName"] == "virt-" for pod in pods)


async def test_second_object_of_a_name_already_exists(env: Environment) -> None:
    await env.create(PODS, a_pod())
    with pytest.raises(AlreadyExists) as caught:
        await env.create(PODS, a_pod())
    assert (caught.value.status, caught.value.reason) == (409, "AlreadyExists")


async def test_what_does_not_exist_is_not_found(env: Environment) -> None:
    with pytest.raises(NotFound):
        await env.client.get(env.key(PODS, "none"))
    with pytest.raises(NotFound):
        await env.client.delete(env.key(PODS, "none"))
    with pytest.raises(NotFound):
        await env.client.patch(env.key(PODS, "none"), {"metadata": {"labels": {"a": "b"}}})
    with pytest.raises(NotFound):
        await env.client.replace(env.key(PODS, "none"), a_pod("none", metadata={"namespace": env.namespace}))


async def test_object_of_a_namespace_that_does_not_exist_is_not_found(env: Environment) -> None:
    with pytest.raises(NotFound):
        await env.client.create(PODS, a_pod(metadata={"namespace": "no-such-namespace"}))


@pytest.mark.parametrize("name", ["Upper", "under_score", "-dash", "a" * 254])
async def test_object_with_a_bad_name_is_invalid(env: Environment, name: str) -> None:
    with pytest.raises(Invalid):
        await env.create(VIRTUAL_MACHINES, an_object(VIRTUAL_MACHINES, name))


async def test_object_without_a_name_is_invalid(env: Environment) -> None:
    with pytest.raises(Invalid):
        await env.create(PODS, a_pod(metadata={"name": ""}))


async def test_pod_without_containers_is_invalid(env: Environment) -> None:
    with pytest.raises(Invalid):
        await env.create(PODS, a_pod(containers=[]))


async def test_label_with_a_bad_value_is_invalid(env: Environment) -> None:
    with pytest.raises(Invalid):
        await env.create(PODS, a_pod(metadata={"labels": {"a": "not allowed"}}))


async def test_new_pod_starts_pending_whatever_status_it_was_given(env: Environment) -> None:
    created = await env.create(PODS, a_pod() | {"status": {"phase": "Running", "podIP": "10.0.0.1"}})
    assert created["status"]["phase"] == "Pending"
    assert "podIP" not in created["status"]


async def test_new_node_keeps_the_status_it_was_given(env: Environment) -> None:
    name = env.namespace
    node = an_object(NODES, name, status={"allocatable": {"cpu": "4"}, "capacity": {"cpu": "4"}})
    created = await env.create(NODES, node | {"spec": {"unschedulable": True}})
    try:
        assert created["status"]["allocatable"] == {"cpu": "4"}
    finally:
        await env.client.delete(env.key(NODES, name))


async def test_pages_together_hold_each_object_once_in_order_of_names(env: Environment) -> None:
    for number in range(5):
        await env.create(VIRTUAL_MACHINES, an_object(VIRTUAL_MACHINES, f"vm-{number}"))
    sizes, names, token = [], [], ""
    while True:
        page = await env.client.list_page(VIRTUAL_MACHINES, env.here, limit=2, continue_token=token)
        sizes.append(len(page.items))
        names += [item["metadata"]["name"] for item in page.items]
        token = page.continue_token
        if not token:
            break
    assert sizes == [2, 2, 1]
    assert names == [f"vm-{number}" for number in range(5)]


async def test_later_pages_show_the_state_of_the_first(env: Environment) -> None:
    for number in range(3):
        await env.create(VIRTUAL_MACHINES, an_object(VIRTUAL_MACHINES, f"vm-{number}"))
    first = await env.client.list_page(VIRTUAL_MACHINES, env.here, limit=1)
    await env.client.delete(env.key(VIRTUAL_MACHINES, "vm-2"))
    await env.create(VIRTUAL_MACHINES, an_object(VIRTUAL_MACHINES, "vm-3"))
    second = await env.client.list_page(
        VIRTUAL_MACHINES, env.here, limit=10, continue_token=first.continue_token
    )
    assert [item["metadata"]["name"] for item in second.items] == ["vm-1", "vm-2"]
    assert second.resource_version == first.resource_version


async def test_list_with_an_expired_token_is_gone(env: Environment) -> None:
    for name in ("a", "b"):
        await env.create(VIRTUAL_MACHINES, an_object(VIRTUAL_MACHINES, name))
    page = await env.client.list_page(VIRTUAL_MACHINES, env.here, limit=1)
    token = env.expire_token(page.continue_token)
    with pytest.raises(Gone):
        await env.client.list_page(VIRTUAL_MACHINES, env.here, limit=1, continue_token=token)


async def test_list_with_a_token_that_is_none_is_a_bad_request(env: Environment) -> None:
    with pytest.raises(BadRequest):
        await env.client.list_page(PODS, env.here, continue_token="nonsense")


async def test_listed_objects_name_their_kind(env: Environment) -> None:
    await env.create(PODS, a_pod())
    await env.create(VIRTUAL_MACHINE_INSTANCES, an_object(VIRTUAL_MACHINE_INSTANCES, "vmi"))
    for resource in (PODS, VIRTUAL_MACHINE_INSTANCES):
        listing = await list_all(env.client, resource, env.here)
        found = [(item["apiVersion"], item["kind"]) for item in listing.items]
        assert found == [(resource.api_version, resource.kind)]


async def test_list_covers_one_namespace_or_all(env: Environment) -> None:
    await env.create(WORKLOADS, an_object(WORKLOADS, "only-here"))
    elsewhere = await env.client.list_page(WORKLOADS, Selection("default"))
    everywhere = await list_all(env.client, WORKLOADS)
    assert elsewhere.items == []
    assert env.namespace in {item["metadata"]["namespace"] for item in everywhere.items}


@pytest.mark.parametrize(
    ("selector", "wanted"),
    [
        ("app=a", {"one"}),
        ("app==a", {"one"}),
        ("app!=a", {"two", "three"}),
        ("app in (a,b)", {"one", "two"}),
        ("app notin (a)", {"two", "three"}),
        ("app", {"one", "two"}),
        ("!app", {"three"}),
        ("app,tier=x", {"two"}),
    ],
)
async def test_label_selector_picks(env: Environment, selector: str, wanted: set[str]) -> None:
    labels = {"one": {"app": "a"}, "two": {"app": "b", "tier": "x"}, "three": {}}
    for name, own in labels.items():
        await env.create(VIRTUAL_MACHINES, an_object(VIRTUAL_MACHINES, name, metadata={"labels": own}))
    page = await env.client.list_page(VIRTUAL_MACHINES, Selection(env.namespace, label_selector=selector))
    assert {item["metadata"]["name"] for item in page.items} == wanted


async def test_field_selector_picks_by_name_node_and_phase(env: Environment) -> None:
    for name in ("one", "two"):
        await env.create(PODS, a_pod(name))
    await env.client.bind(env.key(PODS, "two"), "no-such-node")
    for selector, wanted in (
        ("metadata.name=one", ["one"]),
        ("metadata.name!=one", ["two"]),
        ("spec.nodeName=no-such-node", ["two"]),
        ("spec.nodeName=", ["one"]),
        ("status.phase=Pending", ["one", "two"]),
        ("status.phase=Pending,metadata.name=two", ["two"]),
    ):
        page = await env.client.list_page(PODS, Selection(env.namespace, field_selector=selector))
        assert [item["metadata"]["name"] for item in page.items] == wanted, selector


@pytest.mark.parametrize(
    "selection",
    [Selection("default", label_selector="a in"), Selection("default", field_selector="spec.nonsense=1")],
)
async def test_selector_that_makes_no_sense_is_a_bad_request(env: Environment, selection: Selection) -> None:
    with pytest.raises(BadRequest):
        await env.client.list_page(PODS, selection)


async def test_event_needs_the_fields_of_its_group(env: Environment) -> None:
    event = an_object(EVENTS, "first") | {
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "type": "Warning",
        "reason": "NoRoom",
        "action": "Placing",
        "note": "no node has 2 free units",
        "reportingController": "gpu.cozystack.io/binder",
        "reportingInstance": "binder-0",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "name": "pod", "namespace": env.namespace},
    }
    created = await env.create(EVENTS, event)
    assert created["reason"] == "NoRoom"
    broken = {key: value for key, value in event.items() if key != "reportingController"}
    with pytest.raises(Invalid):
        await env.create(EVENTS, broken | {"metadata": {"name": "second"}})
