"""Decisions carried out late: a binder that was stopped and wakes up overwrites nothing (R1, R3, R10)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from binder.core.pin import spec_digest
from binder.effects.carry_out import Outcome, carry_out
from kube.port import MERGE, Json, ObjectKey, PatchOptions
from model.decisions import (
    BindClaim,
    CreateClaim,
    Decision,
    DeleteClaim,
    DeletePod,
    DeleteVmi,
    Keep,
    Kept,
    LetGo,
    LoseClaim,
    ObjectRef,
    PinLauncher,
    UngateLauncher,
    VmRef,
)
from model.kinds import BY_KIND
from model.meta import OwnerReference
from model.names import FINALIZER, GATE
from model.pods import Pod
from model.resources import GPU_CLAIMS, PODS, VIRTUAL_MACHINE_INSTANCES, Resource
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


class Touching:
    """A client beside which somebody patches the launcher as soon as its claim is Bound."""

    def __init__(self, server: ApiServer, patch: Json) -> None:
        self._server, self._touch = server, patch
        self.get, self.list_page, self.watch = server.get, server.list_page, server.watch
        self.create, self.replace, self.delete = server.create, server.replace, server.delete

    async def patch(self, key: ObjectKey, patch: Any, options: PatchOptions = MERGE) -> Json:
        done = await self._server.patch(key, patch, options)
        if key.resource == GPU_CLAIMS:
            await self._server.patch(ObjectKey(PODS, "virt-launcher-vm1", "default"), self._touch)
        return done


@pytest.mark.parametrize(
    ("touch", "is_pinned"),
    [
        ({"metadata": {"labels": {"someone": "was-here"}}}, True),
        ({"spec": {"schedulingGates": []}}, False),
    ],
    ids=["a label", "its gates"],
)
def test_launcher_that_was_touched_after_it_was_checked(touch: Json, is_pinned: bool) -> None:
    """R10: what does not matter to the pass holds nothing up, what does gets a new pass."""

    async def main(clock: Clock) -> None:
        server = await api_server(clock)
        pod = await server.create(PODS, pod_body(schedulingGates=[{"name": GATE}]))
        spec = Pod.model_validate(BY_KIND["Pod"].prune(pod)).spec
        pin = PinLauncher("default/vm1", ref_of(pod), "n", spec_digest(spec))
        done = await carry_out(Touching(server, touch), placing("n", pin), "one")
        assert (errors(done) == []) == is_pinned
        live = await server.get(ObjectKey(PODS, "virt-launcher-vm1", "default"))
        assert ("affinity" in live["spec"]) == is_pinned

    run_virtual(main)


def pod_body(**spec: object) -> Json:
    containers = {"containers": [{"name": "compute", "image": "x"}]}
    return {"metadata": {"name": "virt-launcher-vm1", "namespace": "default"}, "spec": containers | spec}


def ref_of(body: Json) -> ObjectRef:
    meta = body["metadata"]
    return ObjectRef(meta["namespace"], meta["name"], meta["uid"], meta["resourceVersion"])


async def names(server: ApiServer, resource: Resource) -> list[str]:
    return [item["metadata"]["name"] for item in (await server.list_page(resource)).items]


def test_lost_claim_holds_nothing_and_says_since_when_and_from_where() -> None:
    """R22; and bound again, nothing of it is left (R23)."""

    async def main(clock: Clock) -> None:
        server = await api_server(clock)
        await carry_out(server, placing("n"), "one")
        held = ref_of(await claim_of(server))
        lose = LoseClaim(
            "default/vm1", held, "n", "2026-12-01T01:00:00Z", VmRef("vm1", "v1"), "node n is gone", 1
        )
        assert errors(await carry_out(server, [lose], "one")) == []
        lost = (await claim_of(server))["status"]
        assert (
            lost["phase"],
            lost.get("nodeName"),
            lost["lostFrom"],
            lost["lostAt"],
            lost["vm"]["name"],
        ) == (
            "Lost",
            None,
            "n",
            "2026-12-01T01:00:00Z",
            "vm1",
        )
        (condition,) = lost["conditions"]
        assert (condition["status"], condition["reason"]) == ("False", "NodeLost")
        again = BindClaim("default/vm1", ref_of(await claim_of(server)), "m", None, "2026-12-01T02:00:00Z", 1)
        assert errors(await carry_out(server, [again], "one")) == []
        bound = (await claim_of(server))["status"]
        assert bound["phase"] == "Bound"
        assert not bound.keys() & {"lostFrom", "lostAt", "vm"}

    run_virtual(main)


def test_launcher_and_vmi_are_deleted_only_where_the_pass_saw_them() -> None:
    """R13, R21: what has gone on since, or was made anew under the name, is not deleted."""

    async def main(clock: Clock) -> None:
        server = await api_server(clock)
        pod = await server.create(PODS, pod_body())
        vmi_body = {"metadata": {"name": "vm1", "namespace": "default"}}
        vmi = await server.create(VIRTUAL_MACHINE_INSTANCES, vmi_body)
        key = ObjectKey(VIRTUAL_MACHINE_INSTANCES, "vm1", "default")
        vmi = await server.patch(key, {"status": {"phase": "Running", "nodeName": "n"}})
        late = [
            DeletePod("a", ref_of(pod), "Failed on n", "refused"),
            DeleteVmi("b", ref_of(vmi), "Running on m", "taint"),
        ]
        assert all("it is" in error for error in errors(await carry_out(server, late, "one")))
        other = ObjectRef("default", "virt-launcher-vm1", "another-uid")
        assert errors(await carry_out(server, [DeletePod("a", other, "Pending on no node", "")], "one")) == []
        assert await names(server, PODS) == ["virt-launcher-vm1"]
        now = [
            DeletePod("a", ref_of(pod), "Pending on no node", "refused"),
            DeleteVmi("b", ref_of(vmi), "Running on n", "taint"),
        ]
        for _ in range(2):
            assert errors(await carry_out(server, now, "one")) == []
        assert await names(server, PODS) == await names(server, VIRTUAL_MACHINE_INSTANCES) == []

    run_virtual(main)


def test_claim_of_a_vmi_that_has_gone_is_deleted_only_if_it_has() -> None:
    """R7: the log's silence is no proof."""

    async def main(clock: Clock) -> None:
        server = await api_server(clock)
        vmi = await server.create(
            VIRTUAL_MACHINE_INSTANCES, {"metadata": {"name": "vm1", "namespace": "default"}}
        )
        await carry_out(server, placing("n"), "one")
        claim = await claim_of(server)
        gone = ref_of(vmi)
        (error,) = errors(await carry_out(server, [DeleteClaim("c", ref_of(claim), gone)], "one"))
        assert "is there" in error
        earlier = [DeleteClaim("c", ref_of(claim), replace(gone, uid="an-earlier-one"))]
        assert errors(await carry_out(server, earlier, "one")) == []
        assert (await claim_of(server))["metadata"]["deletionTimestamp"]

    run_virtual(main)


def test_gate_comes_off_alone_and_finalizers_of_others_stay() -> None:
    """R30."""

    async def main(clock: Clock) -> None:
        server = await api_server(clock)
        gates = [{"name": "theirs"}, {"name": GATE}]
        pod = await server.create(PODS, pod_body(schedulingGates=gates))
        assert errors(await carry_out(server, [UngateLauncher("a", ref_of(pod))], "one")) == []
        live = await server.get(ObjectKey(PODS, "virt-launcher-vm1", "default"))
        assert live["spec"]["schedulingGates"] == [{"name": "theirs"}]
        assert "affinity" not in live["spec"]

        order = {"metadata": {"name": "o", "namespace": "default", "finalizers": ["example.com/theirs"]}}
        claim = await server.create(GPU_CLAIMS, order | {"spec": {"className": "h100", "units": 1}})
        key, ref = ObjectKey(GPU_CLAIMS, "o", "default"), ref_of(claim)
        for _ in range(2):
            assert errors(await carry_out(server, [Keep("c", Kept.CLAIM, ref)], "one")) == []
            assert (await server.get(key))["metadata"]["finalizers"] == ["example.com/theirs", FINALIZER]
        await server.delete(key)
        assert errors(await carry_out(server, [LetGo("c", Kept.CLAIM, ref)], "one")) == []
        assert (await server.get(key))["metadata"]["finalizers"] == ["example.com/theirs"]

    run_virtual(main)


class Busy:
    """A client beside which somebody changes a claim whenever it was read, so many times."""

    def __init__(self, server: ApiServer, times: int) -> None:
        self._server, self._left = server, times
        self.list_page, self.watch, self.patch = server.list_page, server.watch, server.patch
        self.create, self.replace, self.delete = server.create, server.replace, server.delete

    async def get(self, key: ObjectKey) -> Json:
        body = await self._server.get(key)
        if self._left:
            self._left -= 1
            await self._server.patch(key, {"metadata": {"labels": {"left": str(self._left)}}})
        return body


@pytest.mark.parametrize(("times", "is_kept"), [(2, True), (3, False)])
def test_finalizer_is_put_on_whatever_version_there_is(times: int, is_kept: bool) -> None:
    """R30: the status of a new order is written beside it; that is no failure of its set."""

    async def main(clock: Clock) -> None:
        server = await api_server(clock)
        order = {"metadata": {"name": "o", "namespace": "default"}}
        claim = await server.create(GPU_CLAIMS, order | {"spec": {"className": "h100", "units": 1}})
        keep = Keep("c", Kept.CLAIM, ref_of(claim))
        done = await carry_out(Busy(server, times), [keep], "one")
        live = await server.get(ObjectKey(GPU_CLAIMS, "o", "default"))
        assert (errors(done) == [], FINALIZER in live["metadata"].get("finalizers", [])) == (is_kept, is_kept)

    run_virtual(main)
