"""The gate as a MutatingAdmissionPolicy of a real API server decides as the pure function does (R6)."""

from __future__ import annotations

import pytest

from kube.port import ObjectKey
from model.names import GATE
from model.resources import GPU_CLASSES
from tests.admission.pods_to_gate import FOREIGN, LAUNCHER, SOLD, TABLE, gpus, pod
from tests.stories.conftest import Stage, gates_of
from tests.stories.recorded import first, fresh

pytestmark = [pytest.mark.envtest, pytest.mark.allow_hosts(["127.0.0.1"]), pytest.mark.timeout(120)]


async def sell(stage: Stage, name: str) -> ObjectKey:
    key = ObjectKey(GPU_CLASSES, f"{stage.namespace}-{name}")
    await stage.client.create(GPU_CLASSES, {"metadata": {"name": key.name}, "spec": {"resourceName": SOLD}})
    return key


async def test_policy_gates_what_the_function_gates(stage: Stage) -> None:
    """Also: foreign gates stay, two classes of one resource add the gate once, no class adds none."""
    assert await gates_of(stage, pod(LAUNCHER, gpus("1")), "nothing-sold") == []
    classes = [await sell(stage, "one"), await sell(stage, "two")]

    async def is_in_force() -> bool:
        stage_number = len(tried)
        tried.append(await gates_of(stage, pod(LAUNCHER, gpus("1")), f"try-{stage_number}"))
        return bool(tried[-1])

    tried: list[list[str]] = []
    await stage.until("the API server knows the classes", is_in_force)
    assert tried[-1] == [GATE]
    for number, (what, body, is_gated) in enumerate(TABLE):
        assert await gates_of(stage, body, f"row-{number}") == ([GATE] if is_gated else []), what
    assert await gates_of(stage, FOREIGN, "foreign") == ["example.com/mine", GATE]
    for key in classes:
        await stage.client.delete(key)


async def test_recorded_launcher_is_gated(stage: Stage) -> None:
    """As KubeVirt makes it; the gate of the recording is taken off before."""
    body = fresh(first("Pod"), "recorded")
    body["spec"].pop("schedulingGates")
    body.pop("status")
    for amounts in body["spec"]["containers"][0]["resources"].values():
        amounts[stage.resource] = amounts.pop("nvidia.com/GH100_H100_SXM5_80GB")

    async def is_gated() -> bool:
        tries.append(await gates_of(stage, body, f"recorded-{len(tries)}"))
        return tries[-1] == [GATE]

    tries: list[list[str]] = []
    await stage.until("the API server knows the class", is_gated)
