"""Every key of one cluster's log in Redis. All share a hash tag, so that one transaction can hold them.

| key | type | what | written by |
| --- | --- | --- | --- |
| `:events` | stream | what watchers saw; its group is `binder` | begin.lua, append_once.lua, trim.lua |
| `:cluster` | string | uid of the cluster's kube-system namespace: whose log this is | the first process |
| `:identity` | string | random, made with the log; another one means another log | begin.lua |
| `:seen:<kind>` | hash | last resourceVersion and digest by uid, for append-once | append_once.lua |
| `:tombs:<kind>` | zset | deleted uids, until laggards have passed | append_once.lua |
| `:passes` | stream | the journal: intents and outcomes | commit.lua, trim.lua |
| `:snapshot` | hash | the fold of the log up to `position`, where a binder begins | snapshot.lua |
| `:epoch` | string | highest leader epoch that has committed | commit.lua |
| `:quarantine` | stream | what could not be read, and why; the newest thousand | watchers, the binder |
| `:watchers` | hash | when each watcher replica last showed itself | presence.lua |
| `:proj:<name>` | hash | an inline read model | commit.lua |
"""

from __future__ import annotations

from dataclasses import dataclass

GROUP = "binder"
"""The consumer group of `:events`."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one cluster."""

    cluster: str

    @property
    def events(self) -> str:
        """The stream of entries."""
        return self._key("events")

    @property
    def identity(self) -> str:
        """The log's identity."""
        return self._key("identity")

    @property
    def cluster_uid(self) -> str:
        """Whose log this is."""
        return self._key("cluster")

    @property
    def passes(self) -> str:
        """The journal."""
        return self._key("passes")

    @property
    def snapshot(self) -> str:
        """The folded state and its place."""
        return self._key("snapshot")

    @property
    def epoch(self) -> str:
        """The highest epoch that has committed."""
        return self._key("epoch")

    @property
    def quarantine(self) -> str:
        """What could not be read."""
        return self._key("quarantine")

    @property
    def watchers(self) -> str:
        """Which watcher replicas live."""
        return self._key("watchers")

    def seen(self, kind: str) -> str:
        """The last versions of a kind."""
        return self._key(f"seen:{kind}")

    def tombs(self, kind: str) -> str:
        """The deleted objects of a kind."""
        return self._key(f"tombs:{kind}")

    def projection(self, name: str) -> str:
        """An inline read model."""
        return self._key(f"proj:{name}")

    def _key(self, name: str) -> str:
        return f"{{gpubinder:{self.cluster}}}:{name}"
