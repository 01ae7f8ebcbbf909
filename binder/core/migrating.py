"""Step 3, too: the gated target of a live migration gets a node (case 050).

It is no launcher (R28): it has no claims and counts as a raw pod, beside the claims that its VMI holds where
it still runs. When the VMI has arrived it is the launcher there, and the claims follow (R19). Until then
nothing is written but the pin.
"""

from __future__ import annotations

from collections.abc import Mapping

from binder.core.forming import shape_of
from binder.core.launchers import Launcher, vm_of
from binder.core.placement import Wish
from binder.core.placing import choose, queue_place
from binder.core.relations import Relations
from binder.core.scene import Scene, Stuck
from binder.core.sets import ClaimSet, Obstacle, Stage
from binder.core.volumes import volume_reach
from binder.core.writing import pin
from model.claims import GPUClass
from projections.folds import targets
from projections.folds.memory import Lesson


def hold_for_targets(scene: Scene) -> None:
    """What a target was given is taken, also while the log does not show its pin yet (R3)."""
    links = scene.world.relations
    for uid, node in sorted(scene.memory.targets.items()):
        target = links.targets.get(uid)
        if target is None or not target.is_placeable:
            scene.lessons.append(Lesson(targets.NAME, uid, None))
            continue
        for resource, units in _guest(target, links).needs.items():
            scene.world.room.take(node, resource, units)


def place_targets(scene: Scene) -> None:
    """Each gated target, in the order of R11, onto a node that takes the VMI beside what is there."""
    links = scene.world.relations
    waiting = [one for _, one in sorted(links.targets.items()) if one.is_placeable]
    for claim_set in sorted((_guest(one, links) for one in waiting), key=queue_place):
        _place(claim_set, scene)


def _place(guest: ClaimSet, scene: Scene) -> None:
    assert guest.launcher is not None
    reach = volume_reach(guest.launcher, scene.world.state)
    if isinstance(reach, Obstacle):
        scene.stuck.append(Stuck(guest, reach))
        return
    uid, home = guest.launcher.pod.metadata.uid, guest.launcher.vmi.status.node_name
    given = scene.memory.targets.get(uid, "")
    vm = vm_of(guest.launcher.vmi, scene.world.relations.vms)
    refused = scene.refused_by((guest.launcher.vmi.metadata.namespace, vm.uid))
    held = {given: dict(guest.needs)} if given else {}
    wish = Wish(guest.needs, guest.shape.other, held, reach, refused, home)
    node = choose(guest, wish, scene)
    if node is None:
        scene.stuck.append(Stuck(guest, wish))
        return
    for resource, units in guest.needs.items():
        scene.world.room.take(given, resource, -units)
    for resource, amount in {**guest.shape.other, **guest.needs}.items():
        scene.world.room.take(node, resource, amount)
    if node != given:
        scene.lessons.append(Lesson(targets.NAME, uid, node))
    scene.decisions.append(pin(guest, guest.launcher, node))


def _guest(target: Launcher, links: Relations) -> ClaimSet:
    """A set without members: what the target asks for, of nodes that the VMI's classes accept."""
    meta = target.pod.metadata
    asked = links.request_of(target.pod)
    needs = {resource: n for resource, n in asked.items() if resource in links.sold}
    shape = shape_of(_classes(target, needs, links), needs, target.pod, links)
    return ClaimSet(
        f"{meta.namespace}/{target.vmi.metadata.name}",
        (),
        Stage.GATED,
        vmi=target.vmi,
        launcher=target,
        shape=links.shapes.setdefault(shape, shape),
    )


def _classes(target: Launcher, needs: Mapping[str, int], links: Relations) -> tuple[GPUClass, ...]:
    """Those of the VMI's claims; for what no claim of it covers, the first class that sells it."""
    held = {claim.spec.class_name for claim in links.claims_serving(target.vmi)}
    own = [links.classes[name] for name in sorted(held & links.classes.keys())]
    covered = {one.spec.resource_name for one in own}
    return (*own, *(links.sold[resource][0] for resource in needs if resource not in covered))
