"""What classes and budgets say of themselves on a real API server: who has the units, and what is wrong."""

from __future__ import annotations

import pytest

from kube.port import Json, ObjectKey
from model.resources import GPU_BUDGETS, GPU_CLASSES, VIRTUAL_MACHINES
from simulator.objects import gpu_vm
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
