"""Step 0, too: pods that carry our gate and are nobody's launcher (R28) are told so, once.

They stay gated: taking the gate off would let anyone who copies a launcher past the placement. Listed by a
VMI later, such a pod is a launcher like others; a VMI lists its launcher within seconds.
"""

from __future__ import annotations

from binder.core.scene import Scene
from model.decisions import ObjectRef, WarnPod
from model.instants import parse_rfc3339, rfc3339
from model.names import GATE
from model.reasons import Reason

STRANGER_GRACE_S = 60
"""How long KubeVirt may take to list the launcher that it has made."""
_MESSAGE = (
    f"no VirtualMachineInstance lists this pod as its launcher: it keeps the gate {GATE}; "
    "delete the pod, or create it without the gate"
)


def warn_strangers(scene: Scene) -> None:
    """One Warning event for each gated pod that is no launcher after the grace."""
    for uid, pod in sorted(scene.world.relations.strangers.items()):
        meta = pod.metadata
        due_ms = (parse_rfc3339(meta.creation_timestamp) or scene.now_ms) + STRANGER_GRACE_S * 1000
        if due_ms > scene.now_ms:
            scene.wake_by(due_ms)
            continue
        told = f"told pod {uid}"
        if told not in scene.memory.troubles:
            ref = ObjectRef(meta.namespace, meta.name, uid)
            name = f"pod {meta.namespace}/{meta.name}"
            at = rfc3339(scene.now_ms)
            scene.decisions.append(WarnPod(name, ref, Reason.NOT_A_LAUNCHER, _MESSAGE, at))
        scene.since_ms(told)
