"""From a watched object to a log entry. Pure: no I/O, the time comes in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from eventlog.entries import Entry, EntryType
from ingest.listing import Known
from model.kinds import WatchedKind
from model.lean import Malformed, lean_object

Json = dict[str, Any]
MAX_BODY = 256 * 1024
"""A launcher is a few kilobytes lean; what is a hundred times larger is meant to fill the log."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Who saw it, and when: milliseconds since the epoch."""

    watcher: str
    ts_ms: int


def change_entry(kind: WatchedKind, change: EntryType, raw: Json, origin: Origin) -> Entry:
    """The entry of one change. Raises Malformed for what cannot be read as its kind.

    A DELETED object is entered without its body: the fold needs only to know that it has gone.
    """
    meta = raw.get("metadata")
    if not isinstance(meta, dict) or not all(isinstance(meta.get(k), str) for k in _IDENTITY):
        raise Malformed("metadata.name, uid and resourceVersion must be strings")
    namespace = meta.get("namespace") or ""
    if not isinstance(namespace, str):
        raise Malformed("metadata.namespace must be a string")
    _check_identity(namespace, meta)
    body = b"" if change is EntryType.DELETED else lean_object(kind.model, kind.prune, raw)
    if len(body) > MAX_BODY:
        raise Malformed(f"what we read of it is {len(body)} bytes, more than {MAX_BODY}")
    return Entry(
        type=change,
        kind=kind.resource.kind,
        namespace=namespace,
        name=meta["name"],
        uid=meta["uid"],
        resource_version=meta["resourceVersion"],
        watcher=origin.watcher,
        ts_ms=origin.ts_ms,
        object=body,
    )


_IDENTITY = ("name", "uid", "resourceVersion")
_NAME = re.compile(r"[!-~]{1,253}")
"""As the API server takes them, and more: never empty, endless, or with what separates words in our keys."""
_VERSION = re.compile(r"0|[1-9][0-9]{0,99}")
"""Compared as decimal numbers: one that is none would be the newest for ever, or never."""


def _check_identity(namespace: str, meta: Json) -> None:
    for field, name in (("namespace", namespace or "-"), ("name", meta["name"]), ("uid", meta["uid"])):
        if not _NAME.fullmatch(name):
            raise Malformed(f"metadata.{field} is no name")
    if not _VERSION.fullmatch(meta["resourceVersion"]):
        raise Malformed("metadata.resourceVersion is no decimal number")


def gone_entry(kind: WatchedKind, known: Known, list_version: str, origin: Origin) -> Entry:
    """What was known and is not listed any more is DELETED at the list's resourceVersion."""
    return Entry(
        type=EntryType.DELETED,
        kind=kind.resource.kind,
        namespace=known.namespace,
        name=known.name,
        uid=known.uid,
        resource_version=list_version,
        watcher=origin.watcher,
        ts_ms=origin.ts_ms,
    )


def marker_entry(kind: str, change: EntryType, origin: Origin, resource_version: str = "") -> Entry:
    """SYNCED, ABSENT or HEARTBEAT: an entry about a kind or a watcher, not about an object."""
    return Entry(
        type=change,
        kind=kind,
        resource_version=resource_version,
        watcher=origin.watcher,
        ts_ms=origin.ts_ms,
    )
