"""A client whose writes begin only while the lease is safely ours: the time rule, at every single write.

A Lease does not fence. So no write begins unless the lease is ours for longer than the write may take, and a
successor waits until it has run out; what a process sends that slept in between meets its preconditions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kube.errors import ApiError
from kube.port import MERGE, PLAIN_DELETE, Client, DeleteOptions, Json, ObjectKey, PatchOptions
from model.resources import Resource

WRITE_TIMEOUT_S = 5.0
"""How long a write may take; the API server is told so too, and gives up when we do."""


class LeaseRunsOut(ApiError):
    """The write was not begun: another binder may be active before it would end."""


class LeasedClient:
    """A `kube.port.Client`; reads pass through, writes raise LeaseRunsOut when there is no time for them."""

    def __init__(self, client: Client, is_ours_for: Callable[[float], bool]) -> None:
        self._client = client
        self._is_ours_for = is_ours_for
        self.get = client.get
        self.list_page = client.list_page
        self.watch = client.watch

    async def create(self, resource: Resource, body: Json) -> Json:
        """See `kube.port.Writer`."""
        self._check(f"a new {resource.kind}")
        return await self._client.create(resource, body)

    async def replace(self, key: ObjectKey, body: Json, subresource: str = "") -> Json:
        """See `kube.port.Writer`."""
        self._check(str(key))
        return await self._client.replace(key, body, subresource)

    async def patch(
        self,
        key: ObjectKey,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        options: PatchOptions = MERGE,
    ) -> Json:
        """See `kube.port.Writer`."""
        self._check(str(key))
        return await self._client.patch(key, patch, options)

    async def delete(self, key: ObjectKey, options: DeleteOptions = PLAIN_DELETE) -> None:
        """See `kube.port.Writer`."""
        self._check(str(key))
        await self._client.delete(key, options)

    def _check(self, target: str) -> None:
        if not self._is_ours_for(WRITE_TIMEOUT_S):
            raise LeaseRunsOut(target, "the lease is ours for less than a write may take")
