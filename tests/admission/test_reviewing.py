"""How reviews are answered; the gate fails closed and the checks open (30-api, R1, R6)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from admission.ledger_source import PAGE
from admission.review import ALLOWED, Answer, Review
from admission.reviewing import LIMIT_S, Rules
from eventlog.entries import EntryType
from kube.errors import Unreachable
from kube.port import Json, Page
from model.resources import GPU_BUDGETS, GPU_CLASSES
from projections.folds.ledger import BudgetEntry
from tests.admission.desk import KUBEVIRT, Desk, at_desk, claim, creating
from tests.admission.ledgers import one_class
from tests.admission.pods_to_gate import CPU, LAUNCHER, gpus, pod
from tests.builders import H100, T4

VMI = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "vm", "uid": "u"}
OWNED = [VMI | {"controller": True}]
FULL = {"classes": one_class(free=0)}


def sentence(answer: Answer) -> str:
    return f"{answer.refusal.reason}: {answer.refusal.message}" if answer.refusal else ""


async def sell(desk: Desk, name: str = "h100", resource: str = H100, **spec: object) -> None:
    await desk.server.create(
        GPU_CLASSES, {"metadata": {"name": name}, "spec": {"resourceName": resource, **spec}}
    )


def test_order_is_checked_against_the_newest_ledger() -> None:
    async def story(desk: Desk) -> None:
        await desk.count()
        assert await desk.reviewer.check(creating("GPUClaim", claim(4))) == ALLOWED
        await desk.count(**FULL)
        await asyncio.sleep(1.1)
        assert sentence(await desk.reviewer.check(creating("GPUClaim", claim(4)))).startswith("NoRoom")

    at_desk(story)


def test_ledger_is_read_once_a_second_however_many_ask() -> None:
    async def story(desk: Desk) -> None:
        await desk.count()
        await asyncio.gather(*(desk.reviewer.check(creating("GPUClaim", claim())) for _ in range(50)))
        assert desk.log.reads == 1
        await asyncio.sleep(1.1)
        await desk.reviewer.check(creating("GPUClaim", claim()))
        assert desk.log.reads == 2

    at_desk(story)


@pytest.mark.parametrize("kind", ["GPUClaim", "Pod"])
def test_without_a_ledger_the_checks_let_through_and_say_so(kind: str) -> None:
    """R1: the binder checks again."""

    async def story(desk: Desk) -> None:
        body = claim(500) if kind == "GPUClaim" else pod({}, gpus("500", H100))
        answer = await desk.reviewer.check(creating(kind, body))
        assert answer.is_unchecked
        (warning,) = answer.warnings
        assert warning.startswith(
            f"gpubinder has not checked this {kind} (no binder has written the ledger yet)"
        )
        await desk.count()
        desk.log.is_away = True
        await asyncio.sleep(1.1)
        (warning,) = (await desk.reviewer.check(creating(kind, body))).warnings
        assert "refuses connections" in warning
        assert warning.endswith("places it") is (kind == "GPUClaim")

    at_desk(story)


def test_log_that_hangs_costs_a_moment_and_only_once() -> None:
    async def story(desk: Desk) -> None:
        desk.log.hangs = True
        loop = asyncio.get_running_loop()
        began = loop.time()
        answer = await desk.reviewer.check(creating("GPUClaim", claim()))
        assert answer.is_unchecked
        assert loop.time() - began < LIMIT_S
        began = loop.time()
        assert (await desk.reviewer.check(creating("GPUClaim", claim()))).is_unchecked
        assert loop.time() == began

    at_desk(story)


def test_ledger_of_a_quiet_cluster_is_right_however_old_it_is() -> None:
    """Heartbeats tell of no change, and show that somebody looks."""

    async def story(desk: Desk) -> None:
        await desk.count(**FULL)
        for _ in range(3 * PAGE):
            await asyncio.sleep(10)
            await desk.happens(EntryType.HEARTBEAT)
        assert sentence(await desk.reviewer.check(creating("GPUClaim", claim()))).startswith("NoRoom")

    at_desk(story)


def test_ledger_that_lacks_what_has_happened_is_not_relied_on_for_long() -> None:
    async def story(desk: Desk) -> None:
        await desk.count(**FULL)
        await desk.happens()
        await asyncio.sleep(59)
        await desk.happens(EntryType.HEARTBEAT)
        assert (await desk.reviewer.check(creating("GPUClaim", claim()))).refusal
        await asyncio.sleep(5)
        (warning,) = (await desk.reviewer.check(creating("GPUClaim", claim()))).warnings
        assert "what has happened is not counted for 64 s" in warning
        await desk.count(**FULL)
        await asyncio.sleep(1.1)
        assert (await desk.reviewer.check(creating("GPUClaim", claim()))).refusal

    at_desk(story)


def test_ledger_of_watchers_that_are_silent_is_not_relied_on() -> None:
    """R33."""

    async def story(desk: Desk) -> None:
        await desk.count(**FULL)
        await asyncio.sleep(61)
        (warning,) = (await desk.reviewer.check(creating("GPUClaim", claim()))).warnings
        assert "no watcher has shown itself for 61 s" in warning

    at_desk(story)


def test_class_that_the_ledger_does_not_know_yet_is_looked_up() -> None:
    """A class and its first order are applied together."""

    async def story(desk: Desk) -> None:
        await desk.count(classes={})
        unknown = await desk.reviewer.check(creating("GPUClaim", claim()))
        assert sentence(unknown) == "ClassNotFound: GPUClass h100 does not exist; no class is on sale"
        await sell(desk)
        new = await desk.reviewer.check(creating("GPUClaim", claim()))
        assert (new.refusal, new.warnings) == (
            None,
            ("GPUClass h100 is new; this claim is checked when it is placed",),
        )

    at_desk(story)


def test_template_claim_of_the_binder_always_passes_and_a_forged_one_is_an_order() -> None:
    """Decision 0032: the binder has asked its own, sharper question."""

    async def story(desk: Desk) -> None:
        await desk.count(**FULL)
        owned = claim(9, ownerReferences=OWNED)
        assert await desk.reviewer.check(creating("GPUClaim", owned, user="binder")) == ALLOWED
        assert (await desk.reviewer.check(creating("GPUClaim", owned, user="tenant"))).refusal
        assert (await desk.reviewer.check(creating("GPUClaim", claim(9), user="binder"))).refusal

    at_desk(story, Rules(binder_users=("binder",)))


def test_without_a_named_binder_a_vmi_as_controller_is_believed() -> None:
    async def story(desk: Desk) -> None:
        await desk.count(**FULL)
        owned = claim(9, ownerReferences=OWNED)
        assert await desk.reviewer.check(creating("GPUClaim", owned)) == ALLOWED

    at_desk(story)


def test_raw_pod_is_held_to_its_budget_and_kubevirts_launcher_is_not() -> None:
    async def story(desk: Desk) -> None:
        limits = {"team": BudgetEntry(resource_limits={H100: 1})}
        await desk.count(budgets=limits, over={"default": ["team"]})
        body = pod(LAUNCHER, gpus("2", H100))
        assert sentence(await desk.reviewer.check(creating("Pod", body))).startswith("BudgetExceeded")
        assert await desk.reviewer.check(creating("Pod", body, user=KUBEVIRT)) == ALLOWED

    at_desk(story)


def test_pod_without_devices_is_let_through_without_a_look_at_the_ledger() -> None:
    async def story(desk: Desk) -> None:
        assert await desk.reviewer.check(creating("Pod", pod({}, CPU))) == ALLOWED
        assert desk.log.reads == 0

    at_desk(story)


def test_what_is_none_of_our_business_is_allowed() -> None:
    async def story(desk: Desk) -> None:
        order = creating("GPUClaim", claim(500))
        for review in (
            replace(order, kind="Thing"),
            replace(order, group="example.com"),
            replace(order, operation="UPDATE"),
            replace(order, subresource="status"),
            replace(order, new=None),
            replace(order, new={"spec": {"className": "h100", "units": "many"}}),
            replace(order, new={"metadata": []}),
            Review("u", "", "", ""),
        ):
            assert await desk.reviewer.check(review) == ALLOWED
            assert await desk.reviewer.gate(review) == ALLOWED

    at_desk(story)


def gate_of(body: Json) -> Review:
    return creating("Pod", body, user=KUBEVIRT)


def test_gate_knows_a_class_that_has_just_been_made_and_needs_no_log() -> None:
    async def story(desk: Desk) -> None:
        desk.log.hangs = True
        assert await desk.reviewer.gate(gate_of(pod(LAUNCHER, gpus("1", H100)))) == ALLOWED
        await sell(desk)
        await asyncio.sleep(1.1)
        (operation,) = (await desk.reviewer.gate(gate_of(pod(LAUNCHER, gpus("1", H100))))).patch
        assert (operation["op"], operation["path"]) == ("add", "/spec/schedulingGates")

    at_desk(story)


async def _no_answer(*_: object, **__: object) -> Page:
    raise Unreachable("gpuclasses", "connection refused")


def test_gate_without_the_api_server_uses_the_ledger_and_without_both_fails_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Closed for launchers that may need a gate, and for no other pod."""

    async def story(desk: Desk) -> None:
        monkeypatch.setattr(type(desk.server), "list_page", _no_answer)
        wanted = gate_of(pod(LAUNCHER, gpus("1", H100)))
        closed = (await desk.reviewer.gate(wanted)).refusal
        assert closed is not None
        assert (closed.code, closed.reason) == (503, "ServiceUnavailable")
        assert "no binder has written the ledger yet" in closed.message
        kvm = {"limits": {"devices.kubevirt.io/kvm": "1", "cpu": "4"}}
        for body in (pod({}, gpus("1", H100)), pod(LAUNCHER, kvm), pod(LAUNCHER, gpus("0", H100)), {}):
            assert await desk.reviewer.gate(gate_of(body)) == ALLOWED
        await desk.count()
        await asyncio.sleep(1.1)
        assert (await desk.reviewer.gate(wanted)).patch

    at_desk(story)


def test_operator_hears_of_odd_classes_and_budgets_and_is_never_refused() -> None:
    async def story(desk: Desk) -> None:
        await sell(desk, default=True)
        second = {"metadata": {"name": "b"}, "spec": {"resourceName": H100, "default": True}}
        (warning,) = (await desk.reviewer.check(creating("GPUClass", second))).warnings
        assert warning.startswith(f"GPUClasses b, h100 are each the default of {H100}")
        await desk.count(budgets={"team": BudgetEntry(class_units={"h100": 9})})
        body = {
            "metadata": {"name": "team"},
            "spec": {"parent": "org", "classes": {"h100": 8}, "resources": {T4: 1}},
        }
        said = (await desk.reviewer.check(replace(creating("GPUBudget", body), operation="UPDATE"))).warnings
        assert [one.split()[0] for one in said] == ["parent", "no", "9"]
        await desk.server.create(GPU_BUDGETS, {"metadata": {"name": "team"}, "spec": {"parent": "org"}})
        gone = Review(
            "u", "gpu.cozystack.io", "GPUBudget", "DELETE", "org", old={"metadata": {"name": "org"}}
        )
        assert (await desk.reviewer.check(gone)).warnings == (
            "without their parent org these budgets allow nothing new: team",
        )

    at_desk(story)
