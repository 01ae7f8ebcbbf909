"""Names of extended resources: case-sensitive qualified names, used as they are written (case 046)."""

from __future__ import annotations

_DOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_NAME = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
EXTENDED_NAME = f"^{_DOMAIN}/{_NAME}$"
"""A DNS subdomain, a slash, a name of letters, digits, dashes, underscores and dots."""


def is_extended(name: str) -> bool:
    """Whether a resource is an extended one (047): a slash, nothing of kubernetes.io, no quota prefix."""
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


def json_pointer(*tokens: str) -> str:
    """An RFC 6901 pointer; the slash of a resource name becomes `~1`."""
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens)
