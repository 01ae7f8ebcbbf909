"""What classes and budgets say of themselves on a real API server: who has the units, and what is wrong."""

from __future__ import annotations

import pytest

from kube.port import Json, ObjectKey
from model.resources import GPU_BUDGETS, GPU_CLASSES, VIRTUAL_MACHINES
from simulator.objects import gpu_vm
from tests.cluster.control_plane import ControlPlane
from tests.stories.binder_process import gpubinder_up
from tests.stories.conftest import Stage
from tests.stories.test_placing import runs

pytestmark = [
    pytest.mark.envtest,
    pytest.mark.allow_hosts(["127.0.0.1"]),
    pytest.mark.timeout(180),
    pytest.mark.usefixtures("actors"),
]


async def status_of(stage: Stage, key: ObjectKey) -> Json:
    return (await stage.client.get(key)).get("status") or {}


async def test_class_and_budget_say_who_has_the_units_and_what_is_wrong(stage: Stage) -> None:
    """R26, R27: after a VM has started; a budget whose parent is missing says so."""
    await stage.add_node("only", 4)
    of_class, of_budget = ObjectKey(GPU_CLASSES, stage.class_name), ObjectKey(GPU_BUDGETS, stage.namespace)
    selector = {"matchLabels": {"kubernetes.io/metadata.name": stage.namespace}}
    spec = {"namespaceSelector": selector, "classes": {stage.class_name: 3}}
    await stage.client.create(GPU_BUDGETS, {"metadata": {"name": stage.namespace}, "spec": spec})
    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "up.log"):
        vm = gpu_vm("vm", {stage.resource: 2}, stage.namespace)
        await stage.client.create(VIRTUAL_MACHINES, vm)
        await stage.until("the VM runs", lambda: runs(stage, "vm"))

        async def is_counted() -> bool:
            told = await status_of(stage, of_class)
            return (told.get("bound"), told.get("free"), told.get("allocatable")) == (2, 2, 4)

        async def is_used() -> bool:
            told = await status_of(stage, of_budget)
            return bool((told.get("used") or {}).get("classes") == {stage.class_name: 2})

        async def is_faulty() -> bool:
            conditions = (await status_of(stage, of_budget)).get("conditions") or []
            return [(one["type"], one["status"], one["reason"]) for one in conditions] == [
                ("Valid", "False", "ParentNotFound")
            ]

        await stage.until("the class says so", is_counted)
        await stage.until("the budget says so", is_used)
        await stage.client.patch(of_budget, {"spec": {"parent": "nobody"}})
        await stage.until("the budget says what is wrong", is_faulty)
    await stage.client.delete(of_budget)


async def test_lowered_budget_evicts_nothing_and_shows_what_is_used_beyond_it(
    stage: Stage, control_plane: ControlPlane
) -> None:
    """R27: the numbers are told as they are; and kubectl shows them in columns."""
    await stage.add_node("only", 4)
    key = ObjectKey(GPU_BUDGETS, stage.namespace)
    await stage.client.create(GPU_BUDGETS, a_budget(stage, stage.namespace, {stage.class_name: 3}))
    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "up.log"):
        vm = gpu_vm("vm", {stage.resource: 2}, stage.namespace)
        await stage.client.create(VIRTUAL_MACHINES, vm)
        await stage.until("the VM runs", lambda: runs(stage, "vm"))
        await stage.client.patch(key, {"spec": {"classes": {stage.class_name: 1}}})

        async def speaks_of_the_new_spec() -> bool:
            told = await status_of(stage, key)
            (valid,) = told.get("conditions") or [{}]
            is_used = (told.get("used") or {}).get("classes") == {stage.class_name: 2}
            return is_used and (valid.get("status"), valid.get("observedGeneration")) == ("True", 2)

        await stage.until("the budget speaks of its new spec", speaks_of_the_new_spec)
        assert await runs(stage, "vm")
    rest = control_plane.rest()
    of_budget = rest.columns(GPU_BUDGETS.path(name=stage.namespace))
    limits, used = f'{{"{stage.class_name}":1}}', f'{{"{stage.class_name}":2}}'
    assert (of_budget["Valid"], of_budget["Limits"], of_budget["Used"]) == ("True", limits, used)
    of_class = rest.columns(GPU_CLASSES.path(name=stage.class_name))
    numbers = ("Ready", "Nodes", "Allocatable", "Bound", "Free", "Reason")
    assert [of_class[name] for name in numbers] == ["True", 1, 4, 2, 2, "HasNodes"]
    await stage.client.delete(key)


async def test_budgets_in_a_circle_both_say_so(stage: Stage) -> None:
    """R27, 30-api: a cycle makes all in it invalid."""
    names = (f"{stage.namespace}-a", f"{stage.namespace}-b")
    for name, parent in zip(names, reversed(names), strict=True):
        await stage.client.create(GPU_BUDGETS, a_budget(stage, name, {}, parent))
    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "up.log"):

        async def both_say_so() -> bool:
            told = [await status_of(stage, ObjectKey(GPU_BUDGETS, name)) for name in names]
            reasons = [[one["reason"] for one in status.get("conditions") or []] for status in told]
            return reasons == [["Cycle"], ["Cycle"]]

        await stage.until("both say so", both_say_so)
        for name in names:
            await stage.client.delete(ObjectKey(GPU_BUDGETS, name))


def a_budget(stage: Stage, name: str, classes: Json, parent: str = "") -> Json:
    selector = {"matchLabels": {"kubernetes.io/metadata.name": stage.namespace}}
    spec = {"parent": parent, "namespaceSelector": selector, "classes": classes}
    return {"metadata": {"name": name}, "spec": spec}
