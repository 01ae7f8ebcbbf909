"""What a process has asked of the API server, by the server's own audit log."""

from __future__ import annotations

import json
from dataclasses import dataclass

from gpubinder.rbac import Places
from gpubinder.rights import Home, Permission
from tests.cluster.control_plane import ControlPlane

PLACES = Places()
METHODS = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
"""Of the verbs that change something; all others read."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request for a resource, as RBAC sees it, and the answer's status."""

    verb: str
    group: str
    resource: str
    subresource: str
    namespace: str
    name: str
    uri: str
    status: int

    @property
    def method(self) -> str:
        """Of HTTP."""
        return METHODS.get(self.verb, "GET")

    @property
    def attributes(self) -> dict[str, str]:
        """As a SubjectAccessReview asks for them."""
        words = ("verb", "group", "resource", "subresource", "namespace", "name")
        return {word: getattr(self, word) for word in words}

    def __str__(self) -> str:
        return f"{self.verb} {self.uri}: {self.status}"


def calls_of(plane: ControlPlane, user: str) -> list[Call]:
    """All of that user, in order; discovery is for everybody and is no resource."""
    calls = []
    for line in plane.audit_log.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        ref = event.get("objectRef") or {}
        if event["user"]["username"] == user and "resource" in ref:
            words = [ref.get(key, "") for key in ("apiGroup", "resource", "subresource", "namespace", "name")]
            status = event["responseStatus"]["code"]
            calls.append(Call(event["verb"], *words, event["requestURI"], status))
    return calls


def is_under(call: Call, permission: Permission) -> bool:
    """Whether the permission is one that allows the call."""
    of = permission.resource
    asked = (call.verb, call.group, call.resource, call.subresource)
    return (
        asked == (permission.verb, of.group, of.plural, permission.subresource)
        and permission.name in ("", call.name)
        and (permission.home is Home.CLUSTER or call.namespace == PLACES.namespace_of(permission.home))
    )
