"""The live claims: a consistent LIST at the start of each pass, past every cache (R3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from pydantic import ValidationError

from binder.core.state import Key
from kube.errors import Gone
from kube.port import Json, Reader
from model.claims import GPUClaim
from model.kinds import BY_KIND
from model.resources import GPU_CLAIMS

ATTEMPTS = 3
"""A list whose pages expire on the way is begun again this often."""
PAGE = 1000
"""Claims in one answer: about 2 MB."""


class Live(NamedTuple):
    """All claims, and the keys of those that are new or not as they were known."""

    claims: dict[Key, GPUClaim]
    changed: list[Key]


async def list_claims(
    client: Reader, report: Callable[[str, str], None], known: Mapping[Key, GPUClaim]
) -> Live:
    """All claims; one that cannot be read is reported as (name, cause) and left out. Raises ApiError.

    A claim that stands in the version that is `known` already is not decoded again.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return await _list_once(client, report, known)
        except Gone:
            continue
    return await _list_once(client, report, known)


async def _list_once(
    client: Reader, report: Callable[[str, str], None], known: Mapping[Key, GPUClaim]
) -> Live:
    """Page by page, so that no more than one page is held as it came."""
    live, token = Live({}, []), ""
    while True:
        page = await client.list_page(GPU_CLAIMS, limit=PAGE, continue_token=token)
        for raw in page.items:
            key = _key_of_raw(raw)
            claim = known.get(key)
            if claim is None or not _is_version(claim, raw):
                claim = _read(raw, report)
                live.changed.append(key)
            if claim is not None:
                live.claims[key] = claim
        if not page.continue_token:
            return live
        token = page.continue_token


def _read(raw: Json, report: Callable[[str, str], None]) -> GPUClaim | None:
    try:
        return GPUClaim.model_validate(BY_KIND[GPU_CLAIMS.kind].prune(raw))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        meta = raw.get("metadata") or {}
        where = ".".join(str(part) for part in first["loc"])
        report(f"GPUClaim {meta.get('namespace')}/{meta.get('name')}", f"{where}: {first['msg']}")
        return None


def _key_of_raw(raw: Json) -> Key:
    meta = raw["metadata"]
    return meta.get("namespace", ""), meta["name"]


def _is_version(seen: GPUClaim, raw: Json) -> bool:
    """Whether it is what was read before: no version of an object comes twice."""
    meta = raw["metadata"]
    return (seen.metadata.uid, seen.metadata.resource_version) == (meta["uid"], meta["resourceVersion"])
