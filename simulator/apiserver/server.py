"""The API server: the client port over the store, with the server's rules.

Deterministic: uids and generated names come from a seeded generator, time from the given clock. No sockets:
`simulator.http_face` puts them in front.
"""

from __future__ import annotations

import random
import re
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kube.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
)
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
    Propagation,
    Selection,
    WatchEvent,
)
from model import resources as r
from model.instants import rfc3339
from model.resources import Resource
from simulator.apiserver import object_rules, pod_rules, writes
from simulator.apiserver.patches import PatchFailed, json_patch, merge_patch
from simulator.apiserver.selectors import matcher
from simulator.apiserver.served import ServedKinds
from simulator.apiserver.store import Key, Store, copied, key_of
from simulator.apiserver.watch import follow, stream_list

Mutator = Callable[[Resource, Json], Json | None]
"""An admission hook on creation: the changed object, or None."""

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_DNS_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_PROPAGATION_FINALIZERS: dict[Propagation | None, str] = {
    Propagation.FOREGROUND: "foregroundDeletion",
    Propagation.ORPHAN: "orphan",
}
_TOKEN = re.compile(r"\d+-[0-9a-f]{8}")
_MAX_NAME = 253
_PAGES_KEPT = 64
"""Lists that are under way; the oldest expires first."""


@dataclass(slots=True)
class ApiServer:
    """Implements `kube.port.Client`; `clock` gives milliseconds since the epoch."""

    clock: Callable[[], int]
    seed: int = 0
    store: Store = field(default_factory=Store)
    kinds: ServedKinds = field(default_factory=ServedKinds)
    mutators: list[Mutator] = field(default_factory=list)
    streams_lists: bool = True
    """Whether a watch may begin with a streamed list, as on servers since 1.32."""
    _rng: random.Random = field(init=False)
    _pages: dict[str, tuple[str, list[Json]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Seed the names, and begin with the namespaces that every cluster has."""
        self._rng = random.Random(self.seed)  # noqa: S311 - repeatable on purpose
        for name in ("default", "kube-system", "kube-node-lease"):
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            self._create(r.NAMESPACES, namespace)

    async def get(self, key: ObjectKey) -> Json:
        """See Reader."""
        return self._read(key)

    async def list_page(
        self, resource: Resource, selection: Selection = ALL, *, limit: int = 500, continue_token: str = ""
    ) -> Page:
        """See Reader; later pages come from the first one's moment."""
        self.kinds.of(resource)
        if continue_token:
            if not _TOKEN.fullmatch(continue_token):
                text = "continue key is not valid: the token is none of this server's"
                raise BadRequest(resource.full_name, text, 400, "BadRequest")
            if continue_token not in self._pages:
                text = "The provided continue parameter is too old to display a consistent list result."
                raise Gone(resource.full_name, text, 410, "Expired")
            version, rest = self._pages.pop(continue_token)
        else:
            matches = matcher(selection)
            version = str(self.store.revision)
            rest = [obj for obj in self.store.scan(resource) if matches(obj)]
        items, rest = (rest[:limit], rest[limit:]) if limit else (rest, [])
        return Page([copied(obj) for obj in items], version, self._keep(version, rest) if rest else "")

    async def watch(
        self, resource: Resource, selection: Selection = ALL, *, resource_version: str, timeout_s: int = 300
    ) -> AsyncGenerator[WatchEvent, None]:
        """See Reader."""
        self.kinds.of(resource)
        if not resource_version:
            if not self.streams_lists:
                text = "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless enabled"
                raise Invalid(f"watch of {resource.full_name}", text, 422, "Invalid")
            async for event in stream_list(self.store, resource, matcher(selection), timeout_s):
                yield event
            return
        if not resource_version.isdigit():
            raise BadRequest(resource.full_name, f"Invalid resource version {resource_version!r}", 400)
        async for event in follow(self.store, resource, matcher(selection), int(resource_version), timeout_s):
            yield event

    async def create(self, resource: Resource, body: Json) -> Json:
        """See Writer."""
        return self._create(resource, body)

    async def replace(self, key: ObjectKey, body: Json, subresource: str = "") -> Json:
        """See Writer."""
        self.kinds.of(key.resource)
        old = self._read(key)
        if self.kinds.of(key.resource).is_custom and not (body.get("metadata") or {}).get("resourceVersion"):
            self._refuse(key, ["metadata.resourceVersion: Invalid value: 0: must be specified for an update"])
        return self._update(key, old, copied(body), subresource)

    async def patch(
        self,
        key: ObjectKey,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        options: PatchOptions = MERGE,
    ) -> Json:
        """See Writer; server-side apply is answered as an unsupported media type."""
        self.kinds.of(key.resource)
        old = self._read(key)
        if options.type is PatchType.MERGE and isinstance(patch, Mapping):
            new = merge_patch(old, patch)
        elif options.type is PatchType.JSON and not isinstance(patch, Mapping):
            try:
                new = json_patch(old, patch)
            except PatchFailed as error:
                raise Invalid(str(key), f"the server rejected our request: {error}", 422, "Invalid") from None
        else:
            raise BadRequest(str(key), f"{options.type}: the body is no such patch", 400, "BadRequest")
        if new.get("metadata", {}).get("uid", old["metadata"]["uid"]) != old["metadata"]["uid"]:
            self._refuse(key, ["metadata.uid: Invalid value: field is immutable"])  # where a PUT conflicts
        return self._update(key, old, new, options.subresource)

    async def delete(self, key: ObjectKey, options: DeleteOptions = PLAIN_DELETE) -> None:
        """See Writer."""
        old = self._read(key)
        meta = old["metadata"]
        for name, wanted, found in (
            ("UID", options.uid, meta["uid"]),
            ("ResourceVersion", options.resource_version, meta["resourceVersion"]),
        ):
            if wanted and wanted != found:
                text = (
                    f"Precondition failed: {name} in precondition: {wanted}, {name} in object meta: {found}"
                )
                raise Conflict(str(key), text, 409, "Conflict")
        waits_for = _PROPAGATION_FINALIZERS.get(options.propagation)
        if waits_for and waits_for not in (meta.get("finalizers") or []):
            meta["finalizers"] = [*(meta.get("finalizers") or []), waits_for]
        grace_s = writes.grace_of(key.resource, old, options.grace_s)
        if grace_s == 0 and not meta.get("finalizers") and key.resource != r.NAMESPACES:
            if key.resource == r.PODS:  # a real server marks a pod first, and watchers see both
                writes.mark_deleted(old, 0, self.clock())
                self.store.write(r.PODS, old)
            self._remove(key.resource, key_of(old))
            return
        writes.mark_deleted(old, grace_s, self.clock())
        if key.resource == r.NAMESPACES:
            old["status"] = {"phase": "Terminating"}
        if old != self._read(key):
            self.store.write(key.resource, old)

    async def bind(self, key: ObjectKey, node_name: str) -> None:
        """Bind a pod to a node, as the scheduler does (pods/binding)."""
        pod = self._read(key)
        if pod["spec"].get("nodeName"):
            text = f"pod {key.name} is already assigned to node {pod['spec']['nodeName']!r}"
            raise Conflict(str(key), text, 409, "Conflict")
        if pod["spec"].get("schedulingGates"):
            text = f"pod {key.name} has non-empty .spec.schedulingGates"
            raise Conflict(str(key), text, 409, "Conflict")
        pod["spec"]["nodeName"] = node_name
        scheduled = {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": rfc3339(self.clock()),
        }
        others = [c for c in pod["status"].get("conditions") or [] if c["type"] != "PodScheduled"]
        pod["status"]["conditions"] = [*others, scheduled]
        self.store.write(r.PODS, pod)

    def finalize_namespace(self, name: str) -> None:
        """End a namespace whose content has gone (namespaces/finalize)."""
        self._remove(r.NAMESPACES, ("", name))

    def _create(self, resource: Resource, body: Json) -> Json:
        served = self.kinds.of(resource)
        obj = copied(body)
        obj |= {"apiVersion": resource.api_version, "kind": resource.kind}
        meta = obj.setdefault("metadata", {})
        self._name(resource, meta)
        key = ObjectKey(resource, meta["name"], meta.get("namespace") or "")
        self._admit_namespace(key)
        if meta.get("resourceVersion"):
            raise BadRequest(str(key), "resourceVersion should not be set on objects to be created", 400)
        for mutate in self.mutators:
            obj = mutate(resource, obj) or obj
        now = rfc3339(self.clock())
        meta = obj["metadata"]
        meta |= {"uid": self._uid(), "creationTimestamp": now}
        for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink"):
            meta.pop(name, None)
        writes.prepare(served, obj, now)
        obj = served.prune(obj)
        found = [*object_rules.faults_of(resource, obj), *served.faults(obj)]
        self._refuse(key, [*found, *writes.creation_faults(resource, obj)])
        if self.store.read(resource, key_of(obj)) is not None:
            text = f'{resource.full_name} "{key.name}" already exists'
            raise AlreadyExists(str(key), text, 409, "AlreadyExists")
        if resource == r.CUSTOM_RESOURCE_DEFINITIONS:
            self._install(key, obj)
        return self.store.write(resource, obj)

    def _update(self, key: ObjectKey, old: Json, new: Json, subresource: str) -> Json:
        served = self.kinds.of(key.resource)
        if subresource and not (subresource == "status" and key.resource.has_status):
            raise NotFound(str(key), "the server could not find the requested resource", 404, "NotFound")
        meta = new.setdefault("metadata", {})
        if meta.get("resourceVersion") not in (None, "", old["metadata"]["resourceVersion"]):
            text = (
                f'Operation cannot be fulfilled on {key.resource.full_name} "{key.name}": the object has '
                "been modified; please apply your changes to the latest version and try again"
            )
            raise Conflict(str(key), text, 409, "Conflict")
        if meta.get("uid") not in (None, "", old["metadata"]["uid"]):
            found = old["metadata"]["uid"]
            text = f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: {found}"
            raise Conflict(str(key), text, 409, "Conflict")
        if meta.get("name", key.name) != key.name:
            text = "the name of the object does not match the name on the URL"
            raise BadRequest(str(key), text, 400, "BadRequest")
        merged = served.prune(writes.merged(served, old, new, subresource))
        self._refuse(key, [*served.faults(merged, old), *self._update_faults(key, old, merged, subresource)])
        if merged == old:
            return old
        writes.raise_generation(served, old, merged)
        if merged["metadata"].get("deletionTimestamp") and self._may_go(key.resource, merged):
            # The last finalizer's removal is stored nowhere: watchers see the state before it.
            return self._remove(key.resource, key_of(merged))
        return self.store.write(key.resource, merged)

    def _update_faults(self, key: ObjectKey, old: Json, new: Json, subresource: str) -> list[str]:
        found = [*object_rules.faults_of(key.resource, new), *object_rules.change_faults(old, new)]
        if key.resource == r.PODS and not subresource:
            found += pod_rules.update_faults(old, new)
        return found

    def _may_go(self, resource: Resource, obj: Json) -> bool:
        waits = obj["metadata"].get("deletionGracePeriodSeconds", 0) and resource == r.PODS
        return not obj["metadata"].get("finalizers") and not waits and resource != r.NAMESPACES

    def _remove(self, resource: Resource, key: Key) -> Json:
        final = self.store.remove(resource, key)
        if resource == r.CUSTOM_RESOURCE_DEFINITIONS:
            self.kinds.uninstall(final)
        return final

    def _install(self, key: ObjectKey, crd: Json) -> None:
        try:
            self.kinds.install(crd)
        except (KeyError, StopIteration, ValueError) as error:
            raise Invalid(str(key), f"spec: Invalid value: {error}", 422, "Invalid") from None
        crd["status"] = {"conditions": [{"type": "Established", "status": "True"}]}

    def _read(self, key: ObjectKey) -> Json:
        self.kinds.of(key.resource)
        obj = self.store.read(key.resource, (key.namespace, key.name))
        if obj is None:
            raise NotFound(str(key), f'{key.resource.full_name} "{key.name}" not found', 404, "NotFound")
        return obj

    def _name(self, resource: Resource, meta: Json) -> None:
        if not meta.get("name") and meta.get("generateName"):
            tail = "".join(self._rng.choices(_ALPHABET, k=5))
            meta["name"] = f"{meta['generateName'][:58]}{tail}"
        name = meta.get("name")
        if not isinstance(name, str) or not name:
            text = f"{resource.kind}: metadata.name: Required value: name or generateName is required"
            raise Invalid(resource.full_name, text, 422, "Invalid")
        is_plain = resource == r.CUSTOM_RESOURCE_DEFINITIONS or _DNS_NAME.fullmatch(name)
        if not is_plain or len(name) > _MAX_NAME:
            text = (
                f'{resource.kind} "{name[:80]}" is invalid: metadata.name: Invalid value: RFC 1123 subdomain'
            )
            raise Invalid(resource.full_name, text, 422, "Invalid")

    def _admit_namespace(self, key: ObjectKey) -> None:
        if not key.resource.is_namespaced:
            return
        namespace = self.store.read(r.NAMESPACES, ("", key.namespace))
        if namespace is None:
            raise NotFound(str(key), f'namespaces "{key.namespace}" not found', 404, "NotFound")
        if namespace["metadata"].get("deletionTimestamp"):
            text = f"unable to create new content in namespace {key.namespace} because it is being terminated"
            raise Forbidden(str(key), text, 403, "Forbidden")

    def _refuse(self, key: ObjectKey, found: list[str]) -> None:
        if found:
            text = f'{key.resource.kind} "{key.name}" is invalid: {"; ".join(found)}'
            raise Invalid(str(key), text, 422, "Invalid")

    def _keep(self, version: str, rest: list[Json]) -> str:
        token = f"{version}-{self._rng.getrandbits(32):08x}"
        self._pages[token] = (version, rest)
        while len(self._pages) > _PAGES_KEPT:
            self._pages.pop(next(iter(self._pages)))
        return token

    def expire_pages(self) -> None:
        """Let every list under way expire, as compaction does."""
        self._pages.clear()

    def _uid(self) -> str:
        return str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
