"""Lists in pages: later pages come from the first one's moment, until they are forgotten."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from kube.errors import Gone
from kube.port import Json, Page
from model.resources import Resource
from simulator.apiserver.refusals import bad_request
from simulator.apiserver.selectors import Matches
from simulator.apiserver.store import Store, copied

_KEPT = 64
"""Lists that are under way; the oldest expires first."""
_TOKEN = re.compile(r"\d+-\d+")


@dataclass(slots=True)
class Pages:
    """What the tokens given out stand for: a version, and the objects that are still to come."""

    store: Store
    _rest: dict[str, tuple[str, list[Json]]] = field(default_factory=dict)
    _given: int = 0

    def first(self, scope: Iterable[Json], matches: Matches, limit: int) -> Page:
        """The first page of what matches of `scope` as of now; 0 is no limit."""
        return self._page(str(self.store.revision), list(scope), matches, limit)

    def later(self, resource: Resource, matches: Matches, limit: int, token: str) -> Page:
        """The page that a token stands for; raises Gone, BadRequest for what is no token."""
        if not _TOKEN.fullmatch(token):
            raise bad_request(resource.full_name, "invalid continue token: continue key is not valid")
        if token not in self._rest:
            text = "The provided continue parameter is too old to display a consistent list result."
            raise Gone(resource.full_name, text, 410, "Expired")
        version, rest = self._rest[token]
        return self._page(version, rest, matches, limit)

    def expire(self) -> None:
        """Forget every list under way, as compaction does."""
        self._rest.clear()

    def _page(self, version: str, scope: list[Json], matches: Matches, limit: int) -> Page:
        """Like a real server's: whether what is left matches is seen only when it is asked for."""
        shown: list[Json] = []
        rest = iter(scope)
        for obj in rest:
            if matches(obj):
                shown.append(copied(obj))
            if limit and len(shown) == limit:
                break
        left = list(rest)
        return Page(shown, version, self._keep(version, left) if left else "")

    def _keep(self, version: str, rest: list[Json]) -> str:
        self._given += 1
        token = f"{version}-{self._given}"
        self._rest[token] = (version, rest)
        while len(self._rest) > _KEPT:
            self._rest.pop(next(iter(self._rest)))
        return token
