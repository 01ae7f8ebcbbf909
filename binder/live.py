"""The live claims: a consistent LIST at the start of each pass, past every cache (R3)."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import ValidationError

from binder.core.claims import key_of
from binder.core.state import Key
from kube.errors import Gone
from kube.port import Reader, list_all
from model.claims import GPUClaim
from model.kinds import BY_KIND
from model.resources import GPU_CLAIMS

ATTEMPTS = 3
"""A list whose pages expire on the way is begun again this often."""


async def list_claims(client: Reader, report: Callable[[str, str], None]) -> dict[Key, GPUClaim]:
    """All claims; one that cannot be read is reported as (name, cause) and left out. Raises ApiError."""
    for _ in range(ATTEMPTS - 1):
        try:
            return await _list_once(client, report)
        except Gone:
            continue
    return await _list_once(client, report)


async def _list_once(client: Reader, report: Callable[[str, str], None]) -> dict[Key, GPUClaim]:
    prune = BY_KIND[GPU_CLAIMS.kind].prune
    claims = {}
    for raw in (await list_all(client, GPU_CLAIMS)).items:
        try:
            claim = GPUClaim.model_validate(prune(raw))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            meta = raw.get("metadata") or {}
            where = ".".join(str(part) for part in first["loc"])
            report(f"GPUClaim {meta.get('namespace')}/{meta.get('name')}", f"{where}: {first['msg']}")
            continue
        claims[key_of(claim)] = claim
    return claims
