"""Answers reviews: reads what a check needs, in time, and decides what happens when that cannot be had.

The gate fails closed, and only for launchers that may need it; everything else fails open, with a warning:
the binder checks again when it places (R1). Stateless: any number of replicas answer alike.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pydantic import ValidationError

from admission.catalogue import budget_warnings, class_warnings, orphan_warnings
from admission.claims import Orders, is_of_a_vmi, refuse_order
from admission.gate import asks_for_devices, gate_patch
from admission.kept import Kept, NotInTime
from admission.ledger import Ledger, LedgerUnreadable
from admission.ledger_source import LedgerAway, LedgerLog, LedgerSource
from admission.raw_pods import is_made_by_kubevirt, refuse_raw_pod
from admission.review import ALLOWED, Answer, Refusal, Review
from kube.errors import ApiError, NotFound
from kube.port import Json, ObjectKey, Reader, list_all
from model.claims import GPUBudget, GPUClaim, GPUClass
from model.kinds import BY_KIND
from model.meta import Lean
from model.pods import Pod
from model.reasons import Reason
from model.resources import GPU_BUDGETS, GPU_CLAIMS, GPU_CLASSES, PODS, Resource

LIMIT_S = 0.8
"""For one answer; the API server waits for 1 s and would then know less than we do."""
CLASSES_KEEP_S = 1.0
CLASSES_PATIENCE_S = 0.5
KUBEVIRT_USER = "system:serviceaccount:kubevirt:kubevirt-controller"
_UNAVAILABLE = 503
Model = TypeVar("Model", bound=Lean)


@dataclass(frozen=True, slots=True)
class Rules:
    """What admission is told by its operator."""

    orders: Orders = Orders.REFUSE
    stale_after_s: int = 60
    kubevirt_users: tuple[str, ...] = (KUBEVIRT_USER,)
    """Who create launchers."""
    binder_users: tuple[str, ...] = ()
    """Who create template claims; none: whoever names a VMI as controller is believed."""


class Reviewer:
    """Gate and checks over a log and an API server."""

    def __init__(self, log: LedgerLog, client: Reader, now_ms: Callable[[], int], rules: Rules) -> None:
        self._rules = rules
        self._client = client
        self._source = LedgerSource(log, now_ms, rules.stale_after_s)
        self._classes = Kept(self._list_classes, keep_s=CLASSES_KEEP_S, patience_s=CLASSES_PATIENCE_S)

    async def close(self) -> None:
        """End what is still being asked."""
        await self._source.close()
        await self._classes.close()

    async def gate(self, review: Review) -> Answer:
        """The gate on a launcher (R6)."""
        if not _is_new(review, PODS) or review.new is None:
            return ALLOWED
        try:
            async with asyncio.timeout(LIMIT_S):
                sold = await self._sold()
        except (LedgerAway, TimeoutError) as error:
            return _closed(str(error) or "too slow") if asks_for_devices(review.new) else ALLOWED
        return Answer(patch=gate_patch(review.new, sold))

    async def check(self, review: Review) -> Answer:
        """Whether the object may be written, and what its writer should hear."""
        try:
            async with asyncio.timeout(LIMIT_S):
                return await self._check(review)
        except (LedgerAway, ApiError, NotInTime, TimeoutError, LedgerUnreadable) as error:
            why = " ".join(str(error).split()) or "no answer in time"
            again = "; the binder checks it when it places it" if review.kind == GPU_CLAIMS.kind else ""
            warning = f"gpubinder has not checked this {review.kind} ({why}){again}"
            return Answer(warnings=(warning,), is_unchecked=True)
        except ValidationError:
            return ALLOWED  # the schema of the API server refuses it, in its own words

    async def _check(self, review: Review) -> Answer:
        if _is_new(review, GPU_CLAIMS) and review.new is not None:
            return await self._check_claim(_read(GPUClaim, _placed_in(review)), review.user)
        if _is_new(review, PODS) and review.new is not None:
            return await self._check_pod(review, _read(Pod, review.new))
        if _is_of(review, GPU_CLASSES) and review.new is not None:
            return Answer(warnings=class_warnings(_read(GPUClass, review.new), await self._classes.get()))
        if _is_of(review, GPU_BUDGETS):
            return Answer(warnings=await self._budget_warnings(review))
        return ALLOWED

    async def _check_claim(self, claim: GPUClaim, user: str) -> Answer:
        if is_of_a_vmi(claim) and (not self._rules.binder_users or user in self._rules.binder_users):
            return ALLOWED
        refusal = refuse_order(claim, await self._source.ledger(), self._rules.orders)
        if refusal is not None and refusal.reason == Reason.CLASS_NOT_FOUND:
            return await self._check_class_again(claim.spec.class_name, refusal)
        return Answer(refusal)

    async def _check_class_again(self, name: str, refusal: Refusal) -> Answer:
        """A class and its first order are often applied together: the ledger may not know it yet."""
        try:
            gpu_class = await self._client.get(ObjectKey(GPU_CLASSES, name))
        except NotFound:
            return Answer(refusal)
        if gpu_class["metadata"].get("deletionTimestamp"):
            return Answer(refusal)
        return Answer(warnings=(f"GPUClass {name} is new; this claim is checked when it is placed",))

    async def _check_pod(self, review: Review, pod: Pod) -> Answer:
        if is_made_by_kubevirt(pod, review.user, self._rules.kubevirt_users) or not _asks_for_extended(pod):
            return ALLOWED
        return Answer(refuse_raw_pod(pod, review.namespace, await self._source.ledger()))

    async def _budget_warnings(self, review: Review) -> tuple[str, ...]:
        listed = (await list_all(self._client, GPU_BUDGETS)).items
        budgets = [_read(GPUBudget, item) for item in listed]
        if review.new is None:
            return orphan_warnings(review.name, budgets)
        budget = _read(GPUBudget, review.new)
        entry = (await self._ledger_if_any()).budgets.get(budget.metadata.name)
        return budget_warnings(budget, budgets, await self._classes.get(), entry)

    async def _ledger_if_any(self) -> Ledger:
        try:
            return await self._source.ledger()
        except LedgerAway:
            return Ledger()

    async def _sold(self) -> frozenset[str]:
        """From the API server, which has just asked us; else as the ledger knows it. Raises LedgerAway."""
        try:
            return frozenset(one.spec.resource_name for one in await self._classes.get())
        except (ApiError, NotInTime, ValidationError):
            return (await self._source.ledger()).sold()

    async def _list_classes(self) -> list[GPUClass]:
        items = (await list_all(self._client, GPU_CLASSES)).items
        return [_read(GPUClass, item) for item in items]


def _closed(why: str) -> Answer:
    text = f"it is not known at present whether this launcher asks for GPUs on sale ({why}); try again"
    return Answer(Refusal("ServiceUnavailable", text, _UNAVAILABLE))


def _asks_for_extended(pod: Pod) -> bool:
    """Most pods ask for no device: for them nothing is read."""
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    wanted = [one.resources.requests for one in containers] + [pod.spec.overhead]
    return any("/" in resource for amounts in wanted for resource in amounts)


def _placed_in(review: Review) -> Json:
    """The object with the namespace that the request names: the object's own may be empty."""
    new = review.new or {}
    metadata = new.get("metadata")
    given = metadata if isinstance(metadata, dict) else {}
    return {**new, "metadata": {**given, "namespace": review.namespace or given.get("namespace", "")}}


def _read(model: type[Model], raw: Json | None) -> Model:
    """The part of it that the model names: nulls are absent. Raises ValidationError."""
    return model.model_validate(BY_KIND[model.__name__].prune(raw))


def _is_of(review: Review, resource: Resource) -> bool:
    return (review.group, review.kind, review.subresource) == (resource.group, resource.kind, "")


def _is_new(review: Review, resource: Resource) -> bool:
    return _is_of(review, resource) and review.operation == "CREATE"
