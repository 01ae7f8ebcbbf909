"""Writes the decisions of one set, each with its preconditions: what has gone on since is not overwritten."""

from __future__ import annotations

from dataclasses import replace

from pydantic import ValidationError

from binder.core.pin import pin_patch, spec_digest, ungate_patch
from binder.core.writing import whereabouts
from binder.effects import objects
from binder.effects.status_writer import write_status
from kube.errors import AlreadyExists, Conflict, NotFound
from kube.port import MERGE_STATUS, Client, DeleteOptions, Json, ObjectKey
from model.decisions import (
    BindClaim,
    CreateClaim,
    Decision,
    DeleteClaim,
    DeletePod,
    DeleteVmi,
    Keep,
    Kept,
    LetGo,
    LoseClaim,
    MarkWaiting,
    ObjectRef,
    PinLauncher,
    UngateLauncher,
    WarnPod,
    WarnVmi,
    WriteBudgetStatus,
    WriteClassStatus,
)
from model.kinds import BY_KIND
from model.names import FINALIZER
from model.pods import Pod
from model.resources import (
    EVENTS,
    GPU_CLAIMS,
    GPU_CLASSES,
    PODS,
    VIRTUAL_MACHINE_INSTANCES,
    Resource,
)

FINALIZER_TRIES = 3
"""On one object, whose version others may change meanwhile."""


class SetWriter:
    """Writes the decisions of one set, and knows the versions that its own writes have made."""

    def __init__(self, client: Client, instance: str) -> None:
        self._client = client
        self._instance = instance
        self._written: dict[str, ObjectRef] = {}
        self._checked: dict[str, Json] = {}

    async def check(self, chain: list[Decision]) -> None:
        """Before anything is booked for a launcher: is it still what the pass saw? Raises Conflict."""
        for decision in chain:
            if isinstance(decision, PinLauncher):
                self._checked[decision.pod.uid] = await self._read_launcher(decision)

    async def write(self, decision: Decision) -> None:
        """One decision, one write; raises ApiError."""
        match decision:
            case CreateClaim():
                await self._create_claim(decision)
            case BindClaim() | MarkWaiting() | LoseClaim():
                newest = self._newest(decision.claim)
                await self._patch_claim(decision.claim, objects.status_patch(decision, newest))
            case PinLauncher():
                await self._pin(decision)
            case UngateLauncher(pod=ref):
                await self._ungate(ref)
            case WarnVmi() | WarnPod():
                await self._warn(decision)
            case Keep() | LetGo():
                await self._set_finalizer(decision)
            case WriteClassStatus() | WriteBudgetStatus():
                await write_status(self._client, decision)
            case DeleteClaim() | DeletePod() | DeleteVmi():
                await self._delete(decision)

    async def _delete(self, decision: DeleteClaim | DeletePod | DeleteVmi) -> None:
        match decision:
            case DeleteClaim():
                await self._delete_claim(decision)
            case DeletePod(pod=ref, seen=seen):
                await self._delete_as_seen(PODS, ref, seen)
            case DeleteVmi(vmi=ref, seen=seen):
                await self._delete_as_seen(VIRTUAL_MACHINE_INSTANCES, ref, seen)

    def _newest(self, ref: ObjectRef) -> ObjectRef:
        return self._written.get(ref.name, ref)

    def _remember(self, ref: ObjectRef, body: Json) -> None:
        meta = body["metadata"]
        self._written[ref.name] = replace(ref, uid=meta["uid"], resource_version=meta["resourceVersion"])

    async def _create_claim(self, decision: CreateClaim) -> None:
        try:
            body = await self._client.create(GPU_CLAIMS, objects.claim_body(decision))
        except AlreadyExists:
            body = await self._client.get(_claim_key(decision.claim))
            owners = body["metadata"].get("ownerReferences") or []
            is_ours = any(owner.get("uid") == decision.owner.uid for owner in owners)
            if not is_ours or (body.get("status") or {}).get("phase") == "Bound":
                raise  # another binder went on from here: a new pass sees what it decided
        self._remember(decision.claim, body)

    async def _patch_claim(self, ref: ObjectRef, patch: Json) -> None:
        body = await self._client.patch(_claim_key(ref), patch, MERGE_STATUS)
        self._remember(ref, body)

    async def _pin(self, decision: PinLauncher) -> None:
        """On the version that was checked; KubeVirt may have touched it since, which need not matter."""
        live = self._checked.pop(decision.pod.uid, None) or await self._read_launcher(decision)
        try:
            await self._pin_version(decision, live)
        except Conflict:
            await self._pin_version(decision, await self._read_launcher(decision))

    async def _pin_version(self, decision: PinLauncher, live: Json) -> None:
        await self._client.patch(_pod_key(decision.pod), pin_patch(live, decision.node, decision.tolerations))

    async def _read_launcher(self, decision: PinLauncher) -> Json:
        key = _pod_key(decision.pod)
        live = await self._client.get(key)
        pod = _read_pod(key, live)
        if pod.metadata.uid != decision.pod.uid or pod.metadata.deletion_timestamp:
            raise Conflict(str(key), "another pod of that name, or going away")
        if spec_digest(pod.spec) != decision.spec_digest:
            raise Conflict(str(key), "it has changed since the pass looked at it, or was pinned before")
        return live

    async def _warn(self, decision: WarnVmi | WarnPod) -> None:
        at_micro = decision.at.removesuffix("Z") + ".000000Z"
        try:
            await self._client.create(EVENTS, objects.warning_event(decision, at_micro, self._instance))
        except AlreadyExists:
            return

    async def _set_finalizer(self, decision: Keep | LetGo) -> None:
        """Ours alone; those of others stay. What has gone is no longer our business.

        It is as right on a newer version: the status of the same claim is often written at the same time.
        """
        for left in reversed(range(FINALIZER_TRIES)):
            try:
                await self._try_finalizer(decision)
            except Conflict:
                if not left:
                    raise
            else:
                return

    async def _try_finalizer(self, decision: Keep | LetGo) -> None:
        key, ref, is_kept = _kept_key(decision), decision.ref, isinstance(decision, Keep)
        try:
            live = await self._client.get(key)
        except NotFound:
            return
        meta = live["metadata"]
        others = [name for name in meta.get("finalizers") or [] if name != FINALIZER]
        wanted = [*others, FINALIZER] if is_kept else others
        if meta["uid"] == ref.uid and wanted != (meta.get("finalizers") or []):
            versioned = {"resourceVersion": meta["resourceVersion"], "finalizers": wanted or None}
            await self._client.patch(key, {"metadata": versioned})

    async def _delete_as_seen(self, resource: Resource, ref: ObjectRef, seen: str) -> None:
        """A launcher or a VMI that still is where the pass saw it; else the next pass looks at it."""
        key = ObjectKey(resource, ref.name, ref.namespace)
        try:
            live = await self._client.get(key)
            meta = live["metadata"]
            if meta["uid"] != ref.uid or meta.get("deletionTimestamp"):
                return
            if _whereabouts(live) != seen:
                raise Conflict(str(key), f"it is {_whereabouts(live)} now, not {seen} as the pass saw it")
            options = DeleteOptions(uid=ref.uid, resource_version=meta["resourceVersion"])
            await self._client.delete(key, options)
        except NotFound:
            return

    async def _ungate(self, ref: ObjectRef) -> None:
        key = ObjectKey(PODS, ref.name, ref.namespace)
        try:
            live = await self._client.get(key)
        except NotFound:
            return
        if live["metadata"]["uid"] == ref.uid:
            await self._client.patch(key, ungate_patch(live))

    async def _delete_claim(self, decision: DeleteClaim) -> None:
        ref = decision.claim
        if decision.gone is not None:
            await self._check_gone(decision.gone)
        try:
            await self._client.delete(
                _claim_key(ref), DeleteOptions(uid=ref.uid, resource_version=ref.resource_version)
            )
        except NotFound:
            return

    async def _check_gone(self, ref: ObjectRef) -> None:
        """The log has not told of the VMI, e.g. because it was too large for it: that proves nothing."""
        key = ObjectKey(VIRTUAL_MACHINE_INSTANCES, ref.name, ref.namespace)
        try:
            live = await self._client.get(key)
        except NotFound:
            return
        if live["metadata"]["uid"] == ref.uid:
            raise Conflict(str(key), "it is there, although the log does not tell of it")


def _whereabouts(live: Json) -> str:
    """Of a pod, whose node is in its spec, or of a VMI, whose node is in its status."""
    status = live.get("status") or {}
    node = status.get("nodeName") or (live.get("spec") or {}).get("nodeName") or ""
    return whereabouts(status.get("phase") or "", node)


def _kept_key(decision: Keep | LetGo) -> ObjectKey:
    resource = GPU_CLAIMS if decision.kind is Kept.CLAIM else GPU_CLASSES
    return ObjectKey(resource, decision.ref.name, decision.ref.namespace)


def _pod_key(ref: ObjectRef) -> ObjectKey:
    return ObjectKey(PODS, ref.name, ref.namespace)


def _claim_key(ref: ObjectRef) -> ObjectKey:
    return ObjectKey(GPU_CLAIMS, ref.name, ref.namespace)


def _read_pod(key: ObjectKey, live: Json) -> Pod:
    try:
        return Pod.model_validate(BY_KIND[PODS.kind].prune(live))
    except ValidationError as error:
        raise Conflict(str(key), f"cannot be read as a Pod: {error.errors()[0]['msg']}") from None
