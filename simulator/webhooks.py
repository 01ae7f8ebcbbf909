"""Admission's reviewer as webhooks of the simulated API server: no sockets, the same answers."""

from __future__ import annotations

from collections.abc import Callable

from admission.review import Answer, Review
from admission.reviewing import KUBEVIRT_USER, Reviewer
from kube.errors import refusal
from kube.port import Json
from model.names import LABEL_KUBEVIRT, LABEL_LAUNCHER
from simulator.apiserver.admission import Request, Webhook
from simulator.apiserver.patches import json_patch

UserOf = Callable[[Request], str]


def only_kubevirt_makes_launchers(request: Request) -> str:
    """The simulated server knows no users: here whoever creates a launcher is KubeVirt."""
    labels = (request.new or {}).get("metadata", {}).get("labels") or {}
    return KUBEVIRT_USER if labels.get(LABEL_KUBEVIRT) == LABEL_LAUNCHER else "somebody"


def webhook_of(reviewer: Reviewer, user_of: UserOf = only_kubevirt_makes_launchers) -> Webhook:
    """The gate and the checks of one replica of `gpubinder admit`."""

    async def ask(request: Request) -> Json | None:
        review = _review_of(request, user_of(request))
        gated = await reviewer.gate(review)
        _raise_if_refused(gated, request)
        obj = request.new
        if gated.patch and obj is not None:
            obj = json_patch(obj, list(gated.patch))
        _raise_if_refused(await reviewer.check(review), request)
        return obj

    return ask


def _review_of(request: Request, user: str) -> Review:
    key = request.key
    return Review(
        uid=str(key),
        group=key.resource.group,
        kind=key.resource.kind,
        operation=str(request.operation),
        name=key.name,
        namespace=key.namespace,
        user=user,
        subresource=request.subresource,
        new=request.new,
        old=request.old,
    )


def _raise_if_refused(answer: Answer, request: Request) -> None:
    if answer.refusal is not None:
        one = answer.refusal
        text = f'admission webhook "gpubinder" denied the request: {one.message}'
        raise refusal(one.code, one.reason, text, str(request.key))
