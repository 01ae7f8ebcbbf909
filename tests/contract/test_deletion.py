"""Contract: finalizers, preconditions, grace, owners and namespaces; what controllers do is waited for."""

from __future__ import annotations

import pytest

from kube.errors import Conflict, Forbidden, Invalid, NotFound
from kube.port import MERGE_STATUS, DeleteOptions, Json, Propagation
from model.resources import NAMESPACES, PODS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES, WORKLOADS
from tests.contract.builders import GATE, a_pod, an_object, owned_by
from tests.contract.environment import Environment, summary

VMS = VIRTUAL_MACHINES
VMIS = VIRTUAL_MACHINE_INSTANCES
FINALIZER = "gpu.cozystack.io/claim"


async def held(env: Environment, **fields: object) -> Json:
    return await env.create(VMS, an_object(VMS, "vm", metadata={"finalizers": [FINALIZER]}, **fields))


async def test_object_with_a_finalizer_is_marked_and_stays_until_the_last_finalizer_goes(
    env: Environment,
) -> None:
    key = env.key(VMS, "vm")
    created = await held(env, spec={"a": 1})
    since = created["metadata"]["resourceVersion"]
    await env.client.delete(key)
    marked = await env.client.get(key)
    assert marked["metadata"]["deletionTimestamp"].endswith("Z")
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
    assert marked["metadata"]["generation"] == created["metadata"]["generation"] + 1

    await env.client.patch(key, {"metadata": {"finalizers": None}})
    assert await env.is_gone(key)
    events = await env.events(VMS, since, 2)
    assert summary(events) == [("MODIFIED", "vm"), ("DELETED", "vm")]
    # The last state that was stored: the write that took the finalizer away never was.
    assert events[1].object["metadata"]["finalizers"] == [FINALIZER]


async def test_second_delete_of_a_marked_object_changes_nothing(env: Environment) -> None:
    key = env.key(VMS, "vm")
    await held(env)
    await env.client.delete(key)
    marked = await env.client.get(key)
    await env.client.delete(key)
    assert await env.client.get(key) == marked


async def test_marked_object_can_be_changed_and_takes_no_new_finalizer(env: Environment) -> None:
    key = env.key(VMS, "vm")
    await held(env)
    await env.client.delete(key)
    after = await env.client.patch(key, {"status": {"phase": "Stopping"}}, MERGE_STATUS)
    assert after["status"] == {"phase": "Stopping"}
    assert after["metadata"]["deletionTimestamp"]
    with pytest.raises(Invalid):
        await env.client.patch(key, {"metadata": {"finalizers": [FINALIZER, "other.io/one"]}})


async def test_nobody_can_take_a_deletion_back(env: Environment) -> None:
    key = env.key(VMS, "vm")
    await held(env)
    await env.client.delete(key)
    after = await env.client.patch(key, {"metadata": {"deletionTimestamp": None}})
    assert after["metadata"]["deletionTimestamp"]


async def test_unqualified_finalizer_is_invalid(env: Environment) -> None:
    with pytest.raises(Invalid):
        await env.create(PODS, a_pod(metadata={"finalizers": ["not a name"]}))


async def test_delete_with_a_wrong_uid_or_version_conflicts(env: Environment) -> None:
    created = await env.create(PODS, a_pod())
    key = env.key(PODS, "pod")
    uid, old = created["metadata"]["uid"], created["metadata"]["resourceVersion"]
    patched = await env.client.patch(key, {"metadata": {"labels": {"a": "1"}}})
    for options in (
        DeleteOptions(uid="00000000-0000-0000-0000-000000000000"),
        DeleteOptions(resource_version=old),
        DeleteOptions(uid=uid, resource_version=old),
    ):
        with pytest.raises(Conflict):
            await env.client.delete(key, options)
    right = DeleteOptions(uid=uid, resource_version=patched["metadata"]["resourceVersion"])
    await env.client.delete(key, right)
    assert await env.is_gone(key)


async def test_pod_without_a_node_goes_at_once(env: Environment) -> None:
    await env.create(PODS, a_pod("plain"))
    await env.create(PODS, a_pod("gated", gates=(GATE,)))
    for name in ("plain", "gated"):
        await env.client.delete(env.key(PODS, name))
        assert await env.is_gone(env.key(PODS, name))


async def test_pod_on_a_node_gets_its_grace_and_goes_when_the_kubelet_says_so(env: Environment) -> None:
    key = env.key(PODS, "pod")
    created = await env.create(PODS, a_pod(terminationGracePeriodSeconds=60))
    await env.client.bind(key, "no-such-node")
    await env.client.delete(key)
    marked = await env.client.get(key)
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 60
    assert marked["metadata"]["deletionTimestamp"] > created["metadata"]["creationTimestamp"]

    await env.client.delete(key, DeleteOptions(grace_s=30))
    shorter = await env.client.get(key)
    assert shorter["metadata"]["deletionGracePeriodSeconds"] == 30
    assert shorter["metadata"]["deletionTimestamp"] < marked["metadata"]["deletionTimestamp"]

    await env.client.delete(key, DeleteOptions(grace_s=0, uid=created["metadata"]["uid"]))
    assert await env.is_gone(key)


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
async def test_pod_that_has_ended_goes_at_once(env: Environment, phase: str) -> None:
    key = env.key(PODS, "pod")
    await env.create(PODS, a_pod())
    await env.client.bind(key, "no-such-node")
    await env.client.patch(key, {"status": {"phase": phase}}, MERGE_STATUS)
    await env.client.delete(key)
    assert await env.is_gone(key)


async def test_dependents_go_with_their_owner(managed: Environment) -> None:
    owner = await managed.create(VMIS, an_object(VMIS, "vmi"))
    await managed.create(PODS, a_pod("launcher", gates=(GATE,), metadata=owned_by(owner)))
    middle = await managed.create(WORKLOADS, an_object(WORKLOADS, "middle", metadata=owned_by(owner)))
    await managed.create(WORKLOADS, an_object(WORKLOADS, "leaf", metadata=owned_by(middle)))
    await managed.create(PODS, a_pod("bystander"))
    await managed.client.delete(managed.key(VMIS, "vmi"))
    for key in (
        managed.key(PODS, "launcher"),
        managed.key(WORKLOADS, "middle"),
        managed.key(WORKLOADS, "leaf"),
    ):
        await managed.until(lambda key=key: managed.is_gone(key))
    assert not await managed.is_gone(managed.key(PODS, "bystander"))


async def test_dependent_of_an_owner_that_never_was_goes(managed: Environment) -> None:
    owner = an_object(VMIS, "ghost", metadata={"uid": "00000000-0000-0000-0000-000000000000"})
    await managed.create(WORKLOADS, an_object(WORKLOADS, "orphan", metadata=owned_by(owner)))
    await managed.until(lambda: managed.is_gone(managed.key(WORKLOADS, "orphan")))


async def test_dependent_with_a_second_owner_stays_and_loses_the_reference(managed: Environment) -> None:
    first = await managed.create(VMIS, an_object(VMIS, "first"))
    second = await managed.create(VMIS, an_object(VMIS, "second"))
    both = owned_by(first)["ownerReferences"] + [
        reference | {"controller": False} for reference in owned_by(second)["ownerReferences"]
    ]
    key = managed.key(WORKLOADS, "shared")
    await managed.create(WORKLOADS, an_object(WORKLOADS, "shared", metadata={"ownerReferences": both}))
    await managed.client.delete(managed.key(VMIS, "first"))

    async def has_one_owner() -> bool:
        references = (await managed.client.get(key))["metadata"]["ownerReferences"]
        return [reference["name"] for reference in references] == ["second"]

    await managed.until(has_one_owner)


async def test_foreground_deletion_waits_for_the_dependents(managed: Environment) -> None:
    owner = await managed.create(VMIS, an_object(VMIS, "vmi"))
    metadata = owned_by(owner, is_blocking=True) | {"finalizers": [FINALIZER]}
    dependent = managed.key(WORKLOADS, "held")
    await managed.create(WORKLOADS, an_object(WORKLOADS, "held", metadata=metadata))
    await managed.client.delete(managed.key(VMIS, "vmi"), DeleteOptions(propagation=Propagation.FOREGROUND))
    waiting = await managed.client.get(managed.key(VMIS, "vmi"))
    assert waiting["metadata"]["finalizers"] == ["foregroundDeletion"]

    async def is_marked() -> bool:
        return "deletionTimestamp" in (await managed.client.get(dependent))["metadata"]

    await managed.until(is_marked)
    assert not await managed.is_gone(managed.key(VMIS, "vmi"))
    await managed.client.patch(dependent, {"metadata": {"finalizers": None}})
    await managed.until(lambda: managed.is_gone(managed.key(VMIS, "vmi")))


async def test_orphaned_dependents_stay_without_their_owner(managed: Environment) -> None:
    owner = await managed.create(VMIS, an_object(VMIS, "vmi"))
    await managed.create(WORKLOADS, an_object(WORKLOADS, "left", metadata=owned_by(owner)))
    await managed.client.delete(managed.key(VMIS, "vmi"), DeleteOptions(propagation=Propagation.ORPHAN))
    await managed.until(lambda: managed.is_gone(managed.key(VMIS, "vmi")))
    assert "ownerReferences" not in (await managed.client.get(managed.key(WORKLOADS, "left")))["metadata"]


async def test_namespace_takes_its_objects_along_and_waits_for_finalizers(managed: Environment) -> None:
    key = managed.key(NAMESPACES, managed.namespace)
    await managed.create(PODS, a_pod())
    await held(managed)
    await managed.client.delete(key)
    terminating = await managed.client.get(key)
    assert terminating["status"]["phase"] == "Terminating"
    with pytest.raises(Forbidden):
        await managed.create(PODS, a_pod("late"))
    await managed.until(lambda: managed.is_gone(managed.key(PODS, "pod")))

    async def is_marked() -> bool:
        return "deletionTimestamp" in (await managed.client.get(managed.key(VMS, "vm")))["metadata"]

    await managed.until(is_marked)
    assert not await managed.is_gone(key)
    await managed.client.patch(managed.key(VMS, "vm"), {"metadata": {"finalizers": None}})
    await managed.until(lambda: managed.is_gone(key))
    with pytest.raises(NotFound):
        await managed.client.create(PODS, a_pod(metadata={"namespace": managed.namespace}))
