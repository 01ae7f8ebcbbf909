"""Launchers that a kubelet refused and that went before any pass could look at them (R13).

Must not know: what is decided of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from pydantic import ValidationError

from binder.core.launchers import VMI_KIND, Launcher, controller_uid, is_launcher_of, refused_by_kubelet
from binder.core.relations import Relations
from binder.core.state import ClusterState, Shelf
from model.kubevirt import VirtualMachineInstance
from model.pods import Pod


class Gone(NamedTuple):
    """What has gone since the last update, and who was a launcher until then."""

    vmis: Mapping[str, VirtualMachineInstance]
    pods: tuple[Pod, ...]
    known: Mapping[str, Launcher]


def gone_since(state: ClusterState, links: Relations) -> Gone:
    """What has gone since the last update; asked for before anything is tied anew."""
    vmis = _readable(state.shelves[VirtualMachineInstance.__name__], b"")
    pods = _readable(state.shelves[Pod.__name__], b'"Failed"')
    known = {uid: links.launchers[uid] for uid in pods if uid in links.launchers}
    for uid in vmis:
        known |= links.launchers_of.get(uid, {})
    return Gone(vmis, tuple(pods.values()), known)


def fallen_of(gone: Gone, links: Relations) -> tuple[Launcher, ...]:
    """Launchers that have gone, or whose VMI has, since the last update, after a kubelet refused them.

    A launcher fails, its VMI ends and both go within milliseconds, often all in one batch. Who was a
    launcher is known from before: at its end a VMI lists no pods any more. A world that has just begun
    knows none, and what it reads may be a day old.
    """
    found = {}
    for pod in (*gone.pods, *(pod for uid in gone.vmis for pod in links.pods_of(uid))):
        known = gone.known.get(pod.metadata.uid)
        vmi = gone.vmis.get(controller_uid(pod.metadata, VMI_KIND)) or (known.vmi if known else None)
        if vmi is not None and refused_by_kubelet(pod) and (known or is_launcher_of(pod, vmi)):
            found[pod.metadata.uid] = Launcher(pod, vmi)
    return tuple(launcher for _, launcher in sorted(found.items()))


def _readable(shelf: Shelf[Any], needle: bytes) -> dict[str, Any]:
    """What has departed from a shelf, can be read and has the needle in it, by uid."""
    found = {}
    for uid, body in shelf.departed.items():
        if body and needle in body:
            with suppress(ValidationError):
                found[uid] = shelf.decoder.validate_json(body)
    return found
