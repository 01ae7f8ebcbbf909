"""A process's own way to the API server and to the log: every call may go wrong, and may be its last."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol

from eventlog.adapters.memory import MemoryLog
from eventlog.adapters.memory_presence import MemoryPresence
from eventlog.entries import Entry, Stored
from eventlog.errors import EntriesMissed
from eventlog.port import Quarantined, Retention, Seen, Snapshot
from kube.port import (
    ALL,
    MERGE,
    PLAIN_DELETE,
    DeleteOptions,
    Json,
    ObjectKey,
    Page,
    PatchOptions,
    Selection,
    WatchEvent,
)
from model.resources import GPU_CLAIMS, Resource
from simulator.apiserver.server import ApiServer
from tests.sim.faults import CUT, EXPIRED, READ, SILENCE_S, SILENT, WATCH, WRITE, Body


@dataclass(frozen=True, slots=True)
class Write:
    """One write as its sender began it; `body` is what it sends."""

    process: str
    verb: str
    key: ObjectKey
    body: Any = None
    options: Any = None


class Witness(Protocol):
    """Told of what one binder does."""

    def write_begins(self, write: Write) -> None: ...

    def write_done(self, write: Write, old: Json | None, new: Json | None) -> None: ...

    def claims_listed(self, process: str, pages: list[Page]) -> None: ...

    async def committed(self, process: str, epoch: int, intent: bytes) -> None: ...

    def concluded(self, process: str, epoch: int, done_ids: Sequence[str]) -> None: ...

    def snapshot_loaded(self, process: str, snapshot: Snapshot | None) -> None: ...

    def table_recalled(self, process: str, name: str, table: Mapping[str, bytes]) -> None: ...


class ProcessClient:
    """Implements `kube.port.Client`; `witness` hears of the binder's writes and lists."""

    def __init__(self, server: ApiServer, body: Body, witness: Witness | None = None) -> None:
        self._server = server
        self._body = body
        self._witness = witness
        self._pages: list[Page] = []

    async def get(self, key: ObjectKey) -> Json:
        return await self._body.call_api(READ, str(key), lambda: self._server.get(key))

    async def list_page(
        self, resource: Resource, selection: Selection = ALL, *, limit: int = 500, continue_token: str = ""
    ) -> Page:
        page: Page = await self._body.call_api(
            READ,
            resource.full_name,
            lambda: self._server.list_page(resource, selection, limit=limit, continue_token=continue_token),
        )
        if self._witness is not None and resource == GPU_CLAIMS:
            self._pages = [*self._pages, page] if continue_token else [page]
            if not page.continue_token:
                self._witness.claims_listed(self._body.name, self._pages)
        return page

    async def watch(
        self, resource: Resource, selection: Selection = ALL, *, resource_version: str, timeout_s: int = 300
    ) -> AsyncGenerator[WatchEvent, None]:
        target = f"watch of {resource.full_name}"
        self._server.check_watch(resource, selection, resource_version)
        await self._body.call_api(WATCH, target, _nothing)
        stream = self._server.watch(
            resource, selection, resource_version=resource_version, timeout_s=timeout_s
        )
        async with aclosing(stream) as events:
            async for event in events:
                await self._body.proceed()
                kind = self._body.weather.strikes(self._body.name, WATCH)
                if kind == SILENT:
                    await asyncio.sleep(SILENCE_S)
                if kind in (CUT, SILENT, EXPIRED):
                    await self._body.proceed()
                    raise self._body.stream_end(target, kind)
                yield event

    async def create(self, resource: Resource, body: Json) -> Json:
        meta = body["metadata"]
        key = ObjectKey(resource, meta.get("name", ""), meta.get("namespace", ""))
        write = Write(self._body.name, "create", key, body)
        return await self._write(write, lambda: self._server.create(resource, body))

    async def replace(self, key: ObjectKey, body: Json, subresource: str = "") -> Json:
        write = Write(self._body.name, "replace", key, body, subresource)
        return await self._write(write, lambda: self._server.replace(key, body, subresource))

    async def patch(
        self,
        key: ObjectKey,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        options: PatchOptions = MERGE,
    ) -> Json:
        write = Write(self._body.name, "patch", key, patch, options)
        return await self._write(write, lambda: self._server.patch(key, patch, options))

    async def delete(self, key: ObjectKey, options: DeleteOptions = PLAIN_DELETE) -> None:
        write = Write(self._body.name, "delete", key, None, options)
        await self._write(write, lambda: self._server.delete(key, options))

    async def _write(self, write: Write, do: Any) -> Any:
        witness = self._witness
        if witness is None:
            return await self._body.call_api(WRITE, str(write.key), do, counts_as="lease")
        if not self._body.died.is_set():
            witness.write_begins(write)  # at the moment of the decision to write: it may sleep after it

        async def do_and_tell() -> Any:
            old = self._server.store.read(write.key.resource, (write.key.namespace, write.key.name))
            new = await do()
            witness.write_done(write, old, new)
            return new

        return await self._body.call_api(WRITE, str(write.key), do_and_tell)


async def _nothing() -> None:
    return


class ProcessLog:
    """One process's connection to the log: its own place as a reader, as a Redis connection has it."""

    def __init__(self, log: MemoryLog, body: Body, witness: Witness | None = None) -> None:
        self._log = log
        self._body = body
        self._witness = witness
        self._stands_at = ""
        self._identity = ""

    async def identity(self) -> str:
        return await self._body.call_log("identity", self._log.identity)

    async def append_once(self, entries: Sequence[Entry], identity: str) -> list[bool]:
        return await self._body.call_log("append", lambda: self._log.append_once(entries, identity))

    async def seen(self, kind: str) -> Mapping[str, Seen]:
        return await self._body.call_log("seen", lambda: self._log.seen(kind))

    async def begin_anew(self, identity: str) -> None:
        await self._body.call_log("begin_anew", lambda: self._log.begin_anew(identity))

    async def read_range(self, after_id: str, limit: int) -> list[Stored]:
        return await self._body.call_log("read_range", lambda: self._log.read_range(after_id, limit))

    async def read_new(self, limit: int, block_ms: int, identity: str) -> list[Stored]:
        """As the Redis adapter: the group is asked for more only where it stands where we left it."""
        if not self._stands_at or identity != self._identity:
            self._stands_at, self._identity = self._log.handed_out, identity

        async def read() -> list[Stored]:
            await self._log.wait_for_news(block_ms, identity)
            if self._log.handed_out != self._stands_at:
                raise EntriesMissed(self._stands_at, self._log.handed_out)
            return await self._log.read_new(limit, 0, identity)

        batch: list[Stored] = await self._body.call_log("read_new", read)
        self._stands_at = batch[-1].id if batch else self._stands_at
        return batch

    async def take_over(self) -> list[str]:
        async def take_over() -> list[str]:
            self._stands_at, self._identity = self._log.handed_out, await self._log.identity()
            return await self._log.take_over()

        return await self._body.call_log("take_over", take_over)

    async def commit(self, epoch: int, intent: bytes, projections: Mapping[str, Mapping[str, bytes]]) -> str:
        async def commit() -> str:
            entry_id = await self._log.commit(epoch, intent, projections)
            if self._witness is not None:
                await self._witness.committed(self._body.name, epoch, intent)
            return entry_id

        return await self._body.call_log("commit", commit)

    async def recall(self, projection: str) -> dict[str, bytes]:
        table: dict[str, bytes] = await self._body.call_log("recall", lambda: self._log.recall(projection))
        if self._witness is not None:
            self._witness.table_recalled(self._body.name, projection, table)
        return table

    async def conclude(self, epoch: int, outcome: bytes, done_ids: Sequence[str]) -> str:
        async def conclude() -> str:
            entry_id = await self._log.conclude(epoch, outcome, done_ids)
            if self._witness is not None:
                self._witness.concluded(self._body.name, epoch, done_ids)
            return entry_id

        return await self._body.call_log("conclude", conclude)

    async def read_passes(self, after_id: str, limit: int) -> list[tuple[str, str, bytes]]:
        return await self._body.call_log("read_passes", lambda: self._log.read_passes(after_id, limit))

    async def save_snapshot(self, epoch: int, snapshot: Snapshot) -> None:
        await self._body.call_log("save_snapshot", lambda: self._log.save_snapshot(epoch, snapshot))

    async def load_snapshot(self) -> Snapshot | None:
        found: Snapshot | None = await self._body.call_log("load_snapshot", self._log.load_snapshot)
        if self._witness is not None:
            self._witness.snapshot_loaded(self._body.name, found)
        return found

    async def trim(self, retention: Retention, now_ms: int) -> int:
        return await self._body.call_log("trim", lambda: self._log.trim(retention, now_ms))

    async def has_lost(self, after_id: str) -> bool:
        return await self._body.call_log("has_lost", lambda: self._log.has_lost(after_id))

    async def quarantine(self, item: Quarantined) -> None:
        await self._body.call_log("quarantine", lambda: self._log.quarantine(item))

    async def quarantined(self, limit: int) -> list[Quarantined]:
        return await self._body.call_log("quarantined", lambda: self._log.quarantined(limit))


class ProcessPresence:
    """One process's view of who else watches."""

    def __init__(self, presence: MemoryPresence, body: Body) -> None:
        self._presence = presence
        self._body = body

    async def show(self, name: str) -> None:
        await self._body.call_log("show", lambda: self._presence.show(name))

    async def present(self, within_ms: int) -> list[str]:
        return await self._body.call_log("present", lambda: self._presence.present(within_ms))
