"""`gpubinder admit` behind a real API server, over TLS on loopback: gate, checks, and what fails how."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from gpubinder.cli import main
from kube.errors import ApiError, Forbidden, ServerFault
from kube.port import Json, ObjectKey
from model.names import GATE
from model.resources import GPU_CLAIMS, GPU_CLASSES, PODS
from projections.folds.ledger import BudgetEntry, ClassEntry
from tests.admission.pods_to_gate import CPU, FOREIGN, LAUNCHER, TABLE, gpus, pod
from tests.cluster.control_plane import ControlPlane
from tests.cluster.processes import free_ports
from tests.stories.admit_process import NAMESPACE, Balancer, called_at, count, gpubinder_admit
from tests.stories.binder_process import gpubinder_up
from tests.stories.conftest import MUTATING_BINDINGS, MUTATING_POLICIES, Stage, gates_of
from tests.stories.mistreated import empty_redis
from tests.stories.test_gate_policy import sell

pytestmark = [pytest.mark.envtest, pytest.mark.allow_hosts(["127.0.0.1"]), pytest.mark.timeout(180)]


@pytest.fixture
async def ungated(stage: Stage) -> Stage:
    """A stage without the policy: the webhook alone gates. The next stage installs the policy again.

    The ledger is its own, too: a story before it may have written one that no binder has put right.
    """
    empty_redis(stage.redis)
    await stage.client.delete(ObjectKey(MUTATING_BINDINGS, "gpu.cozystack.io-placement"))
    await stage.client.delete(ObjectKey(MUTATING_POLICIES, "gpu.cozystack.io-placement"))
    number = 0

    async def is_out_of_force() -> bool:
        nonlocal number
        number += 1
        return await gates_of(stage, launcher(stage), f"policy-{number}") == []

    await stage.until("the policy is out of force", is_out_of_force)
    return stage


def launcher(stage: Stage, count: str = "1") -> Json:
    return pod(LAUNCHER, gpus(count, stage.resource))


async def in_force(stage: Stage) -> None:
    """Wait until the API server calls the webhook."""
    number = 0

    async def is_gated() -> bool:
        nonlocal number
        number += 1
        try:
            return await gates_of(stage, launcher(stage), f"try-{number}") == [GATE]
        except ServerFault:
            return False  # the authority is not in force yet

    await stage.until("the webhook is in force", is_gated)


def admit(stage: Stage, name: str = "admit", *options: str) -> Any:
    return gpubinder_admit(stage.kubeconfig, stage.redis, stage.folder / f"{name}.log", *options)


async def order(stage: Stage, name: str, units: int, class_name: str = "") -> Json:
    spec = {"className": class_name or stage.class_name, "units": units}
    return await stage.client.create(
        GPU_CLAIMS, {"metadata": {"name": name, "namespace": stage.namespace}, "spec": spec}
    )


async def make(stage: Stage, name: str, body: Json) -> Json:
    return await stage.client.create(
        PODS, {**body, "metadata": {**body["metadata"], "name": name, "namespace": stage.namespace}}
    )


def too_large(class_name: str, offered: int, wanted: int) -> str:
    text = f"no node that class {class_name} selects offers more than {offered}, {wanted} wanted"
    return f"{text}: a claim is held by one node"


async def refused(write: Awaitable[Json]) -> tuple[str, str]:
    """The reason and the sentence of a refusal."""
    with pytest.raises(Forbidden) as error:
        await write
    return error.value.reason, error.value.message.partition("denied the request: ")[2]


async def test_webhook_gates_what_the_function_and_the_policy_gate(ungated: Stage) -> None:
    """R6: one table for function, policy and webhook."""
    stage = ungated
    with admit(stage) as one:
        async with called_at(stage.client, f"https://127.0.0.1:{one.port}"):
            await in_force(stage)
            classes = [await sell(stage, "one"), await sell(stage, "two")]
            await asyncio.sleep(1.1)  # the webhook knows new classes after a second
            for number, (what, body, is_gated) in enumerate(TABLE):
                want = [GATE] if is_gated else []
                assert await gates_of(stage, body, f"row-{number}") == want, what
            assert await gates_of(stage, FOREIGN, "foreign") == ["example.com/mine", GATE]
            for key in classes:
                await stage.client.delete(key)


async def test_each_check_refuses_with_its_sentence(ungated: Stage) -> None:
    """30-api: one sentence with the numbers, and the reason for programs."""
    stage = ungated
    name, namespace, resource = stage.class_name, stage.namespace, stage.resource
    entry = ClassEntry(resource, nodes=2, allocatable=8, bound=5, free=3, largest=4)
    team = BudgetEntry("", {name: 6}, {name: 5}, {resource: 2}, {resource: 1})
    parts: dict[str, Any] = {
        "classes": {name: entry, "leaving": replace(entry, is_leaving=True)},
        "budgets": {"team": team},
        "over": {namespace: ["team"]},
    }
    await count(stage.redis, **parts)
    with admit(stage) as one:
        async with called_at(stage.client, f"https://127.0.0.1:{one.port}"):
            await in_force(stage)
            await order(stage, "fits", 1)
            assert await refused(order(stage, "a", 1, "nope")) == (
                "ClassNotFound", f"GPUClass nope does not exist; on sale are {name}",
            )  # fmt: skip
            assert (await refused(order(stage, "a", 1, "leaving")))[0] == "ClassNotFound"
            assert await refused(order(stage, "a", 5)) == (
                "TooLarge", too_large(name, 4, 5),
            )  # fmt: skip
            assert await refused(order(stage, "a", 2)) == (
                "BudgetExceeded", f"GPUBudget team allows 6 of class {name}: 5 claimed, 2 more wanted",
            )  # fmt: skip
            assert await refused(make(stage, "raw", pod({}, gpus("2", resource)))) == (
                "BudgetExceeded",
                f"GPUBudget team allows pods without a claim 2 of {resource}: 1 in use, 2 more wanted",
            )
            await make(stage, "raw", pod({}, gpus("1", resource)))
            await make(stage, "plain", pod({}, CPU))
            await count(stage.redis, classes={name: replace(entry, free=1)}, budgets={"team": BudgetEntry()})
            await asyncio.sleep(1.1)
            assert await refused(order(stage, "a", 2)) == (
                "NoRoom",
                f"class {name} has 1 of 8 free now, 2 wanted",
            )
            assert one.metric("GPUClaim", "unchecked") == 0


async def test_without_redis_the_gate_gates_and_the_checks_let_through_with_a_warning(
    ungated: Stage, control_plane: ControlPlane
) -> None:
    stage = replace(ungated, redis="redis://127.0.0.1:1")
    with admit(stage) as one:
        async with called_at(stage.client, f"https://127.0.0.1:{one.port}"):
            await in_force(stage)
            warning = await asyncio.to_thread(_warnings_of_order, control_plane, stage)
            assert "gpubinder has not checked this GPUClaim (Redis at redis://127.0.0.1:1" in warning
            assert one.metric("GPUClaim", "unchecked") == 1
            await make(stage, "raw", pod({}, gpus("100", stage.resource)))
            assert one.metric("Pod", "unchecked") >= 1


def _warnings_of_order(plane: ControlPlane, stage: Stage) -> str:
    """As kubectl shows them: the header of the answer."""
    rest = plane.rest()
    body = {
        "apiVersion": "gpu.cozystack.io/v1alpha1",
        "kind": "GPUClaim",
        "metadata": {"name": "order"},
        "spec": {"className": stage.class_name, "units": 500},
    }
    url = f"{plane.server}/apis/gpu.cozystack.io/v1alpha1/namespaces/{stage.namespace}/gpuclaims"
    request = urllib.request.Request(url, json.dumps(body).encode(), method="POST")
    request.add_header("Authorization", f"Bearer {rest._token}")
    request.add_header("Content-Type", "application/json")
    with rest._opener.open(request, timeout=10) as answer:
        return str(answer.headers.get("Warning"))


async def test_operator_hears_of_a_second_default(ungated: Stage, control_plane: ControlPlane) -> None:
    stage = ungated
    with admit(stage) as one:
        async with called_at(stage.client, f"https://127.0.0.1:{one.port}"):
            await in_force(stage)
            key = ObjectKey(GPU_CLASSES, f"{stage.namespace}-two")
            spec = {"resourceName": stage.resource}
            await stage.client.create(GPU_CLASSES, {"metadata": {"name": key.name}, "spec": spec})
            assert one.metric("GPUClass", "allowed") == 1
            await stage.client.patch(key, {"metadata": {"labels": {"a": "b"}}})
            assert one.metric("GPUClass", "allowed") == 1  # only a new spec is looked at
            await stage.client.delete(key)


async def test_dead_webhook_keeps_launchers_with_devices_and_nothing_else(ungated: Stage) -> None:
    """R6: closed for what may need the gate; everything else goes through."""
    stage = ungated
    with admit(stage) as one:
        async with called_at(stage.client, f"https://127.0.0.1:{one.port}"):
            await in_force(stage)
            one.kill()
            with pytest.raises(ServerFault, match="failed calling webhook"):
                await make(stage, "launcher", launcher(stage))
            kvm = {"limits": {"devices.kubevirt.io/kvm": "1", "cpu": "1"}}
            await make(stage, "launcher-without-gpu", pod(LAUNCHER, kvm))
            await make(stage, "raw", pod({}, gpus("1", stage.resource)))
            await order(stage, "order", 1)


async def insist(write: Callable[[], Awaitable[Json]]) -> tuple[Json, int]:
    """As virt-controller does: again and again; what came of it, and how often it failed."""
    for failures in range(50):
        try:
            return await write(), failures
        except ApiError:
            await asyncio.sleep(0.1)
    raise AssertionError("it never succeeded")


async def test_of_two_replicas_one_is_killed_and_no_launcher_slips_through(ungated: Stage) -> None:
    stage = ungated
    with admit(stage, "one") as one, admit(stage, "two") as two:
        async with Balancer([one.port, two.port]).open() as url, called_at(stage.client, url):
            await in_force(stage)
            failed = 0
            for number in range(120):
                if number == 40:
                    one.kill()
                made, failures = await insist(lambda n=number: make(stage, f"vm-{n}", launcher(stage)))
                failed += failures
                assert made["spec"]["schedulingGates"] == [{"name": GATE}]
            assert failed <= 5, "only what was under way at the dead replica fails"
            assert two.metric("Pod", "gated") >= 80


@pytest.mark.usefixtures("kubelets")
async def test_binder_tells_admission_what_is_left(ungated: Stage) -> None:
    """The whole way round in one process: binder, ledger, webhook; R1."""
    stage, (port,) = ungated, free_ports(1)
    await stage.add_node("only", 1)
    options = ("--admission-port", str(port), "--admission-namespace", NAMESPACE, "--cert-name", "127.0.0.1")
    with gpubinder_up(stage.kubeconfig, stage.redis, stage.folder / "up.log", options=options):
        async with called_at(stage.client, f"https://127.0.0.1:{port}"):
            await in_force(stage)
            await order(stage, "first", 1)

            async def is_held() -> bool:
                return [one.get("status", {}).get("phase") for one in await stage.claims()] == ["Bound"]

            await stage.until("the order is held", is_held)
            await asyncio.sleep(2.0)  # the ledger is a second old at most, and so is what is read of it
            assert await refused(order(stage, "second", 1)) == (
                "NoRoom",
                f"class {stage.class_name} has 0 of 1 free now, 1 wanted",
            )
            assert await refused(order(stage, "large", 2)) == (
                "TooLarge", too_large(stage.class_name, 1, 2),
            )  # fmt: skip


async def test_gate_of_this_server_is_the_policy(stage: Stage) -> None:
    """`gpubinder crds --gate auto` asks the server."""
    arguments = ["crds", "--gate", "auto", "--kubeconfig", str(stage.kubeconfig)]
    done = await asyncio.to_thread(CliRunner().invoke, main, arguments)
    assert done.exit_code == 0, done.output
    assert "kind: MutatingAdmissionPolicy\n" in done.stdout
    assert "WebhookConfiguration" not in done.stdout
