"""Decisions carried out late: a binder that was stopped and wakes up overwrites nothing (R1, R3, R10)."""

from __future__ import annotations

from binder.effects.carry_out import Outcome, carry_out
from kube.port import Json, ObjectKey
from model.decisions import BindClaim, CreateClaim, Decision, ObjectRef, PinLauncher, VmRef
from model.meta import OwnerReference
from model.resources import GPU_CLAIMS, PODS
from simulator.apiserver.server import ApiServer
from simulator.cluster import api_server
from simulator.virtual_time import Clock, run_virtual

OWNER = OwnerReference(
    api_version="kubevirt.io/v1", kind="VirtualMachineInstance", name="vm1", uid="u1", controller=True
)
CLAIM = ObjectRef("default", "vm1-h100-u1")


def placing(node: str, *more: Decision) -> list[Decision]:
    create = CreateClaim("default/vm1", CLAIM, "h100", 1, OWNER)
    bind = BindClaim("default/vm1", CLAIM, node, VmRef("vm1", "v1"), "2026-12-01T00:00:00Z", 1)
    return [create, bind, *more]


def errors(outcomes: list[Outcome]) -> list[str]:
    return [outcome.error for outcome in outcomes if outcome.error]


async def claim_of(server: ApiServer) -> Json:
    return await server.get(ObjectKey(GPU_CLAIMS, CLAIM.name, CLAIM.namespace))


def test_claim_that_a_successor_has_bound_is_not_bound_again() -> None:
    async def main(clock: Clock) -> None:
        server = await api_server(clock)
        assert errors(await carry_out(server, placing("of-the-successor"), "new")) == []
        late = await carry_out(server, placing("of-the-stopped-one"), "old")
        assert len(errors(late)) == 1
        assert (await claim_of(server))["status"]["nodeName"] == "of-the-successor"

    run_virtual(main)


def test_claim_created_by_a_try_whose_answer_was_lost_is_gone_on_with() -> None:
    async def main(clock: Clock) -> None:
        server = await api_server(clock)
        await carry_out(server, placing("n")[:1], "one")
        assert errors(await carry_out(server, placing("n"), "one")) == []
        assert (await claim_of(server))["status"]["phase"] == "Bound"

    run_virtual(main)


def test_nothing_is_booked_for_a_launcher_that_is_not_what_the_pass_saw() -> None:
    async def main(clock: Clock) -> None:
        server = await api_server(clock)
        pod = await server.create(
            PODS,
            {
                "metadata": {"name": "virt-launcher-vm1", "namespace": "default"},
                "spec": {"containers": [{"name": "compute", "image": "x"}]},
            },
        )
        ref = ObjectRef("default", "virt-launcher-vm1", pod["metadata"]["uid"])
        done = await carry_out(
            server, placing("n", PinLauncher("default/vm1", ref, "n", "another digest")), "one"
        )
        assert "has changed since the pass" in errors(done)[0]
        assert (await server.list_page(GPU_CLAIMS)).items == []

    run_virtual(main)
