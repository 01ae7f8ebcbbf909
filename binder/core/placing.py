"""Steps 3, 5 and 6: gated launchers, Lost sets and new orders get a node or a reason (R8-R12, R23)."""

from __future__ import annotations

from dataclasses import replace

from binder.core.budgets import refusal
from binder.core.keeping import IDLE_ONLY, troubles_of
from binder.core.launchers import Launcher
from binder.core.placement import Wish, find_node
from binder.core.refused_claims import refused_write
from binder.core.restarts import release_hold
from binder.core.scene import Scene, Stuck, new_units
from binder.core.sets import ClaimSet, Obstacle, Stage, units_of
from binder.core.volumes import volume_reach
from binder.core.world import Queue
from binder.core.writing import creations, losses, placement
from model.nodes import Node
from model.reasons import Reason
from model.requests import effective_request


def place_gated(scene: Scene) -> None:
    """Step 3: in queue order (R11); one that does not fit stops nobody behind it.

    A VM that restarts is not sent elsewhere because the claims of its last run go a moment later (R39).
    """
    gated = scene.world.queues[Queue.GATED].values()
    for claim_set in sorted(gated, key=queue_place):
        if claim_set.user not in scene.leaving:
            place_or_wait(claim_set, scene)


def rebind_lost(scene: Scene) -> None:
    """Step 5: Lost sets, oldest loss first (R23). What still runs comes back to where it runs (R19, R22)."""
    for claim_set in sorted(scene.world.queues[Queue.LOST].values(), key=_loss):
        if claim_set.key in scene.settled:
            continue
        if claim_set.stage is Stage.IDLE:
            place_or_wait(claim_set, scene)
        elif claim_set.anchor and claim_set.stage in (Stage.STARTING, Stage.RUNNING):
            bind_at_anchor(claim_set, scene)


def place_orders(scene: Scene) -> None:
    """Step 6: what has never been held and no launcher waits for, oldest first (R23)."""
    for claim_set in sorted(scene.world.queues[Queue.NEW].values(), key=_age):
        if claim_set.key in scene.settled:
            continue
        if claim_set.stage is Stage.IDLE:
            place_or_wait(claim_set, scene)
        elif claim_set.anchor:
            bind_at_anchor(claim_set, scene)


def place_or_wait(claim_set: ClaimSet, scene: Scene) -> None:
    """Place the whole set on one node and book it there, or let it wait."""
    wish = claim_set.obstacle or wish_of(claim_set, scene)
    over = "" if isinstance(wish, Obstacle) else over_budget(claim_set, scene)
    if over:
        wish = Obstacle(Reason.BUDGET_EXCEEDED, over)
    elif not isinstance(wish, Obstacle):
        wish = refused_write(claim_set, scene) or wish
    node = None if isinstance(wish, Obstacle) else choose(claim_set, wish, scene)
    if node is not None:
        put(claim_set, node, scene)
        return
    if not over:  # an order that a budget refuses must not count against others
        scene.decisions += creations(claim_set)
    if claim_set.lost and claim_set.nodes:
        _gather_or_lose(claim_set, wish, scene)
    scene.stuck.append(Stuck(claim_set, wish))


def _gather_or_lose(claim_set: ClaimSet, wish: Wish | Obstacle, scene: Scene) -> None:
    """R17: where something else than room is in its launcher's way, what it had is gathered without it."""
    part, node = claim_set.without_new(), None
    if isinstance(wish, Obstacle):
        alone = wish_of(part, scene)
        node = None if isinstance(alone, Obstacle) else choose(part, alone, scene)
    if node is not None:
        put(part, node, scene)
    else:
        scene.decisions += losses(claim_set, "the rest of its set is Lost", scene.now_ms)


def choose(claim_set: ClaimSet, wish: Wish, scene: Scene) -> str | None:
    """The node for the set (R8, R9); what did not fit is not tried again before room is given back."""
    world = scene.world
    if not claim_set.needs:
        return None
    shape = claim_set.shape
    if wish.is_plain and scene.unfit.get(shape) == world.room.given_back:
        return None
    node = find_node(wish, world.sites_for(claim_set), world.room, world.state.of(Node))
    if node is None and wish.is_plain:
        scene.unfit[shape] = world.room.given_back
    return node


def put(claim_set: ClaimSet, node: str, scene: Scene) -> None:
    """Book the set there and decide its writes."""
    if claim_set.stage is Stage.GATED:  # what waits for its launcher waits on while orders are moved
        release_hold(claim_set, scene)
    book(claim_set, node, scene)
    scene.count_placed(claim_set)
    scene.settled.add(claim_set.key)
    scene.decisions += placement(claim_set, node, scene.now_ms)


def book(claim_set: ClaimSet, node: str, scene: Scene) -> None:
    """Book the set's units on the node, and what its launcher asks for besides.

    What it has elsewhere stays booked there in this pass: it is free once it is written, which may fail while
    the writes of another set succeed (R3).
    """
    room = scene.world.room
    for member in claim_set.members:
        if member.node != node:
            room.take(node, member.resource, member.units)
    if claim_set.stage is Stage.GATED:
        for resource, amount in claim_set.shape.other.items():
            room.take(node, resource, amount)


def bind_at_anchor(claim_set: ClaimSet, scene: Scene) -> bool:
    """Claims follow to where their launcher is, if the node can keep them and has the units (R19)."""
    node, world = claim_set.anchor, scene.world
    over = over_budget(claim_set, scene)
    if over:
        scene.stuck.append(Stuck(claim_set, Obstacle(Reason.BUDGET_EXCEEDED, over)))
        return False
    assert claim_set.launcher is not None
    own, held = world.uncovered_request(claim_set.launcher), claim_set.held_on(node)
    room = world.room.nodes.get(node)
    is_free = room is not None and all(
        room.free(resource) + own.get(resource, 0) + held.get(resource, 0) >= units
        for resource, units in claim_set.needs.items()
    )
    if is_free and _can_keep(claim_set, node, scene):
        _take_over(claim_set, claim_set.launcher, node, scene)
        return True
    text = f"its launcher is on {node}, which cannot hold its claims now"
    reason = Reason.NODE_LOST if claim_set.lost else Reason.NO_ROOM
    scene.stuck.append(Stuck(claim_set, Obstacle(reason, text)))
    return False


def follow(claim_set: ClaimSet, scene: Scene) -> bool:
    """R19: reality wins. What is held elsewhere goes to where the launcher is.

    What the launcher asks for it has there, whatever the room. Orders can be of more units, and a tenant can
    name more of them while the VM runs: those need room. What was never held waits for its turn.
    """
    assert claim_set.launcher is not None
    launcher, node = claim_set.launcher, claim_set.anchor
    members = tuple(member for member in claim_set.members if member.node)
    held = replace(claim_set, members=members, shape=replace(claim_set.shape, needs=units_of(members)))
    asked, own = effective_request(launcher.pod), scene.world.uncovered_request(launcher)
    there, room = held.held_on(node), scene.world.room.nodes.get(node)
    for resource, units in held.needs.items():
        more = units - there.get(resource, 0)
        free = room.free(resource) + own.get(resource, 0) if room is not None else more
        if more > free and units > asked.get(resource, 0):
            return False
    _take_over(held, launcher, node, scene)
    return True


def wish_of(claim_set: ClaimSet, scene: Scene, leaving: str = "") -> Wish | Obstacle:
    """What the set wants of a node; an obstacle where its volumes cannot say yet."""
    reach = volume_reach(claim_set.launcher, scene.world.state) if claim_set.launcher else ()
    if isinstance(reach, Obstacle):
        return reach
    held = {node: dict(claim_set.held_on(node)) for node in claim_set.nodes}
    hold = scene.holds.get(claim_set.user)
    if hold is not None and claim_set.stage is Stage.GATED:
        there = held.setdefault(hold.node, {})
        for resource, units in hold.units.items():
            there[resource] = there.get(resource, 0) + units
    refused = scene.refused_by(claim_set.user)
    return Wish(claim_set.needs, claim_set.shape.other, held, reach, refused, leaving)


def over_budget(claim_set: ClaimSet, scene: Scene) -> str:
    """Why a budget refuses the set's new units, or nothing (R27)."""
    namespace = claim_set.user[0]
    if not scene.world.budgets.may_limit(namespace):
        return ""
    wanted = new_units(claim_set)
    held = {**scene.world.held_units, **scene.placed_units}
    return refusal(scene.world.budgets, namespace, wanted, held) if wanted else ""


def _can_keep(claim_set: ClaimSet, node: str, scene: Scene) -> bool:
    """Whether nothing is wrong with the node for the set now, its being closed to new pods apart (R20)."""
    classes = {m.gpu_class.metadata.name: m.gpu_class for m in claim_set.members}.values()
    wrong = troubles_of(scene.world.node(node), classes, scene.world.room.nodes[node], {})
    return all(trouble.kind in IDLE_ONLY for trouble in wrong)


def _take_over(claim_set: ClaimSet, launcher: Launcher, node: str, scene: Scene) -> None:
    """The claims cover what the launcher took there as a raw pod."""
    own = scene.world.uncovered_request(launcher)
    for resource, units in claim_set.needs.items():
        scene.world.room.take(node, resource, -min(own.get(resource, 0), units))
    put(claim_set, node, scene)


def queue_place(claim_set: ClaimSet) -> tuple[int, str, str]:
    """R11: priority, then creation, then namespace and name."""
    assert claim_set.launcher is not None
    pod = claim_set.launcher.pod
    return (-pod.spec.priority, pod.metadata.creation_timestamp, claim_set.key)


def _loss(claim_set: ClaimSet) -> tuple[str, str]:
    moments = (m.claim.status.lost_at or "" for m in claim_set.lost if m.claim)
    return (min(moments), claim_set.key)


def _age(claim_set: ClaimSet) -> tuple[str, str]:
    claims = (*(m.claim for m in claim_set.members if m.claim), *claim_set.unsold)
    return (min(c.metadata.creation_timestamp for c in claims), claim_set.key)
