"""Which of several binders is active: a `coordination.k8s.io` Lease (15 s, renewed every 2 s).

`leaseTransitions` is the epoch. A Lease does not fence: so a holder stops before its lease can have run out
for others (`is_ours_for`), and the log compares epochs. Expiry is judged by how long *we* have seen the
record unchanged, never by the timestamps in it: clocks differ.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from kube.port import Client, Json, ObjectKey
from model.instants import rfc3339
from model.resources import LEASES

LEASE_S = 15
RENEW_WITHIN_S = 10
RETRY_S = 2.0
"""client-go's defaults; KubeVirt's too. A holder that cannot renew stops 5 s before its lease runs out."""


@dataclass(frozen=True, slots=True)
class LeaseName:
    """Where the Lease is, and who we are."""

    namespace: str
    name: str
    identity: str


class Leader:
    """Acquires and renews the Lease; `now_ms` is for display, `report` hears why it is out of reach."""

    def __init__(
        self, client: Client, lease: LeaseName, now_ms: Callable[[], int], report: Callable[[str], None]
    ) -> None:
        self._client = client
        self._lease = lease
        self._now_ms = now_ms
        self._report = report
        self._reported = ""
        self._seen: tuple[str, float] = ("", 0.0)
        self._renewed_at = float("-inf")
        self._looked_at = float("-inf")
        self.epoch = -1
        self.holder = ""

    @property
    def stands_by(self) -> bool:
        """Whether another holds the lease, as of a look at it not longer ago than a holder may be silent."""
        is_seen = self._looked_at + LEASE_S > _monotonic()
        return is_seen and self.holder not in ("", self._lease.identity)

    def is_ours_for(self, seconds: float) -> bool:
        """Whether the lease is still ours for longer than `seconds`: the rule for starting a write."""
        return self._renewed_at + RENEW_WITHIN_S > _monotonic() + seconds

    async def acquire(self) -> int:
        """Wait until the lease is ours; returns the epoch."""
        while not await self._try():
            await asyncio.sleep(RETRY_S * random.uniform(0.9, 1.1))  # noqa: S311 - spreads the contenders
        return self.epoch

    async def keep(self) -> None:
        """Renew until it fails for too long; returns when the lease is no longer ours."""
        while self.is_ours_for(0):
            await asyncio.sleep(RETRY_S)
            await self._try()

    async def release(self) -> None:
        """Let a successor begin at once instead of after the lease has run out."""
        try:
            body = await self._client.get(self._key)
            if body["spec"].get("holderIdentity") == self._lease.identity:
                body["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1}
                await self._client.replace(self._key, body)
        except ApiError:
            return
        finally:
            self._renewed_at = float("-inf")

    @property
    def _key(self) -> ObjectKey:
        return ObjectKey(LEASES, self._lease.name, self._lease.namespace)

    async def _try(self) -> bool:
        started = _monotonic()
        try:
            held = await self._claim_or_renew()
        except ApiError as error:
            if self._reported != str(error):  # once per cause: it is tried again every two seconds
                self._reported = str(error)
                self._report(self._reported)
            return False
        self._reported, self._looked_at = "", _monotonic()
        if held:
            self._renewed_at = started
        return held

    async def _claim_or_renew(self) -> bool:
        try:
            body = await self._client.get(self._key)
        except NotFound:
            try:
                await self._client.create(LEASES, self._body({}, transitions=0))
            except AlreadyExists:
                return False  # another was first
            self.epoch, self.holder = 0, self._lease.identity
            return True
        spec = body.get("spec") or {}
        self.holder = spec.get("holderIdentity") or ""
        transitions = int(spec.get("leaseTransitions") or 0)
        if self.holder != self._lease.identity:
            if self.holder and not self._has_run_out(body):
                return False
            transitions += 1
        try:
            await self._client.replace(self._key, self._body(body, transitions))
        except Conflict:
            return False
        self.epoch, self.holder = transitions, self._lease.identity
        return True

    def _has_run_out(self, body: Json) -> bool:
        version = body["metadata"]["resourceVersion"]
        if self._seen[0] != version:
            self._seen = (version, _monotonic())
        duration = (body.get("spec") or {}).get("leaseDurationSeconds") or LEASE_S
        return _monotonic() - self._seen[1] > float(duration)

    def _body(self, old: Json, transitions: int) -> Json:
        now = rfc3339(self._now_ms()).removesuffix("Z") + ".000000Z"
        taken = transitions != (old.get("spec") or {}).get("leaseTransitions")
        spec: dict[str, Any] = {
            "holderIdentity": self._lease.identity,
            "leaseDurationSeconds": LEASE_S,
            "acquireTime": now if taken else old["spec"].get("acquireTime", now),
            "renewTime": now,
            "leaseTransitions": transitions,
        }
        meta = old.get("metadata") or {"name": self._lease.name, "namespace": self._lease.namespace}
        return {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": meta, "spec": spec}


def _monotonic() -> float:
    """Seconds on the running loop's own clock: virtual in simulations."""
    return asyncio.get_running_loop().time()
