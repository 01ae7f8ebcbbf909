"""The live list of claims: all of them, and which are not as they were known (R3)."""

from __future__ import annotations

from typing import cast

from binder.core.state import Key
from binder.live import PAGE, Live, list_claims
from kube.port import MERGE_STATUS, ObjectKey, Page, Reader
from model.claims import GPUClaim
from model.resources import GPU_CLAIMS
from simulator.apiserver.server import ApiServer
from simulator.cluster import api_server
from simulator.virtual_time import Clock, run_virtual

NAMESPACE = "default"


def unreported(name: str, why: str) -> None:
    """Nothing is to be reported."""
    raise AssertionError(f"{name}: {why}")


async def order(server: ApiServer, name: str) -> None:
    meta = {"name": name, "namespace": NAMESPACE}
    await server.create(GPU_CLAIMS, {"metadata": meta, "spec": {"className": "h100", "units": 1}})


def test_claims_that_are_known_are_not_read_again_and_the_others_are_named() -> None:
    async def main(clock: Clock) -> None:
        server, known = await api_server(clock), dict[Key, GPUClaim]()
        for number in range(3):
            await order(server, f"o{number}")
        first = await list_claims(server, unreported, known)
        keys = [(NAMESPACE, f"o{number}") for number in range(3)]
        assert (list(first.claims), first.changed) == (keys, keys)

        again = await list_claims(server, unreported, first.claims)
        assert again.changed == []
        assert all(again.claims[key] is first.claims[key] for key in keys)

        bound = {"status": {"phase": "Bound", "nodeName": "n"}}
        await server.patch(ObjectKey(GPU_CLAIMS, "o1", NAMESPACE), bound, MERGE_STATUS)
        await server.delete(ObjectKey(GPU_CLAIMS, "o2", NAMESPACE))
        await order(server, "o2")
        await order(server, "o3")
        last = await list_claims(server, unreported, again.claims)
        assert last.changed == [(NAMESPACE, name) for name in ("o1", "o2", "o3")]
        assert last.claims[NAMESPACE, "o1"].bound_node == "n"
        assert last.claims[NAMESPACE, "o0"] is first.claims[NAMESPACE, "o0"]

    run_virtual(main)


def test_list_of_many_pages_is_one_list() -> None:
    async def main(clock: Clock) -> None:
        server = await api_server(clock)
        for number in range(PAGE + 1):
            await order(server, f"o{number:04}")
        live: Live = await list_claims(server, unreported, {})
        assert len(live.claims) == len(live.changed) == PAGE + 1

    run_virtual(main)


class Broken:
    """A server whose claims have lost their schema."""

    async def list_page(self, *_: object, **__: object) -> Page:
        """One claim, which no version of ours wrote."""
        meta = {"name": "o", "namespace": NAMESPACE, "uid": "u", "resourceVersion": "2"}
        return Page([{"metadata": meta, "spec": {"className": 7}}], "2", "")


def test_claim_that_cannot_be_read_is_reported_and_named_as_changed() -> None:
    """So that what was known of it before is let go."""

    async def main(_: Clock) -> None:
        told = list[str]()
        reader = cast("Reader", Broken())
        live = await list_claims(reader, lambda name, why: told.append(f"{name}: {why}"), {})
        assert (live.claims, live.changed) == ({}, [(NAMESPACE, "o")])
        assert len(told) == 1
        assert told[0].startswith("GPUClaim default/o: spec.")

    run_virtual(main)
