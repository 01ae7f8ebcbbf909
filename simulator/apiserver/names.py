"""Names as the API server takes them: RFC 1123, labels, qualified names.

Each check gives what is wrong, or nothing; texts and rules are those of k8s.io/apimachinery
pkg/util/validation, without its examples.
"""

from __future__ import annotations

import re

from kube.port import Json
from model import resources as r
from model.resource_names import DNS_SUBDOMAIN
from model.resources import Resource

_MAX_SUBDOMAIN = 253
_MAX_LABEL = 63
_ALPHANUMERIC = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_ENDS = "and must start and end with an alphanumeric character"
_LABEL_NAMED = (r.SERVICES, r.NAMESPACES)
"""Kinds whose names become part of a host name."""


def name_fault(resource: Resource, name: str) -> str:
    """Whether an object of the kind can have the name."""
    if resource in _LABEL_NAMED:
        return label_name_fault(name)
    return subdomain_fault(name)


def crd_name_fault(crd: Json) -> str:
    """A CRD is named for what it serves."""
    spec = crd.get("spec") or {}
    wanted = f"{(spec.get('names') or {}).get('plural')}.{spec.get('group')}"
    return "" if crd["metadata"].get("name") == wanted else 'must be spec.names.plural+"."+spec.group'


def subdomain_fault(name: str) -> str:
    """RFC 1123: labels with dots between them."""
    if len(name) > _MAX_SUBDOMAIN:
        return f"must be no more than {_MAX_SUBDOMAIN} characters"
    if re.fullmatch(DNS_SUBDOMAIN, name):
        return ""
    text = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.',"
    return f"{text} {_ENDS}"


def label_name_fault(name: str) -> str:
    """RFC 1123: one label."""
    if "." in name:
        return "must not contain dots"
    if len(name) > _MAX_LABEL:
        return f"must be no more than {_MAX_LABEL} characters"
    if re.fullmatch(_LABEL, name):
        return ""
    text = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-',"
    return f"{text} {_ENDS}"


def qualified_fault(name: str) -> str:
    """A name with or without a domain before it: keys of labels, taints, gates."""
    domain, slash, local = name.rpartition("/")
    if slash and not domain:
        return "prefix part must be non-empty"
    if slash and subdomain_fault(domain):
        return f"prefix part {subdomain_fault(domain)}"
    if not local:
        return "name part must be non-empty"
    if len(local) > _MAX_LABEL:
        return f"name part must be no more than {_MAX_LABEL} characters"
    if re.fullmatch(_ALPHANUMERIC, local, re.ASCII):
        return ""
    return f"name part must consist of alphanumeric characters, '-', '_' or '.', {_ENDS}"


def label_value_fault(value: str) -> str:
    """The value of a label: empty, or like the local part of a qualified name."""
    if len(value) > _MAX_LABEL:
        return f"must be no more than {_MAX_LABEL} characters"
    if not value or re.fullmatch(_ALPHANUMERIC, value, re.ASCII):
        return ""
    text = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.',"
    return f"{text} {_ENDS}"
