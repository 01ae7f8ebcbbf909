"""What the binder must remember from pass to pass: its inline projections as one value (R14).

A pass reads the memory and says what it has learned; the lessons are stored in one transaction with the
pass's intent, before any effect, and then folded in here. So memory is as old as the last pass, also after a
crash.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

from projections.folds import (
    deletions,
    ledger,
    refused_claims,
    rejections,
    statuses,
    targets,
    troubles,
    vm_history,
)
from projections.folds.ledger import Entry as LedgerEntry
from projections.folds.rejections import Rejection
from projections.folds.vm_history import Run


@dataclass(frozen=True, slots=True)
class Lesson:
    """One field of one projection has a new value, or (None) none any more."""

    projection: str
    field: str
    value: Mapping[str, Rejection] | Run | LedgerEntry | int | str | None


@dataclass(slots=True)
class Memory:
    """Changed by `learn` between passes only."""

    rejections: dict[str, Mapping[str, Rejection]] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    troubles: dict[str, int] = field(default_factory=dict)
    deletions: dict[str, int] = field(default_factory=dict)
    targets: dict[str, str] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    refused_claims: dict[str, str] = field(default_factory=dict)
    ledger: dict[str, LedgerEntry] = field(default_factory=dict)
    ended: dict[str, Run] = field(default_factory=dict)
    """Those of the runs that have ended."""
    told: set[str] = field(default_factory=set)
    """Uids of the VMIs whose tenants were told that they wait."""
    _by_vm: dict[tuple[str, str], set[str]] = field(default_factory=dict)

    def uids_of(self, vm: tuple[str, str]) -> frozenset[str]:
        """The runs of the VM of that namespace and name."""
        return frozenset(self._by_vm.get(vm, ()))

    def vms(self) -> Iterable[tuple[str, str]]:
        """The VMs of all runs, by namespace and name."""
        return self._by_vm.keys()

    def learn(self, lessons: Iterable[Lesson]) -> None:
        """Fold lessons in, in order."""
        tables = self._tables()
        for lesson in lessons:
            table = tables[lesson.projection]
            old = table.pop(lesson.field, None)
            if lesson.value is not None:
                table[lesson.field] = lesson.value
            if lesson.projection == vm_history.NAME:
                self._index(lesson.field, old, table.get(lesson.field))

    def _index(self, uid: str, old: Run | None, new: Run | None) -> None:
        self.ended.pop(uid, None)
        (self.told.add if new is not None and new.told else self.told.discard)(uid)
        if old is not None:
            uids = self._by_vm[old.namespace, old.vm_name]
            uids.discard(uid)
            if not uids:
                del self._by_vm[old.namespace, old.vm_name]
        if new is not None:
            self._by_vm.setdefault((new.namespace, new.vm_name), set()).add(uid)
            if new.ended_ms:
                self.ended[uid] = new

    def _tables(self) -> dict[str, dict[str, Any]]:
        return {
            rejections.NAME: self.rejections,
            vm_history.NAME: self.runs,
            troubles.NAME: self.troubles,
            deletions.NAME: self.deletions,
            targets.NAME: self.targets,
            statuses.NAME: self.statuses,
            refused_claims.NAME: self.refused_claims,
            ledger.NAME: self.ledger,
        }


_PLAIN_CODECS: dict[str, TypeAdapter[Any]] = {
    rejections.NAME: TypeAdapter(dict[str, Rejection]),
    vm_history.NAME: TypeAdapter(Run),
    troubles.NAME: TypeAdapter(int),
    deletions.NAME: TypeAdapter(int),
    targets.NAME: TypeAdapter(str),
    statuses.NAME: TypeAdapter(int),
    refused_claims.NAME: TypeAdapter(str),
}
_LEDGER_CODECS: dict[str, TypeAdapter[Any]] = {
    kind: TypeAdapter(shape) for kind, shape in ledger.SHAPES.items()
}
PROJECTIONS = (*_PLAIN_CODECS, ledger.NAME)
"""The names of the inline projections."""
FORGOTTEN = b""
"""Stands for a field that has no value any more."""


def as_fields(lessons: Iterable[Lesson]) -> dict[str, dict[str, bytes]]:
    """The lessons as fields to store, by projection."""
    tables: dict[str, dict[str, bytes]] = {}
    for lesson in lessons:
        tables.setdefault(lesson.projection, {})[lesson.field] = _body(lesson)
    return tables


def recalled(tables: Mapping[str, Mapping[str, bytes]]) -> tuple[Memory, tuple[str, ...]]:
    """The memory from stored fields, and what could not be read of it (left out), sorted."""
    memory, unreadable = Memory(), []
    for projection in PROJECTIONS:
        for name, body in sorted(tables.get(projection, {}).items()):
            if name.startswith("@"):
                continue  # where in the log the read model stands
            try:
                value = _codec(projection, name).validate_json(body)
            except (ValidationError, KeyError):
                unreadable.append(f"{projection} {name}")
                if projection != ledger.NAME:
                    continue
                value = ()  # equals no entry: the next pass writes the field anew, or takes it away
            memory.learn([Lesson(projection, name, value)])
    return memory, tuple(unreadable)


def _body(lesson: Lesson) -> bytes:
    if lesson.value is None:
        return FORGOTTEN
    return orjson.dumps(_codec(lesson.projection, lesson.field).dump_python(lesson.value))


def _codec(projection: str, name: str) -> TypeAdapter[Any]:
    """Raises KeyError for a field of the ledger that this version does not know."""
    return _LEDGER_CODECS[ledger.kind_of(name)] if projection == ledger.NAME else _PLAIN_CODECS[projection]
