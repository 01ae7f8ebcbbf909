"""What a claim is to the pass: an order or a template claim, its key, its version."""

from __future__ import annotations

from binder.core.launchers import VMI_KIND, controller_uid
from binder.core.state import Key
from model.claims import GPUClaim
from model.decisions import ObjectRef
from model.meta import ObjectMeta
from model.names import ANNOTATION_CLAIMS

MAX_NAMED = 256
"""Orders that one VM may name, of a unit each at least: no node has more. Annotations could name 100,000."""


def is_template_claim(claim: GPUClaim) -> bool:
    """Whether a VMI controls the claim; every other claim is an order."""
    return bool(controller_uid(claim.metadata, VMI_KIND))


def key_of(claim: GPUClaim) -> Key:
    """Its namespace and name."""
    return (claim.metadata.namespace, claim.metadata.name)


def claim_ref(claim: GPUClaim) -> ObjectRef:
    """The version of the claim that the pass has seen."""
    meta = claim.metadata
    return ObjectRef(meta.namespace, meta.name, meta.uid, meta.resource_version)


def user_uid(claim: GPUClaim) -> str:
    """The uid of the VM that its status records, or the empty string."""
    return claim.status.vm.uid if claim.status.vm else ""


def orders_named_by(metadata: ObjectMeta) -> tuple[str, ...]:
    """The orders that the annotations of a VMI or a VM's template name, in order, each once."""
    text = metadata.annotations.get(ANNOTATION_CLAIMS)
    if not text:
        return ()
    names = (name.strip() for name in text.split(",", MAX_NAMED)[:MAX_NAMED])
    return tuple(dict.fromkeys(name for name in names if name))


def names_too_many(metadata: ObjectMeta) -> bool:
    """Whether the annotation names more than are looked at."""
    return metadata.annotations.get(ANNOTATION_CLAIMS, "").count(",") >= MAX_NAMED
