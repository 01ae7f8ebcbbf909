"""Opens what a process works with: the cluster's API server and the log, real or embedded."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from eventlog.adapters.embedded import EmbeddedServer
from eventlog.adapters.redis_presence import RedisPresence
from eventlog.adapters.redis_presence import connect as connect_presence
from eventlog.adapters.redis_streams import RedisLog
from eventlog.adapters.redis_streams import connect as connect_log
from eventlog.errors import LogError
from gpubinder.errors import CommandError
from gpubinder.settings import ClusterChoice, LogChoice, Settings
from kube.adapters.http import HttpClient
from kube.adapters.http import connect as connect_cluster
from kube.errors import ApiError, Forbidden, Misconfigured, Unauthorized
from kube.port import ObjectKey
from model.resources import (
    GPU_BUDGETS,
    GPU_CLAIMS,
    GPU_CLASSES,
    GROUP,
    NAMESPACES,
    NODES,
    VERSION,
)
from simulator.cluster import api_server, living
from simulator.http_face import serving, write_kubeconfig
from simulator.objects import gpu_node

DEMO_GPU = "nvidia.com/GH100_H100_SXM5_80GB"
UNITS_PER_NODE = 4
FED = "fed from files"
"""In the place of a cluster's uid: the log holds what files told, and any cluster may have it."""
START_S = 15.0
"""How long an API server may take to say what it serves."""
_CHECK = "check that the API server runs and that --kubeconfig and --context name it"


def now_ms() -> int:
    """The wall clock."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class LogStore:
    """The log and, beside it, who watches."""

    log: RedisLog
    presence: RedisPresence
    url: str
    embedded: EmbeddedServer | None = None

    def check_embedded(self) -> None:
        """Raises CommandError when our own server has ended: nobody else starts it again."""
        if self.embedded is not None and not self.embedded.is_running:
            raise CommandError(
                "the embedded Redis has ended; start gpubinder again, on the same --data if any"
            )


class OtherLog(CommandError):
    """The log is that of another cluster."""


@asynccontextmanager
async def open_log(choice: LogChoice, cluster: str, consumer: str) -> AsyncIterator[LogStore]:
    """The log, checked. Raises CommandError with the one line for the user."""
    async with AsyncExitStack() as stack:
        embedded, url = None, choice.url
        try:
            if url is None:
                embedded = EmbeddedServer(choice.folder)
                stack.callback(embedded.stop)
                embedded.start()
                url = embedded.url
            log = await connect_log(url, cluster, consumer, now_ms)
        except LogError as error:
            raise CommandError(str(error)) from None
        stack.push_async_callback(log.close)
        presence = connect_presence(url, cluster)
        stack.push_async_callback(presence.close)
        yield LogStore(log, presence, url, embedded)


@asynccontextmanager
async def open_cluster(choice: ClusterChoice) -> AsyncIterator[HttpClient]:
    """A client of the cluster, checked. Raises CommandError with the one line for the user."""
    async with reach_cluster(choice, _check_cluster) as client:
        yield client


async def _answers(client: HttpClient) -> None:
    await client.version()


@asynccontextmanager
async def reach_cluster(
    choice: ClusterChoice, check: Callable[[HttpClient], Awaitable[None]] = _answers
) -> AsyncIterator[HttpClient]:
    """A client of a cluster that may not have our kinds. Raises CommandError."""
    async with AsyncExitStack() as stack:
        kubeconfig = choice.kubeconfig
        if choice.is_embedded:
            kubeconfig = await stack.enter_async_context(_simulated(choice))
        try:
            client = await stack.enter_async_context(await connect_cluster(kubeconfig, choice.context))
            async with asyncio.timeout(START_S):
                await check(client)
        except TimeoutError:
            raise CommandError(f"{client.url} gives no answer within {START_S:.0f} s; {_CHECK}") from None
        except (Misconfigured, ApiError) as error:
            raise CommandError(advice(error)) from None
        yield client


async def check_cluster_of_log(
    log: RedisLog, client: HttpClient, settings: Settings, *, is_running: bool = False
) -> None:
    """Two clusters in one log would sell each other's units. Raises CommandError when it is another's.

    A simulated cluster ends with its process: a log of our own begins anew with the next one.
    """
    try:
        namespace = await client.get(ObjectKey(NAMESPACES, "kube-system"))
        uid = str(namespace["metadata"]["uid"])
        owner = await log.cluster_of(uid)
        is_our_last = settings.cluster_choice.is_embedded and settings.log_choice.url is None
        if owner == FED or (owner != uid and is_our_last and not is_running):
            await log.hand_over(uid)
            return
    except LogError as error:
        raise CommandError(" ".join(str(error).split())) from None
    except ApiError as error:
        raise CommandError(advice(error)) from None
    if owner != uid:
        raise OtherLog(
            f"the log under --cluster {settings.cluster} is that of another cluster (kube-system {owner}, "
            f"not {uid}); give each cluster a --cluster name of its own"
        )


async def check_log_is_for_files(log: RedisLog, cluster: str) -> None:
    """A cluster's VMs must not be placed on nodes that a file alone knows. Raises CommandError."""
    try:
        owner = await log.cluster_of(FED)
    except LogError as error:
        raise CommandError(" ".join(str(error).split())) from None
    if owner != FED:
        raise CommandError(
            f"the log under --cluster {cluster} is that of a cluster (kube-system {owner}), whose VMs would "
            "be placed by what the file tells; give the file a --cluster name of its own"
        )


@asynccontextmanager
async def _simulated(choice: ClusterChoice) -> AsyncIterator[str]:
    """The simulated cluster behind its HTTP face; gives a kubeconfig's path."""
    server = await api_server(now_ms, secrets.randbits(63))
    async with AsyncExitStack() as stack:
        try:
            url = await stack.enter_async_context(serving(server, choice.port))
        except OSError as error:
            text = f"cannot serve the simulated API server on port {choice.port}: {error.strerror}"
            raise CommandError(f"{text}; choose another --simulator-port, or 0 for a free one") from None
        await stack.enter_async_context(living(server, now_ms))
        for number in range(1, choice.nodes + 1):
            await server.create(NODES, gpu_node(f"gpu-{number}", {DEMO_GPU: UNITS_PER_NODE}))
        folder = stack.enter_context(TemporaryDirectory(prefix="gpubinder-"))
        path = Path(folder) / "kubeconfig"
        write_kubeconfig(path, url)
        yield str(path)


async def _check_cluster(client: HttpClient) -> None:
    served = await client.served(GROUP, VERSION)
    missing = [kind.kind for kind in (GPU_CLASSES, GPU_CLAIMS, GPU_BUDGETS) if kind.plural not in served]
    if missing:
        raise CommandError(
            f"the API server does not serve {', '.join(missing)} of {GROUP}/{VERSION}; "
            "install them with: gpubinder crds | kubectl apply --server-side -f -"
        )


def advice(error: Exception) -> str:
    """What a cluster's answer means for whoever started us, in one line with the next step."""
    text = " ".join(str(error).split())
    if isinstance(error, Unauthorized):
        return f"{text}; the credentials of the kubeconfig are not accepted: log in again or choose --context"
    if isinstance(error, Forbidden):
        return f"{text}; this account lacks the right: gpubinder rbac prints what each process needs"
    if isinstance(error, ApiError):
        return f"{text}; {_CHECK}"
    return text
