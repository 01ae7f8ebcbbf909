"""The wiring of admission: reviewer, certificates and server over one client and one log."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from admission.adapters.https import Webhooks, serving
from admission.adapters.tls import CertificateFolder, ShownCertificate
from admission.certificate_keeper import CertificateKeeper
from admission.ledger_source import LedgerLog
from admission.reviewing import Reviewer
from eventlog.adapters.redis_connection import open_redis
from eventlog.adapters.redis_streams import RedisLog
from eventlog.adapters.redis_streams import connect as connect_log
from eventlog.entries import Stored
from eventlog.errors import LogRefused
from gpubinder.admission_metrics import AdmissionObserver
from gpubinder.errors import CommandError
from gpubinder.logs import LOGGER, say
from gpubinder.settings import AdmissionChoice, Settings
from gpubinder.stores import check_cluster_of_log, now_ms
from kube.adapters.http import HttpClient
from kube.port import Client, ObjectKey
from model.resources import SECRETS

FOLDER_LOOK_S = 5.0
"""Between two looks at a certificate's files."""
_FIRST_LOOK_S = 0.05
_INFO = 20


@dataclass(slots=True)
class LedgerConnection:
    """The log of a process that can do without: connected to when it can be (LedgerLog)."""

    settings: Settings
    client: HttpClient
    _log: RedisLog | None = None

    async def recall(self, projection: str) -> dict[str, bytes]:
        """See eventlog.port.Journal. Raises LogError."""
        return await (await self._connected()).recall(projection)

    async def read_range(self, after_id: str, limit: int) -> list[Stored]:
        """See eventlog.port.EventReader. Raises LogError."""
        return await (await self._connected()).read_range(after_id, limit)

    async def check_url(self) -> None:
        """Makes no request. Raises CommandError for a URL that will never be one."""
        try:
            await open_redis(self._url).aclose()
        except LogRefused as error:
            raise CommandError(str(error)) from None

    async def close(self) -> None:
        """Close the connection, if there is one."""
        if self._log is not None:
            await self._log.close()

    @property
    def _url(self) -> str:
        return self.settings.log_choice.url or ""

    async def _connected(self) -> RedisLog:
        if self._log is None:
            log = await connect_log(self._url, self.settings.cluster, "admit", now_ms)
            try:
                await check_cluster_of_log(log, self.client, self.settings)
            except BaseException as error:
                await log.close()
                if isinstance(error, CommandError):
                    raise LogRefused(str(error)) from None
                raise
            self._log = log
        return self._log


def admission_loops(
    client: Client, log: LedgerLog, choice: AdmissionChoice, observer: AdmissionObserver
) -> list[Coroutine[Any, Any, None]]:
    """What serves admission. Raises CommandError for a folder without a certificate."""
    shown = ShownCertificate()
    return [
        _keep_certificates(client, choice, shown, observer),
        _serve(client, log, choice, (shown, observer)),
    ]


def _keep_certificates(
    client: Client, choice: AdmissionChoice, shown: ShownCertificate, observer: AdmissionObserver
) -> Coroutine[Any, Any, None]:
    if choice.certificate_folder is not None:
        folder = CertificateFolder(choice.certificate_folder, shown)
        try:
            folder.look()
        except ValueError as error:
            raise CommandError(f"--cert-dir: {error}") from None
        return _watch_folder(folder, shown, observer)
    place = ObjectKey(SECRETS, choice.secret, choice.address.namespace)
    names = (*choice.address.names, *choice.names)
    return CertificateKeeper(client, place, names, shown, observer, lambda: datetime.now(UTC)).run()


async def _watch_folder(
    folder: CertificateFolder, shown: ShownCertificate, observer: AdmissionObserver
) -> None:
    is_new = True
    while True:
        if is_new and shown.until is not None:
            observer.certificate_shown(shown.until)
        await asyncio.sleep(FOLDER_LOOK_S)
        try:
            is_new = folder.look()
        except ValueError as error:
            observer.certificates_unkept(str(error))
            is_new = False


async def _serve(
    client: Client, log: LedgerLog, choice: AdmissionChoice, seen: tuple[ShownCertificate, AdmissionObserver]
) -> None:
    """Once there is a certificate. Raises CommandError for a port in use."""
    shown, observer = seen
    while not shown.is_shown:
        await asyncio.sleep(_FIRST_LOOK_S)
    reviewer = Reviewer(log, client, now_ms, choice.rules)
    webhooks = Webhooks(reviewer.gate, reviewer.check, observer)
    try:
        async with serving(webhooks, (None, choice.port), shown.context, LOGGER.getChild("http")) as port:
            say(_INFO, "admission_serving", port=port)
            observer.is_serving = True
            await asyncio.Event().wait()
    except OSError as error:
        text = f"cannot serve admission on port {choice.port}: {error.strerror}"
        raise CommandError(f"{text}; choose another --admission-port") from None
    finally:
        await reviewer.close()
