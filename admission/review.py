"""The AdmissionReview (admission.k8s.io/v1): what the API server asks of a webhook, and how it is answered.

Pure: from and to JSON. Whatever is sent is data of a stranger: what cannot be read is one clear BadReview.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

Json = dict[str, Any]
API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"
FORBIDDEN = 403
MAX_WARNING = 256
"""Characters of one warning; the API server cuts longer ones."""
MAX_WARNINGS = 10
"""Of one answer; the API server drops those beyond 4096 characters in all."""


class BadReview(ValueError):
    """A body that is no AdmissionReview of a version that we answer."""


@dataclass(frozen=True, slots=True)
class Review:
    """One request: who wants to do what to which object. `new` is None on deletion, `old` on creation."""

    uid: str
    group: str
    kind: str
    operation: str
    name: str = ""
    namespace: str = ""
    user: str = ""
    subresource: str = ""
    new: Json | None = None
    old: Json | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why not: one word for programs, one sentence with the numbers for people."""

    reason: str
    message: str
    code: int = FORBIDDEN


@dataclass(frozen=True, slots=True)
class Answer:
    """What is said to a request. `is_unchecked`: let through because what it needed could not be read."""

    refusal: Refusal | None = None
    warnings: tuple[str, ...] = ()
    patch: tuple[Json, ...] = ()
    is_unchecked: bool = False

    @property
    def result(self) -> str:
        """One word for metrics."""
        if self.refusal is not None:
            return "refused" if self.refusal.code == FORBIDDEN else "failed"
        if self.is_unchecked:
            return "unchecked"
        return "gated" if self.patch else "allowed"


ALLOWED = Answer()


def read_review(body: bytes) -> Review:
    """The request in an AdmissionReview. Raises BadReview, which says what is wrong."""
    try:
        review = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise BadReview("the body is no JSON") from None
    if not isinstance(review, dict) or review.get("kind") != KIND:
        raise BadReview(f"the body is no {KIND}")
    if review.get("apiVersion") != API_VERSION:
        raise BadReview(f"only {API_VERSION} is answered; list it in admissionReviewVersions")
    request = review.get("request")
    if not isinstance(request, dict) or not _text(request, "uid"):
        raise BadReview("request.uid is missing: without it nothing can be answered")
    kind = _part(request, "kind")
    return Review(
        uid=_text(request, "uid"),
        group=_text(kind, "group"),
        kind=_text(kind, "kind"),
        operation=_text(request, "operation"),
        name=_text(request, "name"),
        namespace=_text(request, "namespace"),
        user=_text(_part(request, "userInfo"), "username"),
        subresource=_text(request, "subResource"),
        new=_object(request, "object"),
        old=_object(request, "oldObject"),
    )


def written_answer(uid: str, answer: Answer) -> bytes:
    """The AdmissionReview that answers the request with this uid."""
    response: Json = {"uid": uid, "allowed": answer.refusal is None}
    if answer.refusal is not None:
        refusal = answer.refusal
        response["status"] = {"code": refusal.code, "reason": refusal.reason, "message": refusal.message}
    if answer.warnings:
        response["warnings"] = [_cut(warning) for warning in answer.warnings[:MAX_WARNINGS]]
    if answer.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(orjson.dumps(list(answer.patch))).decode()
    return orjson.dumps({"apiVersion": API_VERSION, "kind": KIND, "response": response})


def named(names: Sequence[str], limit: int = 5) -> str:
    """Some names for a sentence, sorted: `a, b and 3 more`."""
    shown = ", ".join(sorted(names)[:limit])
    return f"{shown} and {len(names) - limit} more" if len(names) > limit else shown


def _cut(text: str) -> str:
    return text if len(text) <= MAX_WARNING else f"{text[: MAX_WARNING - 3]}..."


def _part(of: Mapping[str, Any], name: str) -> Json:
    value = of.get(name)
    return value if isinstance(value, dict) else {}


def _object(request: Json, name: str) -> Json | None:
    value = request.get(name)
    return value if isinstance(value, dict) else None


def _text(of: Mapping[str, Any], name: str) -> str:
    value = of.get(name)
    return value if isinstance(value, str) else ""
