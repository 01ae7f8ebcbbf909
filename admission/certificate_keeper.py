"""Keeps our certificates: in a Secret that all replicas share, in the webhook configurations, in force.

Whoever comes first makes them; the others adopt what is there. Each write carries the version that was read,
so of several replicas that want to change the same thing one does. What is new is stored first, trusted next,
and shown last.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from admission.certificates import (
    YEAR_S,
    Material,
    Pair,
    Unusable,
    Wish,
    first_material,
    next_material,
    split_bundle,
)
from admission.webhooks import CHECKS_CONFIGURATION, GATE_CONFIGURATION
from kube.errors import ApiError, Conflict, Invalid, NotFound
from kube.port import Client, Json, ObjectKey, PatchOptions, PatchType
from model.names import LABEL_OURS, OURS
from model.resources import MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS

CONFIGURATIONS = (
    ObjectKey(MUTATING_WEBHOOKS, GATE_CONFIGURATION),
    ObjectKey(VALIDATING_WEBHOOKS, CHECKS_CONFIGURATION),
)
LOOK_S = 10.0
"""Between two looks at Secret and configurations: one that is applied anew is made good within it."""
OVERLAP_S = 300.0
"""For so long the configurations carry a new authority before it is needed: every API server has read it."""
TRIES = 5
"""Of one look, while other replicas change the Secret."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How long certificates live, and how often they are looked at (s)."""

    life_s: int = YEAR_S
    look_s: float = LOOK_S
    overlap_s: float = OVERLAP_S


class Shown(Protocol):
    """What shows the certificate to callers."""

    def show(self, certificate: bytes, key: bytes) -> bool:
        """Use it from the next connection on; False if it is in use already.

        Raises ValueError for what is no certificate with its key.
        """
        ...


class CertificateObserver(Protocol):
    """Told of certificates: for logs and metrics."""

    def certificate_shown(self, until: datetime) -> None:
        """Another certificate is in force."""
        ...

    def certificates_unkept(self, why: str) -> None:
        """Secret or configurations could not be read or written; it is tried again."""
        ...


@dataclass(slots=True)
class CertificateKeeper:
    """The loop of one replica."""

    client: Client
    secret: ObjectKey
    names: tuple[str, ...]
    shown: Shown
    observer: CertificateObserver
    now: Callable[[], datetime]
    pace: Pace = Pace()
    _newest: bytes = b""
    _trusted_since_s: float | None = None

    async def run(self) -> None:
        """Look, again and again."""
        while True:
            try:
                await self.look()
            except (ApiError, ValueError) as error:
                self.observer.certificates_unkept(" ".join(str(error).split()))
            await asyncio.sleep(self.pace.look_s)

    async def look(self) -> None:
        """Store what is due, have it trusted, show it. Raises ApiError, Unusable."""
        material = await self._stored()
        if self.shown.show(material.serving.certificate, material.serving.key):
            self.observer.certificate_shown(material.serving.parsed().not_valid_after_utc)
        await self._have_trusted(material)

    async def _stored(self) -> Material:
        """What the Secret holds, once it holds what is due."""
        for left in reversed(range(TRIES)):
            try:
                return await self._store_next()
            except Conflict:
                if not left:
                    raise
        raise AssertionError

    async def _store_next(self) -> Material:
        """Raises Conflict when another replica was quicker."""
        wish = Wish(self.names, self.now(), self.pace.life_s)
        try:
            secret = await self.client.get(self.secret)
        except NotFound:
            material = first_material(wish)
            await self.client.create(SECRETS, _as_secret(material, self.secret))
            return material
        held = _from_secret(secret, self.secret)
        material = next_material(held, wish, is_newest_trusted=self._is_trusted(held))
        if material is not held:
            body = _as_secret(material, self.secret)
            body["metadata"]["resourceVersion"] = secret["metadata"]["resourceVersion"]
            await self.client.replace(self.secret, body)
        return material

    def _is_trusted(self, held: Material) -> bool:
        """Whether the configurations have carried its newest authority for long enough."""
        if held.authorities[0].certificate != self._newest or self._trusted_since_s is None:
            return False
        return _now_s() - self._trusted_since_s >= self.pace.overlap_s

    async def _have_trusted(self, material: Material) -> None:
        """Write the authorities into our configurations, where they are installed."""
        found = [await self._trust(key, material.bundle) for key in CONFIGURATIONS]
        newest = material.authorities[0].certificate
        if not any(found):
            self._trusted_since_s = None
        elif self._trusted_since_s is None or newest != self._newest:
            self._trusted_since_s = _now_s()
        self._newest = newest

    async def _trust(self, key: ObjectKey, bundle: bytes) -> bool:
        """Whether the configuration is there, and trusts the authorities."""
        for left in reversed(range(TRIES)):
            try:
                body = await self.client.get(key)
                patch = _trusting(body, base64.b64encode(bundle).decode())
                if patch:
                    await self.client.patch(key, patch, PatchOptions(PatchType.JSON))
            except NotFound:
                return False
            except (Conflict, Invalid):  # a version that has moved on is the failed test of a JSON patch
                if not left:
                    raise
            else:
                return True
        raise AssertionError


def _trusting(body: Json, bundle: str) -> list[Json]:
    """The JSON patch that makes every webhook of a configuration trust the bundle; empty if all do."""
    adds = [
        {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": bundle}
        for index, webhook in enumerate(body.get("webhooks") or [])
        if webhook["clientConfig"].get("caBundle") != bundle
    ]
    version = body["metadata"]["resourceVersion"]
    return [{"op": "test", "path": "/metadata/resourceVersion", "value": version}, *adds] if adds else []


def _as_secret(material: Material, key: ObjectKey) -> Json:
    parts = {
        "tls.crt": material.serving.certificate,
        "tls.key": material.serving.key,
        "ca.crt": material.bundle,
        "ca.key": b"".join(pair.key for pair in material.authorities),
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": key.name, "namespace": key.namespace, "labels": {LABEL_OURS: OURS}},
        "type": "kubernetes.io/tls",
        "data": {name: base64.b64encode(value).decode() for name, value in parts.items()},
    }


def _from_secret(secret: Json, key: ObjectKey) -> Material:
    """Raises Unusable, with the next step: what is not ours is never overwritten."""
    try:
        parts = {
            name: base64.b64decode(value, validate=True) for name, value in (secret.get("data") or {}).items()
        }
        authorities, keys = split_bundle(parts["ca.crt"]), split_bundle(parts["ca.key"], b"PRIVATE KEY")
        pairs = [Pair(certificate, own) for certificate, own in zip(authorities, keys, strict=True)]
        material = Material(tuple(pairs), Pair(parts["tls.crt"], parts["tls.key"]))
        for pair in (*pairs, material.serving):
            pair.parsed()
    except (KeyError, ValueError, binascii.Error, AttributeError, TypeError) as error:
        why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        text = f"{key} holds no certificates of gpubinder ({why}); delete it, or give another --secret"
        raise Unusable(text) from None
    if not pairs:
        raise Unusable(f"{key} holds no authority; delete it, or give another --secret")
    return material


def _now_s() -> float:
    return asyncio.get_running_loop().time()
