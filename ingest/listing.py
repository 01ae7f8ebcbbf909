"""One list of a kind under way: for which log, what that log knew before, and what was listed so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from eventlog.entries import is_newer
from eventlog.port import EventAppender
from model.kinds import WatchedKind


@dataclass(frozen=True, slots=True)
class Known:
    """An object that the log holds."""

    namespace: str
    name: str
    uid: str
    resource_version: str


@dataclass(slots=True)
class Listing:
    """What the log held is read before the list begins: what came in between cannot seem to have gone."""

    identity: str = ""
    """Of the log that is listed for; appending to another raises LogReplaced, and we list again."""
    known: tuple[Known, ...] = ()
    listed: set[str] = field(default_factory=set)

    @classmethod
    async def begin(cls, log: EventAppender, kind: WatchedKind) -> Listing:
        """A list that is about to begin."""
        identity = await log.identity()
        seen = await log.seen(kind.resource.kind)
        known = tuple(
            Known(one.namespace, one.name, uid, one.resource_version) for uid, one in sorted(seen.items())
        )
        return cls(identity, known)

    def is_rewound(self, list_version: str) -> bool:
        """Whether the cluster is older than the log: a list is never behind a version that was seen."""
        return any(is_newer(one.resource_version, list_version) for one in self.known)

    def gone(self) -> list[Known]:
        """What the log held and the list did not show."""
        return [one for one in self.known if one.uid not in self.listed]
