"""Names of extended resources: case-sensitive qualified names, used as they are written (case 046).

Rules read in kubernetes `pkg/apis/core/v1/helper` (IsExtendedResourceName) and apimachinery
`util/validation` (IsQualifiedName).
"""

from __future__ import annotations

import re

MAX_DOMAIN = 253 - len("requests.")
"""Quota prefixes a name with `requests.`; the result must still be a domain."""
MAX_NAME = 63
MAX_EXTENDED_NAME = MAX_DOMAIN + 1 + MAX_NAME
"""Characters of the longest extended resource name."""

DNS_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
"""RFC 1123: what names of most objects are made of."""
EXTENDED_NAME = rf"^{DNS_SUBDOMAIN}/[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?$"
"""A DNS subdomain, a slash, a name of letters, digits, dashes, underscores and dots."""
_SHAPE = re.compile(EXTENDED_NAME.removeprefix("^").removesuffix("$"), re.ASCII)


def is_extended(name: str) -> bool:
    """Whether a resource is an extended one (047): qualified, nothing of kubernetes.io, no quota prefix.

    Native are cpu, memory, pods, hugepages-2Mi and whatever else has no slash.
    """
    domain, slash, _ = name.partition("/")
    if not slash or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return len(domain) <= MAX_DOMAIN and _SHAPE.fullmatch(name) is not None


def json_pointer(*tokens: str) -> str:
    """An RFC 6901 pointer; the slash of a resource name becomes `~1`."""
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens)
