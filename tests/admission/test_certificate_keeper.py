"""Replicas share certificates in a Secret, and have them trusted before they show them."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from admission.certificate_keeper import CONFIGURATIONS, CertificateKeeper, Pace
from admission.certificates import Pair, Unusable, split_bundle
from admission.webhooks import Address, check_webhooks, gate_webhook
from kube.errors import Conflict
from kube.port import Json, ObjectKey
from model.resources import MUTATING_WEBHOOKS, NAMESPACES, SECRETS, VALIDATING_WEBHOOKS
from simulator.apiserver.server import ApiServer
from simulator.cluster import api_server
from simulator.virtual_time import Clock, run_virtual

ADDRESS = Address()
SECRET = ObjectKey(SECRETS, "gpubinder-admission-tls", ADDRESS.namespace)
QUICK = Pace(life_s=900, look_s=10, overlap_s=60)
"""A life of a quarter of an hour: rotated at ten minutes."""


def signer_of(certificate: bytes, authorities: Iterable[bytes]) -> bytes:
    issuer = Pair(certificate, b"").parsed().issuer
    (signer,) = [one for one in authorities if Pair(one, b"").parsed().subject == issuer]
    return signer


@dataclass
class Replica:
    """What one replica shows, in order, and what it complains about."""

    clock: Clock
    keeper: CertificateKeeper = field(init=False)
    shown: list[bytes] = field(default_factory=list)
    shown_at_ms: list[int] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def show(self, certificate: bytes, key: bytes) -> bool:
        if self.shown[-1:] == [certificate]:
            return False
        self.shown.append(certificate)
        self.shown_at_ms.append(self.clock())
        return True

    def certificate_shown(self, until: datetime) -> None:
        assert until.tzinfo is UTC

    def certificates_unkept(self, why: str) -> None:
        self.complaints.append(why)


@dataclass
class Place:
    server: ApiServer
    clock: Clock

    def replica(self, pace: Pace = QUICK) -> Replica:
        replica = Replica(self.clock)

        def now() -> datetime:
            return datetime.fromtimestamp(self.clock() / 1000, UTC)

        replica.keeper = CertificateKeeper(self.server, SECRET, ADDRESS.names, replica, replica, now, pace)
        return replica

    async def install(self) -> None:
        await self.server.create(MUTATING_WEBHOOKS, gate_webhook(ADDRESS))
        await self.server.create(VALIDATING_WEBHOOKS, check_webhooks(ADDRESS))

    async def trusted(self) -> set[bytes]:
        """The bundles of all webhooks."""
        found = set()
        for key in CONFIGURATIONS:
            for webhook in (await self.server.get(key))["webhooks"]:
                found.add(base64.b64decode(webhook["clientConfig"].get("caBundle", "")))
        return found


def at_place(story: Callable[[Place], Awaitable[None]]) -> None:
    async def main(clock: Clock) -> None:
        server = await api_server(clock)
        await server.create(NAMESPACES, {"metadata": {"name": ADDRESS.namespace}})
        await story(Place(server, clock))

    run_virtual(main)


def test_of_replicas_that_start_together_all_show_the_certificate_of_one() -> None:
    async def story(place: Place) -> None:
        await place.install()
        replicas = [place.replica() for _ in range(3)]
        await asyncio.gather(*(one.keeper.look() for one in replicas))
        assert len({tuple(one.shown) for one in replicas}) == 1
        (bundle,) = await place.trusted()
        assert len(split_bundle(bundle)) == 1

    at_place(story)


def test_rotation_shows_nothing_that_the_configurations_do_not_trust_for_a_while() -> None:
    """For six lives, with two replicas that look at different times."""

    async def story(place: Place) -> None:
        await place.install()
        one, two = place.replica(), place.replica()
        loops = [asyncio.create_task(one.keeper.run())]
        await asyncio.sleep(3)
        loops.append(asyncio.create_task(two.keeper.run()))
        trusted_since: dict[bytes, int] = {}
        for _ in range(4500):
            await asyncio.sleep(1)
            (bundle,) = await place.trusted()
            for authority in split_bundle(bundle):
                trusted_since.setdefault(authority, place.clock())
        assert len(one.shown) > 5
        assert set(two.shown) == set(one.shown)
        assert len(trusted_since) > 5
        for replica in (one, two):
            for certificate, at_ms in zip(replica.shown[1:], replica.shown_at_ms[1:], strict=True):
                since_ms = trusted_since[signer_of(certificate, trusted_since)]
                assert at_ms - since_ms >= QUICK.overlap_s * 1000 - 1000
        assert one.complaints == two.complaints == []
        for task in loops:
            task.cancel()

    at_place(story)


def test_new_authority_waits_for_the_configurations() -> None:
    """Not installed, nothing has trusted it: the old one signs on."""

    async def story(place: Place) -> None:
        one = place.replica()
        await one.keeper.look()
        await asyncio.sleep(610)
        await one.keeper.look()
        await asyncio.sleep(70)
        await one.keeper.look()
        assert len(one.shown) == 2
        await place.install()
        await one.keeper.look()
        (bundle,) = await place.trusted()
        assert len(split_bundle(bundle)) == 2
        await asyncio.sleep(30)
        await one.keeper.look()
        assert len(one.shown) == 2
        await asyncio.sleep(31)
        await one.keeper.look()
        assert len(one.shown) == 3

    at_place(story)


def test_configuration_that_is_applied_anew_is_made_good() -> None:
    async def story(place: Place) -> None:
        await place.install()
        one = place.replica()
        await one.keeper.look()
        before = await place.trusted()
        for key in CONFIGURATIONS:
            await place.server.delete(key)
        await place.install()
        await one.keeper.look()
        assert await place.trusted() == before
        versions = [(await place.server.get(key))["metadata"]["resourceVersion"] for key in CONFIGURATIONS]
        await one.keeper.look()
        after = [(await place.server.get(key))["metadata"]["resourceVersion"] for key in CONFIGURATIONS]
        assert after == versions

    at_place(story)


def test_secret_of_somebody_else_is_left_alone() -> None:
    async def story(place: Place) -> None:
        body: Json = {"metadata": {"name": SECRET.name, "namespace": SECRET.namespace}, "data": {"a": "eA=="}}
        await place.server.create(SECRETS, body)
        with pytest.raises(
            Unusable, match=r"holds no certificates of gpubinder .*; delete it, or give another"
        ):
            await place.replica().keeper.look()
        assert (await place.server.get(SECRET))["data"] == {"a": "eA=="}

    at_place(story)


def test_loop_goes_on_after_an_error_and_says_it() -> None:
    async def story(place: Place) -> None:
        await place.server.delete(ObjectKey(NAMESPACES, ADDRESS.namespace))
        place.server.finalize_namespace(ADDRESS.namespace)
        one = place.replica()
        loop = asyncio.create_task(one.keeper.run())
        await asyncio.sleep(15)
        assert len(one.complaints) == 2
        await place.server.create(NAMESPACES, {"metadata": {"name": ADDRESS.namespace}})
        await asyncio.sleep(10)
        assert len(one.shown) == 1
        loop.cancel()

    at_place(story)


def test_secret_that_others_change_all_the_time_is_given_up_for_this_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(place: Place) -> None:
        async def refused(*_: object, **__: object) -> Json:
            raise Conflict("Secret", "the object has been modified", 409, "Conflict")

        monkeypatch.setattr(type(place.server), "create", refused)
        with pytest.raises(Conflict):
            await place.replica().keeper.look()

    at_place(story)
