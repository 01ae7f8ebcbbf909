"""What the steps of a pass look at: the folded cluster, live claims, launchers, the room on each node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from binder.core.catalogue import Catalogue, index_claims
from binder.core.launchers import Launcher, find_launchers
from binder.core.room import Room, measure_room, nodes_by_name
from binder.core.state import ClusterState, Key
from binder.core.told import Told
from model.claims import GPUClaim
from model.nodes import Node


@dataclass(frozen=True, slots=True)
class Scene:
    """Built once per pass. Only `room` changes on the way: each placed set is booked there."""

    state: ClusterState
    shop: Catalogue
    launchers: Mapping[str, Launcher]
    nodes: list[tuple[str, Node]]
    room: Room
    told: Told
    now_ms: int


def survey(state: ClusterState, claims: Mapping[Key, GPUClaim], told: Told, now_ms: int) -> Scene:
    """Index what the steps need."""
    shop = index_claims(claims, state)
    launchers = find_launchers(state)
    room = measure_room(state, shop, launchers)
    return Scene(state, shop, launchers, nodes_by_name(state), room, told, now_ms)
