"""What gpubinder and the simulator's actors can ask of an API server.

Two ports: reading and writing. Every method may raise `kube.errors.ApiError`. Objects are JSON
dictionaries, as the API server sends them, with `apiVersion` and `kind` filled in also inside lists.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from model.resources import Resource

Json = dict[str, Any]
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class WatchType(StrEnum):
    """The types of watch events that reach a user of the port; ERROR becomes an exception."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


class PatchType(StrEnum):
    """The patch formats in use, by content type."""

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    APPLY = "application/apply-patch+yaml"


class Propagation(StrEnum):
    """What happens to an object's dependents when it is deleted."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One change. A BOOKMARK's object carries only `metadata.resourceVersion`."""

    type: WatchType
    object: Json


def ends_initial_list(event: WatchEvent) -> bool:
    """Whether the event is the bookmark that ends a streamed list."""
    annotations = event.object.get("metadata", {}).get("annotations") or {}
    return event.type is WatchType.BOOKMARK and annotations.get(INITIAL_EVENTS_END) == "true"


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list; `continue_token` is empty on the last one."""

    items: list[Json]
    resource_version: str
    continue_token: str = ""


@dataclass(frozen=True, slots=True)
class ObjectKey:
    """Names one object of one kind."""

    resource: Resource
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.resource.kind} {self.namespace + '/' if self.namespace else ''}{self.name}"


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a kind a list or watch covers; empty means all."""

    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """Preconditions and manner of a deletion; empty fields do not constrain."""

    uid: str = ""
    resource_version: str = ""
    grace_s: int | None = None
    propagation: Propagation | None = None


ALL = Selection()
PLAIN_DELETE = DeleteOptions()


@dataclass(frozen=True, slots=True)
class PatchOptions:
    """How a patch is applied. `field_manager` and `force` count for server-side apply only."""

    type: PatchType = PatchType.MERGE
    subresource: str = ""
    field_manager: str = ""
    force: bool = False


MERGE = PatchOptions()
MERGE_STATUS = PatchOptions(subresource="status")


class Reader(Protocol):
    """Reads the cluster."""

    async def get(self, key: ObjectKey) -> Json:
        """One object; raises NotFound."""
        ...

    async def list_page(
        self, resource: Resource, selection: Selection = ALL, *, limit: int = 500, continue_token: str = ""
    ) -> Page:
        """One page of at most `limit` objects, consistent (most recent); raises Gone for an old token."""
        ...

    def watch(
        self, resource: Resource, selection: Selection = ALL, *, resource_version: str, timeout_s: int = 300
    ) -> AsyncGenerator[WatchEvent, None]:
        """Changes after `resource_version`, with bookmarks, until the server ends the stream.

        An empty version streams the list first: an ADDED per object, then the bookmark of
        `ends_initial_list`; raises Invalid where the server does not offer it (before Kubernetes 1.32).
        Raises Gone when the version is too old, at connect as in the stream.
        """
        ...


class Writer(Protocol):
    """Changes the cluster."""

    async def create(self, resource: Resource, body: Json) -> Json:
        """The created object; `body.metadata` names the namespace; raises AlreadyExists, Invalid."""
        ...

    async def replace(self, key: ObjectKey, body: Json, subresource: str = "") -> Json:
        """PUT; `body.metadata.resourceVersion`, if set, is a precondition (Conflict)."""
        ...

    async def patch(
        self,
        key: ObjectKey,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        options: PatchOptions = MERGE,
    ) -> Json:
        """The patched object; a merge patch that carries metadata.resourceVersion has it as precondition."""
        ...

    async def delete(self, key: ObjectKey, options: DeleteOptions = PLAIN_DELETE) -> None:
        """Asks for the deletion; raises NotFound, Conflict for a failed precondition."""
        ...


class Client(Reader, Writer, Protocol):
    """Both: what actors, the watchers and the binder are given."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A whole list, its pages joined."""

    items: list[Json] = field(default_factory=list)
    resource_version: str = ""


async def list_all(
    client: Reader, resource: Resource, selection: Selection = ALL, *, limit: int = 500
) -> Listing:
    """Every object of `resource`, page by page; raises Gone when a page expired on the way."""
    items: list[Json] = []
    token = ""
    while True:
        page = await client.list_page(resource, selection, limit=limit, continue_token=token)
        items.extend(page.items)
        if not page.continue_token:
            return Listing(items, page.resource_version)
        token = page.continue_token
