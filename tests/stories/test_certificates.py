"""Certificates change under load and no call of a real API server fails; two replicas share them."""

from __future__ import annotations

import asyncio
import base64
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from prometheus_client import CollectorRegistry

from admission.adapters.https import Webhooks, serving
from admission.adapters.tls import ShownCertificate
from admission.certificate_keeper import CONFIGURATIONS, CertificateKeeper, Pace
from admission.certificates import Wish, first_material
from admission.reviewing import Reviewer, Rules
from admission.webhooks import GATE_CONFIGURATION, Address
from eventlog.adapters.memory import MemoryLog
from gpubinder.admission_metrics import AdmissionObserver
from kube.errors import NotFound
from kube.port import ObjectKey, PatchOptions, PatchType
from model.names import GATE
from model.resources import MUTATING_WEBHOOKS, SECRETS
from tests.stories.admit_process import NAMESPACE, Balancer, called_at, gpubinder_admit, now_ms
from tests.stories.conftest import Stage
from tests.stories.test_admit import in_force, launcher, make, ungated

__all__ = ["ungated"]

pytestmark = [pytest.mark.envtest, pytest.mark.allow_hosts(["127.0.0.1"]), pytest.mark.timeout(180)]

QUICK = Pace(life_s=9, look_s=0.3, overlap_s=1.5)
"""An authority is replaced after six seconds; what a year is for is nine seconds here."""
LOAD_S = 25.0


@dataclass
class Replica(AdmissionObserver):
    """One replica in this process; its certificates live for seconds."""

    shown: ShownCertificate = field(default_factory=ShownCertificate)
    certificates: int = 0
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        AdmissionObserver.__init__(self, CollectorRegistry())

    def certificate_shown(self, until: datetime) -> None:
        self.certificates += 1

    def certificates_unkept(self, why: str) -> None:
        self.complaints.append(why)


@asynccontextmanager
async def replica(stage: Stage, secret: str) -> AsyncIterator[tuple[Replica, int]]:
    one, place = Replica(), ObjectKey(SECRETS, secret, NAMESPACE)
    names = (*Address(NAMESPACE).names, "127.0.0.1")
    keeper = CertificateKeeper(stage.client, place, names, one.shown, one, lambda: datetime.now(UTC), QUICK)
    await keeper.look()
    loop = asyncio.create_task(keeper.run())
    reviewer = Reviewer(MemoryLog(now_ms), stage.client, now_ms, Rules())
    webhooks, logger = Webhooks(reviewer.gate, reviewer.check, one), logging.getLogger("tests.stories")
    try:
        async with serving(webhooks, ("127.0.0.1", 0), one.shown.context, logger) as port:
            yield one, port
    finally:
        loop.cancel()
        await reviewer.close()


async def test_certificates_change_under_load_and_no_call_fails(ungated: Stage) -> None:
    """Every launcher is gated at the first try, over several authorities and certificates."""
    stage, secret = ungated, f"{ungated.namespace}-tls"
    async with (
        replica(stage, secret) as (one, first),
        replica(stage, secret) as (two, second),
        Balancer([first, second]).open() as url,
        called_at(stage.client, url),
    ):
        await in_force(stage)
        loop = asyncio.get_running_loop()
        ends_s, made = loop.time() + LOAD_S, 0
        while loop.time() < ends_s:
            body = await make(stage, f"vm-{made}", launcher(stage))
            assert body["spec"]["schedulingGates"] == [{"name": GATE}]
            made += 1
            await asyncio.sleep(0.03)
    assert made >= 100
    assert min(one.certificates, two.certificates) >= 3
    assert one.complaints == two.complaints == []
    await stage.client.delete(ObjectKey(SECRETS, secret, NAMESPACE))


async def test_replicas_that_start_together_share_one_secret(ungated: Stage) -> None:
    stage, secret = ungated, f"{ungated.namespace}-tls"
    options = ("--admission-secret", secret)
    async with AsyncExitStack() as stack:
        ports = list(await asyncio.gather(*(_started(stage, stack, n, options) for n in range(2))))
        held = (await stage.client.get(ObjectKey(SECRETS, secret, NAMESPACE)))["data"]
        want = base64.b64decode(held["tls.crt"]).decode()
        assert [await _shown_by(port) for port in ports] == [want] * 2
        async with Balancer(ports).open() as url, called_at(stage.client, url):
            await in_force(stage)
            assert await _trusted(stage) == {held["ca.crt"]}
    await stage.client.delete(ObjectKey(SECRETS, secret, NAMESPACE))


async def _started(stage: Stage, stack: AsyncExitStack, number: int, options: tuple[str, ...]) -> int:
    """A process beside others that start; gives its port."""
    log = stage.folder / f"replica-{number}.log"
    running = gpubinder_admit(stage.kubeconfig, stage.redis, log, *options)
    process = await asyncio.to_thread(running.__enter__)
    stack.callback(running.__exit__, None, None, None)
    return process.port


async def test_certificate_of_a_folder_is_shown_and_no_secret_is_made(ungated: Stage) -> None:
    """As cert-manager mounts it, which writes the caBundle, too: here the test does."""
    stage, secret = ungated, f"{ungated.namespace}-tls"
    material, folder = first_material(Wish(("127.0.0.1",), datetime.now(UTC))), stage.folder / "tls"
    folder.mkdir()
    (folder / "tls.crt").write_bytes(material.serving.certificate)
    (folder / "tls.key").write_bytes(material.serving.key)
    options = ("--cert-dir", str(folder), "--admission-secret", secret)
    with gpubinder_admit(stage.kubeconfig, stage.redis, stage.folder / "admit.log", *options) as one:
        async with called_at(stage.client, f"https://127.0.0.1:{one.port}"):
            key = ObjectKey(MUTATING_WEBHOOKS, GATE_CONFIGURATION)
            bundle = base64.b64encode(material.bundle).decode()
            add = {"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": bundle}
            await stage.client.patch(key, [add], PatchOptions(PatchType.JSON))
            await in_force(stage)
    with pytest.raises(NotFound):
        await stage.client.get(ObjectKey(SECRETS, secret, NAMESPACE))


async def _shown_by(port: int) -> str:
    return await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", port))


async def _trusted(stage: Stage) -> set[str]:
    return {
        webhook["clientConfig"]["caBundle"]
        for key in CONFIGURATIONS
        for webhook in (await stage.client.get(key))["webhooks"]
    }
