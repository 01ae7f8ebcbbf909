"""The API server: the client port over the store, with the server's rules.

Deterministic: uids and generated names come from a seeded generator, time from the given clock. No sockets:
`simulator.http_face` puts them in front.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kube.errors import Forbidden
from kube.port import (
    ALL,
    MERGE,
    PLAIN_DELETE,
    DeleteOptions,
    Json,
    ObjectKey,
    Page,
    PatchOptions,
    PatchType,
    Selection,
    WatchEvent,
)
from model import resources as r
from model.instants import rfc3339
from model.resources import Resource
from simulator.apiserver import deletion, object_rules, refusals, writes
from simulator.apiserver.admission import Mutator, Operation, Request, Validator, Webhook
from simulator.apiserver.kind_shapes import decoded_object
from simulator.apiserver.paging import Pages
from simulator.apiserver.patches import PatchFailed, json_patch, merge_patch
from simulator.apiserver.selectors import in_scope, matcher
from simulator.apiserver.served import Served, ServedKinds
from simulator.apiserver.shapes import Misfit
from simulator.apiserver.store import Key, Store, copied, key_of
from simulator.apiserver.watch import follow, stream_list

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""Kubernetes' own: no vowels, so that no words come out."""
_TAIL = 5
_MAX_PREFIX = 58


@dataclass(slots=True)
class ApiServer:
    """Implements `kube.port.Client`; `clock` gives milliseconds since the epoch."""

    clock: Callable[[], int]
    seed: int = 0
    store: Store = field(default_factory=Store)
    kinds: ServedKinds = field(default_factory=ServedKinds)
    mutators: list[Mutator] = field(default_factory=list)
    validators: list[Validator] = field(default_factory=list)
    webhooks: list[Webhook] = field(default_factory=list)
    streams_lists: bool = True
    """Whether a watch may begin with a streamed list, as on servers since 1.32."""
    _rng: random.Random = field(init=False)
    _pages: Pages = field(init=False)

    def __post_init__(self) -> None:
        """Seed the names, and begin with the namespaces that every cluster has."""
        self._rng = random.Random(self.seed)  # noqa: S311 - repeatable on purpose
        self._pages = Pages(self.store)
        for name in ("default", "kube-system", "kube-node-lease"):
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            self._create(r.NAMESPACES, namespace)

    async def get(self, key: ObjectKey) -> Json:
        """See Reader."""
        return self._read(key)

    async def list_page(
        self, resource: Resource, selection: Selection = ALL, *, limit: int = 500, continue_token: str = ""
    ) -> Page:
        """See Reader; later pages come from the first one's moment. A limit of 0 is none."""
        self.kinds.of(resource)
        matches = matcher(resource, selection)
        if continue_token:
            return self._pages.later(resource, matches, limit, continue_token)
        scope = filter(matcher(resource, in_scope(selection)), self.store.scan(resource))
        return self._pages.first(scope, matches, limit)

    async def watch(
        self, resource: Resource, selection: Selection = ALL, *, resource_version: str, timeout_s: int = 300
    ) -> AsyncGenerator[WatchEvent, None]:
        """See Reader; version 0 streams what there is, without a mark at its end."""
        self.check_watch(resource, selection, resource_version)
        matches = matcher(resource, selection)
        if resource_version in ("", "0"):
            events = stream_list(self.store, resource, matches, timeout_s, marks_end=not resource_version)
        else:
            events = follow(self.store, resource, matches, int(resource_version), timeout_s)
        async for event in events:
            yield event

    def check_watch(self, resource: Resource, selection: Selection, resource_version: str) -> None:
        """Raise what a watch is refused with before it begins."""
        self.kinds.of(resource)
        matcher(resource, selection)
        if not resource_version and not self.streams_lists:
            text = "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless enabled"
            raise refusals.invalid(ObjectKey(resource, ""), [text])
        if resource_version and not _is_version(resource_version):
            raise refusals.rejected_version(f"watch of {resource.full_name}", resource_version)

    async def create(self, resource: Resource, body: Json) -> Json:
        """See Writer."""
        if self.webhooks:
            body = await self._asked(resource, body)
        return self._create(resource, body)

    async def replace(self, key: ObjectKey, body: Json, subresource: str = "") -> Json:
        """See Writer."""
        old = self._read(key)
        try:
            new = decoded_object(key.resource, body)
        except Misfit as error:
            raise refusals.undecodable(key, error) from None
        meta = new.get("metadata") or {}
        if self.kinds.of(key.resource).is_custom and not meta.get("resourceVersion"):
            text = "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
            raise refusals.invalid(key, [text])
        return self._update(key, old, new, subresource)

    async def patch(
        self,
        key: ObjectKey,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        options: PatchOptions = MERGE,
    ) -> Json:
        """See Writer; server-side apply is answered as an unsupported media type."""
        old = self._read(key)
        try:
            new = decoded_object(key.resource, _patched(key, old, patch, options.type))
        except Misfit as error:
            raise refusals.unpatchable(key, error) from None
        uid = old["metadata"]["uid"]
        if (new.get("metadata") or {}).get("uid", uid) != uid:  # where a PUT conflicts
            raise refusals.invalid(key, ["metadata.uid: Invalid value: field is immutable"])
        return self._update(key, old, new, options.subresource)

    async def delete(self, key: ObjectKey, options: DeleteOptions = PLAIN_DELETE) -> None:
        """See Writer."""
        old = self._read(key)
        before, meta = copied(old), old["metadata"]
        deletion.check_preconditions(key, meta, options)
        self._admit(Request(Operation.DELETE, key, before, None))
        deletion.add_propagation(meta, options.propagation)
        deletion.mark(old, deletion.grace_of(key.resource, old, options.grace_s), self.clock())
        if key.resource == r.NAMESPACES:
            old["status"] = {"phase": "Terminating"}
        goes = deletion.may_go(key.resource, old)
        if old != before and (not goes or key.resource == r.PODS):
            self.store.write(key.resource, old)  # a real server marks a pod first, and watchers see both
        if goes:
            self._remove(key.resource, key_of(old))

    async def bind(self, key: ObjectKey, node_name: str) -> None:
        """Bind a pod to a node, as the scheduler does (pods/binding)."""
        pod = self._read(key)
        if not node_name:
            raise refusals.server_fault(key, "target.name: Required value")
        if pod["metadata"].get("deletionTimestamp"):
            raise refusals.unbindable(key, "is being deleted, cannot be assigned to a host")
        if pod["spec"].get("nodeName"):
            raise refusals.unbindable(key, f'is already assigned to node "{pod["spec"]["nodeName"]}"')
        if pod["spec"].get("schedulingGates"):
            raise refusals.unbindable(key, "has non-empty .spec.schedulingGates")
        pod["spec"]["nodeName"] = node_name
        scheduled = {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": rfc3339(self.clock()),
        }
        others = [c for c in pod["status"].get("conditions") or [] if c.get("type") != "PodScheduled"]
        pod["status"]["conditions"] = [*others, scheduled]
        self.store.write(r.PODS, pod)

    def finalize_namespace(self, name: str) -> None:
        """End a namespace whose content has gone (namespaces/finalize)."""
        self._remove(r.NAMESPACES, ("", name))

    def expire_pages(self) -> None:
        """Let every list under way expire, as compaction does."""
        self._pages.expire()

    async def _asked(self, resource: Resource, body: Json) -> Json:
        """The new object as the webhooks leave it."""
        self.kinds.of(resource)
        obj = self._decode_new(resource, body)
        writes.fill_in(resource, obj)
        for ask in self.webhooks:
            request = Request(Operation.CREATE, refusals.of_object(resource, obj), None, copied(obj))
            obj = await ask(request) or obj
        return obj

    def _create(self, resource: Resource, body: Json) -> Json:
        served = self.kinds.of(resource)
        obj = self._decode_new(resource, body)
        key = refusals.of_object(resource, obj)
        self._admit_namespace(key)
        if obj["metadata"].get("resourceVersion", "0") not in ("", "0"):
            raise refusals.server_fault(key, "resourceVersion should not be set on objects to be created")
        writes.fill_in(resource, obj)
        for mutate in self.mutators:
            obj = mutate(resource, obj) or obj
        obj = self._decode_new(resource, obj)
        writes.fill_in(resource, obj)
        writes.begin(served, obj, self._uid(), rfc3339(self.clock()))
        obj = served.shaped(obj)
        self._check(served, None, obj, "")
        self._admit(Request(Operation.CREATE, key, None, obj))
        if self.store.read(resource, key_of(obj)) is not None:
            raise refusals.already_exists(key)
        if resource == r.CUSTOM_RESOURCE_DEFINITIONS:
            self._install(key, obj)
        return self.store.write(resource, obj)

    def _decode_new(self, resource: Resource, body: Json) -> Json:
        """A new object with its name, generated where it is asked for."""
        meta = body.get("metadata")
        name = meta.get("name") or "" if isinstance(meta, dict) else ""
        namespace = meta.get("namespace") or "" if isinstance(meta, dict) else ""
        key = ObjectKey(resource, str(name), str(namespace))
        try:
            obj = decoded_object(resource, body)
        except Misfit as error:
            raise refusals.undecodable(key, error) from None
        meta = obj.setdefault("metadata", {})
        if not resource.is_namespaced:
            meta.pop("namespace", None)
        if not meta.get("name") and meta.get("generateName"):
            tail = "".join(self._rng.choices(_ALPHABET, k=_TAIL))
            meta["name"] = f"{meta['generateName'][:_MAX_PREFIX]}{tail}"
        if not meta.get("name"):
            text = "metadata.name: Required value: name or generateName is required"
            raise refusals.invalid(key, [text])
        return obj

    def _update(self, key: ObjectKey, old: Json, new: Json, subresource: str) -> Json:
        served = self.kinds.of(key.resource)
        if subresource and not (subresource == "status" and key.resource.has_status):
            raise refusals.not_served(key)
        _check_identity(key, old, new)
        if not subresource:
            writes.fill_in(key.resource, new)
        merged = served.shaped(writes.merged(served, old, new, subresource))
        self._check(served, (old, new), merged, subresource)
        self._admit(Request(Operation.UPDATE, key, old, merged, subresource))
        if merged == old:
            return old
        writes.raise_generation(served, old, merged)
        if deletion.may_go(key.resource, merged):
            # The last finalizer's removal is stored nowhere: watchers see the state before it.
            self._remove(key.resource, key_of(merged))
            return merged
        if key.resource == r.CUSTOM_RESOURCE_DEFINITIONS and not subresource:
            self._install(key, merged)
        return self.store.write(key.resource, merged)

    def _check(self, served: Served, change: tuple[Json, Json] | None, obj: Json, subresource: str) -> None:
        """Refuse an object that breaks a rule; `change` is what was stored, and what was sent."""
        old = None if change is None else change[0]
        found = list(object_rules.faults_of(served.resource, obj))
        found += served.faults(obj, old)
        if change is not None:
            found += writes.deletion_faults(*change)
            found += object_rules.change_faults(served.resource, change[0], obj)
        if served.resource == r.PODS:
            found += writes.pod_faults(old, obj, subresource)
        if found:
            raise refusals.invalid(refusals.of_object(served.resource, obj), found)

    def _admit(self, request: Request) -> None:
        for validate in self.validators:
            validate(request)

    def _remove(self, resource: Resource, key: Key) -> None:
        final = self.store.remove(resource, key)
        if resource == r.CUSTOM_RESOURCE_DEFINITIONS and (gone := self.kinds.uninstall(final)):
            for obj in list(self.store.scan(gone)):  # a kind takes its objects along
                self.store.remove(gone, key_of(obj))

    def _install(self, key: ObjectKey, crd: Json) -> None:
        try:
            self.kinds.install(crd)
        except (KeyError, TypeError, AttributeError, StopIteration, ValueError) as error:
            raise refusals.invalid(key, [f"spec: Invalid value: {error}"]) from None
        crd["status"] = {"conditions": [{"type": "Established", "status": "True"}]}

    def _read(self, key: ObjectKey) -> Json:
        self.kinds.of(key.resource)
        obj = self.store.read(key.resource, (key.namespace, key.name))
        if obj is None:
            raise refusals.not_found(key)
        return obj

    def _admit_namespace(self, key: ObjectKey) -> None:
        if not key.resource.is_namespaced:
            return
        if not key.namespace:
            raise refusals.not_allowed(key)
        namespace = self.store.read(r.NAMESPACES, ("", key.namespace))
        if namespace is None:
            raise refusals.not_found(ObjectKey(r.NAMESPACES, key.namespace))
        if namespace["metadata"].get("deletionTimestamp"):
            text = f"unable to create new content in namespace {key.namespace} because it is being terminated"
            raise Forbidden(str(key), text, 403, "Forbidden")

    def _uid(self) -> str:
        return str(uuid.UUID(int=self._rng.getrandbits(128), version=4))


def _is_version(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _patched(key: ObjectKey, old: Json, patch: Any, kind: PatchType) -> Json:
    """The patched object, not yet decoded."""
    new: Any = None
    if kind is PatchType.MERGE and isinstance(patch, Mapping):
        new = merge_patch(old, patch)
    elif kind is PatchType.JSON and _are_operations(patch):
        try:
            new = json_patch(old, patch)
        except PatchFailed as error:
            raise refusals.rejected_patch(key, error) from None
    else:
        raise refusals.bad_request(key, f"error decoding patch: the body is no {kind}")
    if not isinstance(new, dict):
        raise refusals.unpatchable(key, "no object is left")
    return new


def _are_operations(patch: Any) -> bool:
    return isinstance(patch, list | tuple) and all(isinstance(operation, Mapping) for operation in patch)


def _check_identity(key: ObjectKey, old: Json, new: Json) -> None:
    """Whether a change is of this object, as it is now."""
    meta, was = new.get("metadata") or {}, old["metadata"]
    if not meta.get("name"):
        text = f"the name of the object ({key.name} based on URL) was undeterminable: name must be provided"
        raise refusals.bad_request(key, text)
    if meta["name"] != key.name:
        text = f"the name of the object ({meta['name']}) does not match the name on the URL ({key.name})"
        raise refusals.bad_request(key, text)
    if (meta.get("namespace") or key.namespace) != key.namespace:
        text = "the namespace of the provided object does not match the namespace sent on the request"
        raise refusals.bad_request(key, text)
    version = meta.get("resourceVersion") or was["resourceVersion"]
    if not _is_version(version):
        raise refusals.rejected_version(key, version)
    if version not in ("0", was["resourceVersion"]):
        raise refusals.modified(key)
    if (meta.get("uid") or was["uid"]) != was["uid"]:
        raise refusals.another_uid(key, meta["uid"], was["uid"])
