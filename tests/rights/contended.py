"""`gpubinder`, to which somebody else is always first: each object's first change meets another version."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpubinder.cli import main
from kube.adapters.http import HttpClient
from kube.port import PLAIN_DELETE, DeleteOptions, Json, ObjectKey

_patch, _delete = HttpClient.patch, HttpClient.delete
_met = set[ObjectKey]()
_ANOTHER = "00000000-0000-0000-0000-000000000000"


async def patch(self: HttpClient, key: ObjectKey, body: Any, *args: Any, **kwargs: Any) -> Json:
    if key not in _met:
        _met.add(key)
        body = {**body, "metadata": {**body["metadata"], "resourceVersion": "1"}}
    return await _patch(self, key, body, *args, **kwargs)


async def delete(self: HttpClient, key: ObjectKey, options: DeleteOptions = PLAIN_DELETE) -> None:
    if key not in _met:
        _met.add(key)
        options = replace(options, uid=_ANOTHER)
    await _delete(self, key, options)


if __name__ == "__main__":
    HttpClient.patch, HttpClient.delete = patch, delete  # type: ignore[method-assign]
    main(prog_name="gpubinder")
